"""Comparing candidates from the command line: groups in --json, questions on a terminal, suggested tests in a file."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from app.cli import playing
from app.cli.commands import main
from engine.contract import Engine, ModelChoice
from engine.scripted import ScriptedEngine, from_texts
from tests.engine.runner.conftest import bubblewrap_works

ROOT = Path(__file__).parents[2]
PROMPT = "Write double(x), as in double(3)."
TIMES, SQUARE = "def double(x):\n    return x * 2\n", "def double(x):\n    return x ** 2\n"
CANDIDATES = [SQUARE, SQUARE + "# also\n", TIMES, "def double(x):\n    raise NotImplementedError\n"]
ASSERTS = "assert double(5) == 10\nassert double(4) == 8\nassert double(1) == 99\n"

needs_boxes = pytest.mark.skipif(not bubblewrap_works(), reason="bubblewrap does not work here")


def fenced(code: str) -> str:
    return f"```python\n{code}```\n"


class TwoScripts(ScriptedEngine):
    """Plays the candidates first, then asserts, as a model would that is asked for them."""

    def __init__(self) -> None:
        super().__init__(from_texts([fenced(code) for code in CANDIDATES], chunk=200))

    def submit(self, message: Any) -> None:
        if getattr(message, "run", "") == "suggest":
            self.script = from_texts([fenced(ASSERTS)], chunk=200)
        elif getattr(message, "run", "") == "calls":
            self.script = from_texts([fenced("double(21)\nprint(double(-8))\ndouble(open('x'))\n")], chunk=200)
        super().submit(message)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_engine(choice: ModelChoice) -> Engine:
        return TwoScripts()

    monkeypatch.setattr(playing, "open_engine", open_engine)


def generate(*words: str) -> int:
    return main(["generate", PROMPT, "-n", "4", "--no-history", "--progress", "none", *words])


@pytest.mark.sandbox
@needs_boxes
@pytest.mark.usefixtures("scripted")
def test_groups_and_the_inputs_that_split_them_are_in_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate("--compare", "--json") == 0
    behaviour = json.loads(capsys.readouterr().out)["behaviour"]
    assert behaviour["groups"] == [[1, 2], [3], [4]]
    first = next(entry for entry in behaviour["splitting_inputs"] if entry["input"] == "double(3)")
    assert first["results"] == [
        {"result": "9", "candidates": [1, 2]},
        {"result": "6", "candidates": [3]},
        {"result": "raises NotImplementedError", "candidates": [4]},
    ]
    assert first["origin"] == "prompt"


@pytest.mark.sandbox
@needs_boxes
@pytest.mark.usefixtures("scripted")
def test_without_tests_the_largest_group_by_behaviour_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate("--compare") == 0
    shown = capsys.readouterr()
    assert shown.out == SQUARE
    assert "2 behave alike on" in shown.err


@pytest.mark.sandbox
@needs_boxes
@pytest.mark.usefixtures("scripted")
def test_suggested_tests_order_the_candidates_and_are_saved_as_suggestions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "suggested.py"
    assert generate("--suggest-tests", str(file), "--json") == 0
    text = file.read_text()
    assert "assert double(5) == 10" in text
    assert "double(1) == 99" not in text
    assert "suggested; candidates 3 agree" in text
    printed = json.loads(capsys.readouterr().out)
    assert printed["best"] == 3
    assert all(candidate["tests"] is None for candidate in printed["candidates"])  # a suggestion makes nothing green
    assert generate("--suggest-tests", str(file)) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.sandbox
@needs_boxes
@pytest.mark.usefixtures("scripted")
def test_where_nobody_wrote_an_input_the_model_is_asked_for_calls(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-n", "4", "--no-history", "--progress", "none", "--compare", "--json"]
    assert main(["generate", "Write double.", *options]) == 0
    splitting = json.loads(capsys.readouterr().out)["behaviour"]["splitting_inputs"]
    assert [entry["input"] for entry in splitting if entry["origin"] == "model"] == ["double(21)", "double(-8)"]


@pytest.mark.usefixtures("scripted")
def test_questions_without_a_terminal_are_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate("--ask") == 2
    assert "--ask puts questions on a terminal, and there is none here" in capsys.readouterr().err


_PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from app.cli import playing
from app.cli.commands import main
from tests.app.test_cli_questions import PROMPT, TwoScripts
playing.open_engine = lambda choice: TwoScripts()
sys.exit(main(["generate", PROMPT, "-n", "4", "--no-history", "--progress", "none", "--ask", *sys.argv[1:]]))
"""


class Terminal:
    """A process on a terminal of its own, whose stdout is a file."""

    def __init__(self, out: Path, *words: str):
        self._ours, theirs = pty.openpty()
        with out.open("wb") as file:
            command = [sys.executable, "-c", _PROGRAM, *words]
            self.process = subprocess.Popen(command, stdin=theirs, stdout=file, stderr=theirs, cwd=ROOT)
        os.close(theirs)
        self.shown = ""

    def wait_for(self, words: str, seconds: float = 90.0) -> None:
        end, start = time.monotonic() + seconds, len(self.shown)
        while words not in self.shown[start:]:
            assert time.monotonic() < end, self.shown
            if select.select([self._ours], [], [], 0.2)[0]:
                try:
                    self.shown += os.read(self._ours, 4096).decode()
                except OSError:
                    break
        assert words in self.shown[start:], self.shown

    def type(self, words: str) -> None:
        os.write(self._ours, words.encode())


@pytest.mark.sandbox
@needs_boxes
def test_an_answer_on_the_terminal_judges_the_candidates(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    terminal = Terminal(out, "--json")
    terminal.wait_for("or type what is right")
    assert "double(3): 2 say 9, 1 say 6, 1 say an error (NotImplementedError). Which is right?" in terminal.shown
    terminal.type("nonsense\n")
    terminal.wait_for("Write a value as Python has it")
    terminal.type("2\n")
    terminal.wait_for("1 of 4 candidates pass; candidate 3 is picked")
    assert terminal.process.wait(60) == 0
    printed = json.loads(out.read_text())
    assert printed["best"] == 3
    assert [candidate["tests"]["verdict"] for candidate in printed["candidates"]] == ["fail", "fail", "pass", "fail"]
    assert printed["behaviour"]["answers"] == [{"input": "double(3)", "right": "6"}]


@pytest.mark.sandbox
@needs_boxes
def test_leaving_the_questions_keeps_the_run(tmp_path: Path) -> None:
    out = tmp_path / "out.py"
    terminal = Terminal(out)
    terminal.wait_for("or type what is right")
    terminal.type("q\n")
    terminal.wait_for("candidate 1 is shown")
    assert terminal.process.wait(60) == 0
    assert out.read_text() == SQUARE
