"""``--environment``: refused before anything is loaded, and handed to the tests as a path that holds in any folder."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli import commands, playing
from app.cli.commands import main
from engine.scripted import Script, ScriptedCandidate, ScriptedEngine
from tests.app.test_cli_commands import BAD, GOOD, FakeRunner

HERE = f"python{sys.version_info.major}.{sys.version_info.minor}"
NONE = "There is no Python environment in {}; name the folder of a virtual environment."
COMMANDS = {
    "generate": ["generate", "p", "-n", "1", "--tests", "t.py"],
    "generate without tests": ["generate", "p", "-n", "1"],
    "generate --until-pass": ["generate", "p", "--until-pass", "--tests", "t.py"],
    "generate --fix": ["generate", "--fix", "a.py", "--tests", "t.py"],
    "fix a file": ["fix", "a.py", "--tests", "t.py"],
    "fix a file once": ["fix", "a.py", "--tests", "t.py", "-n", "1", "--in-place"],
    "fix a run": ["fix", "1"],
    "fix a candidate": ["fix", "1", "1", "-n", "1"],
    "resume": ["resume", "1"],
    "test": ["test", "--solution", "a.py", "--tests", "t.py"],
}


def never(*_: object) -> None:
    pytest.fail("it was started")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[[object, object], None]:
    """Which engine is opened from now on, and which runner."""

    def start(engine: object, runner: object) -> None:
        monkeypatch.setattr(playing, "open_engine", engine)
        monkeypatch.setattr(playing, "RunnerClient", runner)
        monkeypatch.setattr(commands, "RunnerClient", runner)

    return start


@pytest.fixture(autouse=True)
def a_run_that_failed(start: Callable[[object, object], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run 1 of the history, in a folder with a file, its tests and several folders that are no environment."""
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("bad = 1\n")
    Path("t.py").write_text("assert good")
    Path("empty").mkdir()
    Path("circle").symlink_to("circle")
    Path("old/lib/python2.7/site-packages").mkdir(parents=True)
    Path(f"venv/lib/{HERE}/site-packages").mkdir(parents=True)
    start(lambda choice: scripted(BAD), FakeRunner)
    assert main(["generate", "p", "-n", "1", "--tests", "t.py"]) == 1


def scripted(text: str) -> ScriptedEngine:
    return ScriptedEngine(Script((ScriptedCandidate((text,)),), step_s=0.001))


def refusal(words: list[str], start: Callable[[object, object], None], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    start(never, never)
    assert main(words) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    return printed.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_is_none_is_refused_before_anything_starts(
    command: str, start: Callable[[object, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("/no/such", "empty", "t.py"):
        said = refusal([*COMMANDS[command], "--environment", folder], start, capsys)
        assert said == f"bassline: {NONE.format(folder)}\n"
    assert Path("a.py").read_text() == "bad = 1\n"


@pytest.mark.parametrize(
    ("folder", "sentence"),
    [
        ("old", f"The environment old is for python2.7; the tests need one for {HERE}."),
        ("circle", NONE.format("circle")),
        ("~nobody-of-this-name/venv", NONE.format("~nobody-of-this-name/venv")),
        (" ", NONE.format(" ")),
    ],
)
def test_every_reason_is_one_sentence(
    folder: str, sentence: str, start: Callable[[object, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refusal(["generate", "p", "--tests", "t.py", "--environment", folder], start, capsys)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "generate without tests"])
def test_one_that_is_named_from_the_current_folder_is_found_by_the_tests(
    command: str, start: Callable[[object, object], None], tmp_path: Path
) -> None:
    start(lambda choice: scripted(GOOD), FakeRunner)
    main([*COMMANDS[command], "--environment", "venv"])
    assert {test.environment for test in FakeRunner.last.tests} == {str(tmp_path / "venv")}


def test_without_the_option_there_is_none(start: Callable[[object, object], None]) -> None:
    start(lambda choice: scripted(GOOD), FakeRunner)
    assert main(COMMANDS["fix a file"]) == 0
    assert {test.environment for test in FakeRunner.last.tests} == {""}
