"""The program as a user starts it, in a real window under a window manager, driven by keys alone."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEMO = "demo"
TOOLS = ("Xvfb", "openbox", "xdotool")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]

pytestmark = [
    pytest.mark.real_window,
    pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} not installed"),
    pytest.mark.timeout(150),
]


@contextmanager
def running(command: list[str], env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=env, cwd=ROOT, stdout=file, stderr=file)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(8)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Desk:
    """A screen with a window manager, and hands on its keyboard."""

    def __init__(self, display: str, log: Path):
        self.env = {k: v for k, v in os.environ.items() if k not in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY")}
        self.env |= {"DISPLAY": display, "QT_QPA_PLATFORM": "xcb"}
        self.log = log

    def do(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(["xdotool", *words], env=self.env, capture_output=True, text=True, timeout=20)
        assert done.returncode == 0 or not check, f"xdotool {words}: {done.stderr}"
        return done.stdout.strip()

    def keys(self, *names: str) -> None:
        self.do("key", "--delay", "60", *names)

    def type(self, text: str) -> None:
        self.do("type", "--delay", "12", text)

    def focus(self, title: str) -> None:
        """Wait for a window whose title begins so, and give it the keyboard."""
        found = until(lambda: self.shows(title), 30, title)
        self.do("windowactivate", "--sync", found.split()[-1])

    def gone(self, title: str) -> None:
        until(lambda: not self.shows(title), 20, f"no {title}")

    def shows(self, title: str) -> str:
        """The windows whose title begins so; a regular expression."""
        return self.do("search", "--onlyvisible", "--name", f"^{title}", check=False)


def until(fact: Callable[[], object], seconds: float, what: str) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = fact()
        if value:
            return str(value)
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds} s")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ExitStack() as stack:
        read, write = os.pipe()
        with (tmp_path / "xvfb.log").open("wb") as log:
            server = subprocess.Popen(
                ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x800x24", "-nolisten", "tcp"],
                pass_fds=[write],
                stdout=log,
                stderr=log,
            )
        stack.callback(server.wait)
        stack.callback(server.terminate)
        os.close(write)
        with os.fdopen(read) as pipe:
            number = pipe.readline().strip()
        assert number, "Xvfb did not start"
        result = Desk(f":{number}", tmp_path / "window.log")
        stack.enter_context(running(["openbox"], result.env, tmp_path / "openbox.log"))
        # Without a window manager xdotool prints 0 (and fails); with one there is a desktop at least.
        until(lambda: result.do("get_num_desktops", check=False) not in ("", "0"), 20, "a window manager")
        yield result


class Session:
    """The program in its window, and the hands that use it."""

    def __init__(self, desk: Desk, program: subprocess.Popen[bytes]):
        self.desk, self.program = desk, program
        desk.focus("Bassline")

    def fill(self, key: str, text: str) -> None:
        self.desk.keys(key, "ctrl+a")
        self.desk.type(text)

    def wait(self, title: str, seconds: float) -> None:
        """The window's title tells how far the run is."""
        until(lambda: self.desk.shows(f"Bassline: {title}") or self.program.poll() is not None, seconds, title)
        assert self.program.poll() is None, self.desk.log.read_text()

    def run_tests(self) -> bool:
        """Whether they were run: where no box can be made a question appears, and the answer here is no."""
        self.desk.keys("ctrl+t")
        settled = "(Stopped, |Failed, )?[0-9]+ of [0-9]+ finished, [0-9]+ passed$"
        until(lambda: self.desk.shows(f"Bassline: {settled}") or self.desk.shows("Run the tests"), 60, "verdicts")
        if self.desk.shows("Run the tests"):
            self.desk.keys("Escape")
            self.desk.gone("Run the tests")
            return False
        return True

    def save(self, key: str, dialog: str, path: Path) -> None:
        self.desk.focus("Bassline")
        self.desk.keys(key)
        self.desk.focus(dialog)
        self.desk.keys("ctrl+a")
        self.desk.type(str(path))
        self.desk.keys("Return")
        self.desk.gone(dialog)
        until(path.exists, 10, str(path))


PROMPT = "Write a Python function double(x) that returns x times 2."
TESTS = "assert double(2) == 4"


def play(desk: Desk, home: Path, folder: Path, model: str) -> None:
    """Type, generate, test the first finished ones, save, export, quit; then compare what was written."""
    folder.mkdir()
    code, run = folder / "mine.py", folder / "run"
    words = [sys.executable, "main.py", *(["--demo"] if model == DEMO else [])]
    with running(words, desk.env | {"BASSLINE_HOME": str(home)}, desk.log) as program:
        session = Session(desk, program)
        if model != DEMO:
            session.fill("alt+m", model)
            session.fill("alt+x", "48")
        session.fill("alt+n", "4")
        session.fill("alt+2", TESTS)
        session.fill("alt+1", PROMPT)
        desk.keys("ctrl+Return")
        session.wait("[1-4] of 4 finished", 60)
        tested = session.run_tests()
        session.wait("4 of 4 finished", 60)
        session.save("ctrl+s", "Save code", code)
        session.save("ctrl+shift+e", "Export run", run)
        desk.focus("Bassline")
        desk.keys("ctrl+q")
        assert program.wait(20) == 0, desk.log.read_text()
    compare(code, run, tested)
    left = desk.log.read_text()
    assert "Traceback" not in left, left
    assert "QThread" not in left, left


def compare(code: Path, run: Path, tested: bool) -> None:
    until((run / "result.json").exists, 10, "result.json")
    result = json.loads((run / "result.json").read_bytes())
    first = result["candidates"][0]
    assert code.read_bytes() == first["code"].encode()
    assert first["code"] in first["text"]
    assert len(result["candidates"]) == 4
    assert result["request"]["prompt"] == PROMPT
    assert (run / "tests.py").read_text() == TESTS
    assert any(candidate["tests"] for candidate in result["candidates"]) == tested


def test_recorded_answers_by_keys(desk: Desk, tmp_path: Path) -> None:
    play(desk, tmp_path / "home", tmp_path / "out", DEMO)


@pytest.mark.real_model
def test_small_model_by_keys(desk: Desk, small_model: str, small_model_home: Path, tmp_path: Path) -> None:
    play(desk, small_model_home, tmp_path / "out", small_model)
