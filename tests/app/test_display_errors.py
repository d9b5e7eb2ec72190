"""A window that cannot open says why, and ends with the exit code of bad surroundings."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.system import display_errors
from app.system.display_errors import reason

ROOT = Path(__file__).parents[2]
VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "QT_QPA_PLATFORM_PLUGIN_PATH", "XDG_RUNTIME_DIR")
NO_DISPLAY_XCB = """\
could not connect to display :4711
From 6.5.0, xcb-cursor0 or libxcb-cursor0 is needed to load the Qt xcb platform plugin.
Could not load the Qt platform plugin "xcb" in "" even though it was found.
This application failed to start because no Qt platform plugin could be initialized."""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no display to name")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def start(home: Path, *words: str, patience: float = 40, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, str(ROOT / "main.py"), *words]
    variables["BASSLINE_HOME"] = str(home)
    return subprocess.run(command, env=env | variables, capture_output=True, text=True, timeout=patience, check=False)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"DISPLAY": ":4711"}, "no display answers (DISPLAY=:4711)"),
        ({"DISPLAY": "no-such-host.invalid:10.0"}, "no display answers (DISPLAY=no-such-host.invalid:10.0)"),
        ({"WAYLAND_DISPLAY": "wayland-4711"}, "no display answers (WAYLAND_DISPLAY=wayland-4711)"),
        ({"WAYLAND_DISPLAY": "w-1", "DISPLAY": ":4711"}, "no display answers (DISPLAY=:4711, WAYLAND_DISPLAY=w-1)"),
        ({"QT_QPA_PLATFORM": "wayland"}, "QT_QPA_PLATFORM is wayland, and there is no such display here; unset it"),
        ({"QT_QPA_PLATFORM": "xcb"}, "QT_QPA_PLATFORM is xcb, and there is no such display here; unset it"),
        ({"QT_QPA_PLATFORM": "nonsense"}, "QT_QPA_PLATFORM is nonsense, and Qt does not start with it; unset it"),
    ],
)
@pytest.mark.parametrize("words_given", [[], ["--demo"]])
def test_a_display_that_leads_nowhere(
    tmp_path: Path, variables: dict[str, str], words: str, words_given: list[str]
) -> None:
    done = start(tmp_path, *words_given, **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("The window cannot open")
    assert words in done.stderr
    assert "main.py generate" in done.stderr


def test_a_library_counts_only_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    without_display = "\n".join(NO_DISPLAY_XCB.splitlines()[1:])
    assert "no display answers" in reason(NO_DISPLAY_XCB, ["libxcb-cursor.so.0"])
    assert "no display answers" in reason(without_display)
    assert reason(without_display, ["libxcb-cursor.so.0", "libEGL.so.1"]) == (
        "The window cannot open, because the system lacks libxcb-cursor.so.0, libEGL.so.1; install what is missing."
    )


def test_a_folder_without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("QT_QPA_PLATFORM_PLUGIN_PATH", "/old/program")
    said = 'Could not find the Qt platform plugin "xcb" in "/old/program"'
    assert "QT_QPA_PLATFORM_PLUGIN_PATH is /old/program, where Qt finds nothing" in reason(said)


@pytest.mark.parametrize(
    ("variables", "tried"),
    [
        ({"QT_QPA_PLATFORM": "wayland", "DISPLAY": ":0"}, "wayland;xcb"),
        ({"QT_QPA_PLATFORM": "xcb", "WAYLAND_DISPLAY": "w"}, "xcb;wayland"),
        ({"QT_QPA_PLATFORM": "nonsense", "DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}, "nonsense;xcb;wayland"),
        ({"QT_QPA_PLATFORM": "xcb", "DISPLAY": ":0"}, "xcb"),
        ({"QT_QPA_PLATFORM": "wayland"}, "wayland"),
        ({"QT_QPA_PLATFORM": "offscreen", "DISPLAY": ":0"}, "offscreen"),
        ({"QT_QPA_PLATFORM": "vnc:port=5900", "DISPLAY": ":0"}, "vnc:port=5900"),
        ({"DISPLAY": ":0"}, None),
    ],
)
def test_a_platform_of_another_program_is_not_the_only_one(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], tried: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    display_errors._add_displays()
    assert os.environ.get("QT_QPA_PLATFORM") == tried


CLOSES = """
import sys
import app.window.start
from PySide6.QtCore import QTimer
build = app.window.start.build
def closing(*args):
    controller = build(*args)
    QTimer.singleShot(200, controller.shut_down)
    return controller
app.window.start.build = closing
sys.exit(app.window.start.main([]))
"""


@pytest.fixture
def display() -> Iterator[str]:
    server = shutil.which("Xvfb")
    if server is None:
        pytest.skip("no Xvfb to show a window on")
    reader, writer = os.pipe()
    with subprocess.Popen([server, "-displayfd", str(writer)], pass_fds=[writer], stderr=subprocess.DEVNULL) as running:
        os.close(writer)
        try:
            yield f":{os.read(reader, 20).decode().strip()}"
        finally:
            os.close(reader)
            running.terminate()


@pytest.mark.parametrize("chosen", ["", "wayland", "nonsense"])
def test_a_display_that_answers_is_used(tmp_path: Path, display: str, chosen: str) -> None:
    env = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    env |= {"DISPLAY": display, "BASSLINE_HOME": str(tmp_path)} | ({"QT_QPA_PLATFORM": chosen} if chosen else {})
    command = [sys.executable, "-c", CLOSES]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_home_that_cannot_be_written_still_has_a_window(tmp_path: Path) -> None:
    """Not a folder, so that it holds for the system's administrator too."""
    (tmp_path / "file").write_text("")
    env = os.environ | {"QT_QPA_PLATFORM": "offscreen", "BASSLINE_HOME": str(tmp_path / "file" / "home")}
    command = [sys.executable, "-c", CLOSES]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
