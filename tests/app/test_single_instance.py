"""A second start raises the first window and leaves; other data is another Bassline; a killed one is no hindrance."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.system.single_instance import SingleInstance

ROOT = Path(__file__).resolve().parents[2]
FIRST = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from app.system.single_instance import SingleInstance
application = QCoreApplication([])
alone = SingleInstance(Path(sys.argv[1]))
print(alone.claim(), flush=True)
sys.exit(application.exec())
"""


def test_the_second_calls_the_first(tmp_path: Path, qtbot: QtBot) -> None:
    first, second = SingleInstance(tmp_path), SingleInstance(tmp_path)
    assert first.claim()
    with qtbot.waitSignal(first.raise_wanted):
        assert not second.claim()
    other = SingleInstance(tmp_path / "other")
    assert other.claim()
    first.close()
    assert second.claim()
    for instance in (second, other):
        instance.close()


def test_what_a_kill_leaves_behind_is_cleared(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FIRST, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "True\n"
        assert not SingleInstance(tmp_path).claim()
        child.send_signal(signal.SIGKILL)
    after = SingleInstance(tmp_path)
    assert after.claim()
    assert not SingleInstance(tmp_path).claim()
    after.close()


def test_the_program_started_twice(tmp_path: Path) -> None:
    """The second start ends at once with exit code 0; the first window comes to the front."""
    code = """
import sys
import app.window.start
from app.widgets.main_window import MainWindow
raised = MainWindow.come_to_front
def told(window):
    raised(window)
    print("raised", flush=True)
    window.close()
MainWindow.come_to_front = told
shown = MainWindow.showEvent
def show(window, event):
    shown(window, event)
    print("shown", flush=True)
MainWindow.showEvent = show
sys.exit(app.window.start.main([]))
"""
    env = os.environ | {"BASSLINE_HOME": str(tmp_path), "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "shown\n"
        second = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (second.returncode, second.stdout) == (0, "")
        assert second.stderr == "Bassline is already open; its window was brought to the front.\n"
        assert first.stdout.readline() == "raised\n"
        assert first.wait(30) == 0
