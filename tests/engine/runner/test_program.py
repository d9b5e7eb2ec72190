"""A candidate that reads and prints, run as a program of its own: whatever way it reads, prints and ends."""

import os
import signal
import time
from pathlib import Path

import pytest

from engine.runner import program

SUM = "print(sum(map(int, text.split())))\n"
READS = {
    "input": "text = input() + ' ' + input()\n",
    "input with a prompt": "text = input('') + ' ' + input()\n",
    "sys.stdin": "import sys\ntext = sys.stdin.read()\n",
    "lines of sys.stdin": "import sys\ntext = ' '.join(line for line in sys.stdin)\n",
    "the buffer": "import sys\ntext = sys.stdin.buffer.read().decode()\n",
    "__stdin__": "import sys\ntext = sys.__stdin__.read()\n",
    "open(0)": "text = open(0).read()\n",
    "os.read": "import os\ntext = os.read(0, 1 << 16).decode()\n",
    "/dev/stdin": "text = open('/dev/stdin').read()\n",
    "fileinput": "import fileinput\ntext = ' '.join(fileinput.input())\n",
    "until the end": "text = ''\ntry:\n    while True:\n        text += input() + ' '\nexcept EOFError:\n    pass\n",
}
PRINTS = {
    "print": "print('ä', end='')",
    "os.write": "import os\nos.write(1, 'ä'.encode())",
    "the buffer": "import sys\nsys.stdout.buffer.write('ä'.encode())",
    "at exit": "import atexit\natexit.register(lambda: print('ä', end=''))",
    "a thread": "import threading\nthreading.Timer(0.1, lambda: print('ä', end='')).start()",
    "a child": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(chr(228), end=str())'])",
    "before exit": "print('ä', end='')\nexit()",
    "before quit": "print('ä', end='')\nquit(0)",
    "its own name": "if __name__ == '__main__':\n    print('ä', end='')",
}


def ended(tmp_path: Path, text: str, given: str = "") -> program.Ended:
    path = tmp_path / "solution.py"
    path.write_text(text)
    return program.run(path, given)


@pytest.mark.parametrize("how", READS)
def test_every_way_of_reading_gets_the_input(how: str, tmp_path: Path) -> None:
    assert ended(tmp_path, READS[how] + SUM, "1 2\n3\n") == program.Ended("6\n", "", 0, "")


@pytest.mark.parametrize("how", PRINTS)
def test_every_way_of_printing_is_seen(how: str, tmp_path: Path) -> None:
    result = ended(tmp_path, PRINTS[how])
    assert (result.output, result.code) == ("ä", 0)


ENDS = {
    "raise ValueError('no')": (1, "ValueError: no (line 1 of the candidate)"),
    "def f():\n    raise ValueError('no')\nf()": (1, "ValueError: no (line 2 of the candidate)"),
    "def f(:": (1, "SyntaxError: invalid syntax (line 1 of the candidate)"),
    "import sys\nsys.exit(3)": (3, ""),
    "raise SystemExit('bye')": (1, ""),
    "import os\nos.kill(os.getpid(), 9)": (-9, "it was ended by SIGKILL"),
    "print('x' * (5 << 20))": (-9, "it prints more than 4 MiB"),
}


@pytest.mark.parametrize("text", ENDS)
def test_an_end_that_is_not_good_is_said(text: str, tmp_path: Path) -> None:
    result = ended(tmp_path, text)
    assert (result.code, result.why) == ENDS[text]


def test_error_output_is_kept_apart_and_unread_input_is_no_fault(tmp_path: Path) -> None:
    result = ended(tmp_path, "import sys\nprint('why', file=sys.stderr)\nprint(1)", "x" * 200_000)
    assert result == program.Ended("1\n", "why\n", 0, "")


def test_a_child_that_is_left_behind_does_not_hold_it_up(tmp_path: Path) -> None:
    text = "import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(40)'])\n"
    before = time.monotonic()
    result = ended(tmp_path, f"{text}print(child.pid)")
    os.kill(int(result.output), signal.SIGKILL)
    assert time.monotonic() - before < 25


def test_it_is_not_told_that_it_is_tested(tmp_path: Path) -> None:
    assert "PYTEST_CURRENT_TEST" in os.environ
    assert ended(tmp_path, "import os\nprint('PYTEST_CURRENT_TEST' in os.environ)").output == "False\n"
