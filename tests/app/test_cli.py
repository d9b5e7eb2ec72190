"""The command line as a user has it: a process with arguments, stdin, stdout, stderr and an exit code."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.system.engines import recorded_answers
from engine.contract.wire import event_from_line
from engine.selection.code_blocks import solution

ROOT = Path(__file__).parents[2]
CANDIDATE_KEYS = [
    "id",
    "seed",
    "state",
    "text",
    "code",
    "tokens",
    "proposed",
    "accepted",
    "mean_logprob",
    "stop_reason",
    "tests",
]
METRIC_KEYS = [
    "time_to_first_token_s",
    "time_to_first_finished_s",
    "time_to_first_passing_s",
    "total_s",
    "tokens_per_second",
    "ms_per_token",
    "acceptance_rate",
    "steps",
    "device",
    "precision",
    "drafter",
    "policy",
    "acceptance",
    "plain_step_share",
    "mean_draft_length",
    "speedup",
    "width",
    "tokens_read",
]


def bassline(*words: str | Path, stdin: bytes = b"", **environment: str) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-W", "error", str(ROOT / "main.py"), *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, env=_environment(**environment))


def _environment(**changes: str) -> dict[str, str]:
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return {name: value for name, value in os.environ.items() if name not in hidden} | changes


@pytest.fixture
def tests_file(tmp_path: Path) -> Path:
    path = tmp_path / "t.py"
    path.write_bytes(b'assert roman_to_int("III") == 3\r\nassert roman_to_int("MCMXCIV") == 1994\r\n')
    return path


def test_the_whole_path(tmp_path: Path, tests_file: Path) -> None:
    out = tmp_path / "out folder ä"
    options = ["-n", "3", "--seed", "7", "--json", "--yes", "--tests", tests_file, "--export", out]
    done = bassline("generate", "-", "--model", "scripted", *options, stdin="Übersetze römische Zahlen".encode())
    assert done.returncode == 0, done.stderr.decode()

    printed = json.loads(done.stdout)
    about = ["outcome", "reason", "best", "request", "models", "loaded", "versions"]
    assert list(printed) == [*about, "candidates", "metrics"]
    assert (printed["request"]["seed"], printed["outcome"]) == (7, "finished")
    assert list(printed["metrics"]) == METRIC_KEYS
    assert list(printed["metrics"]["ms_per_token"]) == ["first", "last", "mean"]
    assert printed["metrics"]["time_to_first_passing_s"] > 0
    candidates = printed["candidates"]
    assert [list(candidate) for candidate in candidates] == [CANDIDATE_KEYS] * 3
    assert [(c["id"], c["seed"], c["state"], c["text"]) for c in candidates] == [
        (number, 7, "done", text) for number, text in enumerate(recorded_answers()[:3], 1)
    ]
    assert [list(candidate["tests"]) for candidate in candidates] == [["verdict", "passed", "failed", "why"]] * 3
    assert [c["tests"]["verdict"] for c in candidates] == ["pass", "fail", "pass"]
    assert "2216 == 1994" in candidates[1]["tests"]["why"]

    files = {path.name: path.read_bytes() for path in out.iterdir()}
    assert json.loads(files.pop("result.json"))["request"]["prompt"] == "Übersetze römische Zahlen"
    assert files.pop("tests.py") == tests_file.read_bytes()
    assert files.pop("best.py") == candidates[0]["code"].encode()
    assert files == {f"candidate-{c['id']}.py": c["code"].encode() for c in candidates}


def test_the_code_alone_on_stdout_and_events_on_stderr() -> None:
    done = bassline("generate", "anything", "--model", "scripted", "-n", "1", "--progress", "jsonl")
    assert done.returncode == 0
    assert done.stdout.decode() == solution(recorded_answers()[0]).code
    lines = done.stderr.decode().splitlines()
    events = [event_from_line(line) for line in lines if json.loads(line)["event"] != "Note"]
    names = [type(event).__name__ for event in events]
    assert names[0] == "Loading"
    assert names.index("Ready") < names.index("RunStarted") < names.index("TextAdded") < names.index("RunFinished")


def test_no_candidate_passes(tests_file: Path, tmp_path: Path) -> None:
    tests_file.write_text("def test_it():\n    from solution import roman_to_int\n    assert roman_to_int('I') == 2\n")
    options = ["-n", "2", "--yes", "--tests", tests_file, "--export", tmp_path / "out"]
    done = bassline("generate", "anything", "--model", "scripted", *options)
    assert done.returncode == 1, done.stderr.decode()
    assert b"None of 2 candidates passes" in done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "candidate-1.py",
        "candidate-2.py",
        "result.json",
        "tests.py",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
def test_ctrl_c_keeps_what_is_there(tmp_path: Path) -> None:
    words = ["generate", "anything", "--model", "scripted", "-n", "4", "--progress", "jsonl", "--json"]
    command = [sys.executable, str(ROOT / "main.py"), *words, "--export", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        seen: dict[str, Any] = {}
        while seen.get("event") != "CandidateFinished":
            seen = json.loads(process.stderr.readline())
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 130
    candidates = json.loads(out)["candidates"]
    assert [(c["state"], c["stop_reason"]) for c in candidates] == [
        ("stopped", "cancelled"),
        ("done", "stop"),  # the shortest of the recorded answers
        ("stopped", "cancelled"),
        ("stopped", "cancelled"),
    ]
    assert all(candidate["text"] for candidate in candidates)
    assert (tmp_path / "out" / "candidate-2.py").read_text() == candidates[1]["code"]


def test_test_prints_the_verdict_alone(tests_file: Path, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(solution(recorded_answers()[0]).code)
    wrong.write_text(solution(recorded_answers()[1]).code)
    done = bassline("test", "--solution", right, "--tests", tests_file, "--json", "--yes")
    assert (done.returncode, json.loads(done.stdout)["verdict"], json.loads(done.stdout)["passed"]) == (0, "pass", 2)
    done = bassline("test", "--solution", wrong, "--tests", tests_file, "--yes")
    assert done.returncode == 1
    assert done.stdout.decode().startswith("failed: 1 of 2 tests passed\n")
    assert b"2216 == 1994" in done.stdout


def test_without_a_display_the_same_job_is_shown_as_a_command() -> None:
    done = bassline()
    assert done.returncode == 0
    assert b"no display" in done.stdout
    assert b'main.py generate "' in done.stdout
    assert b"tests.py" in done.stdout


def test_help_is_not_an_error_and_bad_use_is() -> None:
    assert b"examples:" in bassline("--help").stdout
    done = bassline("generate", "anything", "-n", "many")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().count("\n") == 1


def test_a_reader_that_leaves_is_no_crash() -> None:
    command = [sys.executable, str(ROOT / "main.py"), "models", "list"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60, env=_environment())
    os.close(writer)
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="written for a POSIX shell")
class TestBrokenStreams:
    GENERATE = "generate anything --model scripted -n 1 --json"

    def shell(self, words: str, redirection: str) -> "subprocess.CompletedProcess[bytes]":
        command = f'"{sys.executable}" -W error "{ROOT}/main.py" {words} {redirection}'
        return subprocess.run(["sh", "-c", command], capture_output=True, timeout=120, env=_environment())

    @pytest.mark.parametrize(
        ("words", "redirection", "code"),
        [
            ("models list", ">&-", 0),
            ("fly", "2>&-", 2),
            (GENERATE, "<&- >&- 2>&-", 0),
        ],
    )
    def test_closed_ones_are_empty(self, words: str, redirection: str, code: int) -> None:
        done = self.shell(words, redirection)
        assert (done.returncode, done.stdout, b"Traceback" in done.stderr) == (code, b"", False)

    def test_a_closed_stdin_is_no_prompt(self) -> None:
        done = self.shell("generate - --model scripted", "<&-")
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
        assert b"The prompt is empty" in done.stderr

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
    @pytest.mark.parametrize("words", ["models list", "--help", "", GENERATE + " --progress jsonl"])
    def test_a_full_disk_is_one_sentence(self, words: str) -> None:
        done = self.shell(words, ">/dev/full")
        assert done.returncode == 2
        assert done.stderr.endswith(b"bassline: The output could not be written: No space left on device.\n")
        assert b"Traceback" not in done.stderr

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
    @pytest.mark.parametrize("progress", ["auto", "jsonl", "none"])
    def test_stderr_that_takes_nothing_costs_no_result(self, progress: str) -> None:
        done = self.shell(f"{self.GENERATE} --progress {progress}", "2>/dev/full")
        assert (done.returncode, len(json.loads(done.stdout)["candidates"])) == (0, 1)

    def test_a_reader_of_stderr_that_leaves_costs_no_result(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, str(ROOT / "main.py"), *self.GENERATE.split()]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=writer, timeout=60, env=_environment())
        os.close(writer)
        assert (done.returncode, len(json.loads(done.stdout)["candidates"])) == (0, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize("entry", ["main.py", "app/package/__main__.py"])
@pytest.mark.parametrize(
    ("words", "module"),
    [
        *((("fix", "a.py", "--tests", "a.py"), module) for module in ("app", "app.invocation", "engine.device")),
        *((("generate", "anything", "--offline", "--model", "no-such-model"), name) for name in ("app.cli", "torch")),
        *(((), module) for module in ("app.entry", "engine.device", "app.cli", "PySide6.QtWidgets")),  # the window
    ],
)
def test_ctrl_c_during_imports_is_quiet(words: tuple[str, ...], module: str, entry: str, tmp_path: Path) -> None:
    """From the first module of ours on, and whether there is a handler by then or not."""
    press = tmp_path / "press.py"
    press.write_text(f"""\
import os, runpy, signal, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
sys.path.insert(0, {str(ROOT)!r})
sys.argv = ["main.py", *{words!r}]
runpy.run_path({str(ROOT / entry)!r}, run_name="__main__")
""")
    surroundings = _environment(QT_QPA_PLATFORM="offscreen", BASSLINE_HOME=str(tmp_path))
    done = subprocess.run([sys.executable, str(press)], capture_output=True, timeout=120, env=surroundings)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
def test_a_second_ctrl_c_leaves_without_a_traceback() -> None:
    code = """\
import signal, sys, threading, time
from app.cli.interrupts import on_interrupt

print("kept", end="")
with on_interrupt(lambda: None):
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
print("too far")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, cwd=ROOT, env=_environment())
    assert (done.returncode, done.stdout, done.stderr) == (130, b"kept", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="a home folder is of another kind there")
class TestSurroundings:
    """Whatever the shell, the service or the container leaves out: it works, or one sentence says what is missing."""

    GENERATE = ("generate", "anything", "--model", "scripted", "-n", "1", "--json")

    def run(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
        command = [sys.executable, *([] if words[0] != "-OO" else ["-OO"]), str(ROOT / "main.py")]
        words = words[1:] if words[0] == "-OO" else words
        return subprocess.run([*command, *words], capture_output=True, timeout=120, env=variables, check=False)

    @pytest.mark.parametrize("command", [("models", "list"), ("servers", "list"), GENERATE])
    @pytest.mark.parametrize("home", ["unset", "", "relative", "spaces and ñ"])
    def test_homes_of_all_kinds(self, tmp_path: Path, command: tuple[str, ...], home: str) -> None:
        variables = {} if home == "unset" else {"HOME": str(tmp_path / home) if " " in home else home}
        variables |= {"XDG_CONFIG_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
        done = self.run(*command, **variables)
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr

    @pytest.mark.parametrize("command", [("models", "list"), ("servers", "list"), ("history",), GENERATE])
    def test_a_home_that_is_no_folder(self, tmp_path: Path, command: tuple[str, ...]) -> None:
        (tmp_path / "file").write_text("")
        done = self.run(*command, HOME=str(tmp_path / "file"))
        assert done.returncode in (0, 2)
        assert b"Traceback" not in done.stderr

    @pytest.mark.parametrize(
        "variables",
        [
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            {"LC_ALL": "no_SUCH.locale"},
            {"TMPDIR": "/nonexistent"},
            {"PATH": ""},
            {"TERM": ""},
            {"COLUMNS": "nonsense"},
            {"PYTHONOPTIMIZE": "2"},
        ],
    )
    def test_variables_of_all_kinds(self, tmp_path: Path, variables: dict[str, str]) -> None:
        done = self.run(*self.GENERATE, BASSLINE_HOME=str(tmp_path), **variables)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["outcome"] == "finished"

    def test_tests_run_without_a_home_and_without_a_path(self, tmp_path: Path, tests_file: Path) -> None:
        right = tmp_path / "right.py"
        right.write_text(solution(recorded_answers()[0]).code)
        words = ("test", "--solution", str(right), "--tests", str(tests_file), "--yes")
        done = self.run("-OO", *words, XDG_CONFIG_HOME=str(tmp_path), TMPDIR="/nonexistent", PATH="")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(b"passed: 2 of 2")

    def test_a_user_that_is_none(self, tmp_path: Path) -> None:
        done = self.run("servers", "list", BASSLINE_HOME="~no-such-user/there")
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(b"bassline: BASSLINE_HOME is ~no-such-user/there, and there is no such user")
