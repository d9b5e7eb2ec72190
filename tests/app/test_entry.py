"""The way in: window or command, how the program names itself, and the log it was asked for."""

import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from app import entry, invocation
from app.cli.arguments import parser
from engine.child_process import ROOT

GENERATE = ("generate", "a secret prompt", "--model", "scripted", "-n", "1")


def bassline(*words: str | Path, flags: tuple[str, ...] = (), **changes: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *flags, str(ROOT / "main.py"), *map(str, words)]
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    surroundings = {name: value for name, value in os.environ.items() if name not in hidden} | changes
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=surroundings, check=False)


@pytest.mark.parametrize(
    ("line", "window"),
    [
        ("", True),
        ("--demo", True),
        ("--log run.log", True),
        ("--log=run.log --log-text --demo", True),
        ("--log", False),  # without a file: the command line says so
        ("--log generate", True),  # a file of that name
        ("--log run.log generate x", False),
        ("generate --log run.log", False),
        ("--help", False),
        ("--demo fly", False),
    ],
)
def test_options_alone_open_the_window(line: str, window: bool) -> None:
    assert entry.opens_window(line.split()) is window


@pytest.mark.parametrize(
    "words", [["--log", "run.log", "doctor"], ["doctor", "--log", "run.log"], ["models", "--log", "run.log", "list"]]
)
def test_the_log_may_be_named_before_or_behind_the_command(words: list[str]) -> None:
    arguments = parser().parse_args(words)
    assert (arguments.log, arguments.log_text) == (Path("run.log"), False)


def test_log_text_may_too() -> None:
    assert parser().parse_args(["--log-text", "doctor"]).log_text
    assert parser().parse_args(["doctor", "--log-text"]).log_text
    assert not parser().parse_args(["doctor"]).log_text


def test_a_run_can_be_explained_from_its_log(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    done = bassline(*GENERATE, "--log", log)
    assert done.returncode == 0, done.stderr
    text = log.read_text()
    for part in ("load model=scripted", "n=1 seed=", "ready: scripted", "run started", "candidate 1 done", "finished"):
        assert part in text
    assert "secret" not in text
    assert "def roman_to_int" not in text
    assert "a secret prompt" in (bassline("--log", log, "--log-text", *GENERATE), log.read_text())[1]


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    for words in ([*GENERATE, "--log", tmp_path], ["--log", tmp_path]):
        done = bassline(*words, QT_QPA_PLATFORM="offscreen")
        assert (done.returncode, done.stdout, done.stderr) == (
            2,
            "",
            f"bassline: {tmp_path} could not be used: Is a directory.\n",
        )


def test_an_isolated_interpreter_finds_the_checkout() -> None:
    done = bassline(*GENERATE, flags=("-I",))
    assert done.returncode == 0, done.stderr


class TestInvocation:
    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch):
        def start(program: str, module: str = "") -> list[str]:
            main = ModuleType("__main__")
            main.__spec__ = ModuleSpec(module, None) if module else None
            monkeypatch.setitem(sys.modules, "__main__", main)
            monkeypatch.setattr(sys, "argv", [program])
            return invocation.command()

        return start

    def test_an_installed_command_is_its_own_name(self, started, tmp_path: Path, monkeypatch) -> None:
        (tmp_path / "bin").mkdir()
        real, link = tmp_path / "bin" / "real", tmp_path / "bin" / "bassline"
        real.touch(mode=0o755)
        link.symlink_to(real)
        monkeypatch.chdir(tmp_path)
        assert started("bin/bassline") == [str(link)]  # the link stays when an upgrade replaces what it leads to
        assert invocation.shell_name() == "bin/bassline"

    def test_a_checkout_is_its_interpreter_and_its_file(self, started, tmp_path: Path, monkeypatch) -> None:
        (tmp_path / "my code").mkdir()
        (tmp_path / "my code" / "main.py").touch(mode=0o755)
        monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
        monkeypatch.chdir(tmp_path)
        assert started("my code/main.py") == ["/usr/bin/python3", str(tmp_path / "my code" / "main.py")]
        assert invocation.shell_name() == "/usr/bin/python3 'my code/main.py'"

    def test_a_module_is_called_as_one(self, started) -> None:
        assert started("/site-packages/bassline/__main__.py", "bassline.__main__") == [sys.executable, "-m", "bassline"]
