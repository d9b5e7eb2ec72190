"""The window as a person meets it: names, keys, tooltips, what it remembers, how fast it is there."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.ui.actions import ACTIONS, MENUS, ActionState, shortcuts_page
from app.ui.theme import Theme
from app.widgets.code_editor import CodeEditor
from app.widgets.loading_strip import in_numbers
from app.widgets.main_window import first_size
from engine.contract import Loading
from engine.scripted import Script, ScriptedCandidate
from tests.app.screenshots import STATES, names, take
from tests.app.stage import Stage, stage

ROOT = Path(__file__).resolve().parents[2]
NAMED = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QTabBar,
)


def nameless(window: QWidget) -> list[str]:
    """Controls without an accessible name; parts that Qt makes for its own widgets are theirs to name."""
    found = []
    for widget in window.findChildren(QWidget):
        parent = widget.parent()
        own = isinstance(parent, QLineEdit | QTabBar | QAbstractItemView) or isinstance(widget, QHeaderView)
        own = own or widget.objectName().startswith("qt_") or "QComboBoxPrivate" in parent.metaObject().className()
        if isinstance(widget, NAMED) and not own and not widget.accessibleName():
            found.append(f"{type(widget).__name__} in {type(parent).__name__}")
    return found


def test_every_control_has_a_name_in_every_state(on: Stage) -> None:
    """A screen reader finds every control by name."""
    assert nameless(on.window) == []
    on.generate(3)
    on.finish()
    on.do("run_tests")
    on.settle()
    for way in ("go_to_answer", "go_to_test_log", "go_to_details"):
        on.do(way)
        assert nameless(on.window) == []
    on.do("save")
    assert on.window.page.tabs.accessibleTabName(1).startswith("Candidate 2, finished, ")


def test_labels_show_what_models_wrote_as_plain_text(on: Stage) -> None:
    assert {label.textFormat() for label in on.window.findChildren(QLabel)} == {Qt.TextFormat.PlainText}


def test_every_action_that_is_greyed_says_why(on: Stage) -> None:
    for situation in (
        ActionState(),
        ActionState(has_prompt=True, running=True, stopping=True),
        ActionState(closing=True),
    ):
        on.window.enable(situation)
        for action in ACTIONS:
            shown = on.window.actions_by_id[action.id]
            assert shown.isEnabled() == (not action.blocked(situation))
            assert shown.toolTip().startswith(action.blocked(situation) or action.tip)
    for button in on.window.bar.findChildren(QAbstractButton):
        assert button.toolTip()


def test_generate_and_stop_never_move(on: Stage) -> None:
    buttons = [b for b in on.window.bar.findChildren(QAbstractButton) if b.text() in ("Generate", "Stop", "Run tests")]
    places = [button.geometry() for button in buttons]
    assert len(places) == 3
    on.generate(3)
    on.until(lambda: on.controller.run is not None and on.controller.run.state == "generating")
    assert [button.geometry() for button in buttons] == places
    on.do("stop")
    on.finish()
    assert [button.geometry() for button in buttons] == places
    assert all(button.isVisible() for button in buttons)


def test_actions_are_told_apart() -> None:
    ids, keys = [a.id for a in ACTIONS], [a.key for a in ACTIONS if a.key]
    assert len(set(ids)) == len(ids)
    assert len(set(keys)) == len(keys)
    assert all(QKeySequence(key).toString() for key in keys)
    assert {action.menu for action in ACTIONS} == set(MENUS)
    plain = [key for key in keys if "+" not in key and not key.startswith("F")]
    assert plain == []


def test_shortcuts_page_is_true() -> None:
    page = (ROOT / "docs" / "shortcuts.md").read_text("utf-8")
    assert page == shortcuts_page(), "run: python -m app.ui.actions > docs/shortcuts.md"


def test_keys_alone_do_the_whole_flow(on: Stage, qtbot: QtBot) -> None:
    """Without the mouse, from the prompt to the test log."""
    window = on.window
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    window.prompt.setFocus()
    control, alt = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier
    window.prompt.clear()
    qtbot.keyClicks(window.prompt, "add numbers")
    qtbot.keyClick(window, Qt.Key.Key_2, alt)
    assert window.tests.hasFocus()
    qtbot.keyClick(window, Qt.Key.Key_1, alt)
    assert window.prompt.hasFocus()
    qtbot.keyClick(window.prompt, Qt.Key.Key_Return)
    assert window.prompt.text() == "add numbers\n"  # Enter never sends
    assert on.controller.run is None
    window.bar.apply(window.bar.settings())
    qtbot.keyClick(window.prompt, Qt.Key.Key_Return, control)
    on.finish()
    assert on.controller.run is not None
    assert on.controller.run.request.prompt == "add numbers\n"
    qtbot.keyClick(window, Qt.Key.Key_3, control)
    assert window.page.number == 3
    qtbot.keyClick(window, Qt.Key.Key_T, control)
    on.settle()
    qtbot.keyClick(window, Qt.Key.Key_F8)
    assert window.page.number == 4
    qtbot.keyClick(window, Qt.Key.Key_PageDown, control)
    assert window.page.number == 5
    qtbot.keyClick(window, Qt.Key.Key_5, alt)
    assert window.page.log.focusWidget() is not None or window.page.log.hasFocus()


def test_tab_reaches_every_control_and_comes_round(on: Stage, qtbot: QtBot) -> None:
    on.generate(2)
    on.finish()
    on.window.activateWindow()
    qtbot.waitUntil(on.window.isActiveWindow)
    on.window.prompt.setFocus()
    seen: list[str] = []
    for _ in range(60):
        widget = on.window.focusWidget()
        assert widget is not None
        name = widget.accessibleName() or type(widget).__name__
        if name in seen[:1] and len(seen) > 3:
            break
        seen.append(name)
        control = Qt.KeyboardModifier.ControlModifier if isinstance(widget, CodeEditor) else Qt.KeyboardModifier(0)
        qtbot.keyClick(widget, Qt.Key.Key_Tab, control)
    expected = {"Prompt", "Candidates", "View of the candidate", "Code", "Generate", "Run tests", "Copy", "Seed"}
    assert expected <= set(seen), seen
    assert seen.count("Prompt") == 1


def test_number_buttons_and_box_agree(on: Stage) -> None:
    bar = on.window.bar
    for count in (1, 4, 16, 32):
        next(b for b in bar.findChildren(QAbstractButton) if b.text() == str(count)).click()
        assert bar.settings().candidates == count
    bar._candidates.set_value(5)
    assert not any(b.isChecked() for b in bar._quick.buttons())
    bar._candidates.set_value(4)
    assert [b.text() for b in bar._quick.buttons() if b.isChecked()] == ["4"]


def test_a_model_can_be_typed(on: Stage) -> None:
    on.window.bar.choose_model("/some/folder")
    assert on.window.bar.settings().model == "/some/folder"
    on.window.bar.choose_model("default")
    assert on.window.bar.settings().model == "default"


def test_size_is_remembered(theme: Theme, tmp_path: Path) -> None:
    with stage(theme, tmp_path) as first:
        first.window.show()
        first.window.resize(1000, 666)
        first.window._splitter.setSizes([400, 564])
        first_sizes = first.window._splitter.sizes()
    with stage(theme, tmp_path) as second:
        second.window.show()
        assert (second.window.width(), second.window.height()) == (1000, 666)
        assert second.window._splitter.sizes() == first_sizes
        second.window.resize(10, 10)
        assert (second.window.width(), second.window.height()) == (1000, 640)
    assert (tmp_path / "window.ini").exists()


def test_the_first_window_and_its_title_bar_fit_the_screen(on: Stage) -> None:
    assert first_size(QSize(1280, 720), 30) == QSize(1280, 690)
    assert first_size(QSize(2560, 1400), 30) == QSize(1280, 760)
    screen = on.window.screen().availableSize()
    assert on.window.height() < screen.height()


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Loading("download", 77_000_000, 491_400_064), "77 of 491 MB, 15 %"),
        (Loading("download", 5_000_000), "5 MB"),
        (Loading("warm-up", 1, 4, "steps"), "1 of 4 steps, 25 %"),
        (Loading("check", unit="steps"), ""),
    ],
)
def test_loading_in_numbers(event: Loading, words: str) -> None:
    assert in_numbers(event) == words


def test_hidden_candidates_have_no_editor(on: Stage) -> None:
    on.generate(32)
    on.until(lambda: on.controller.run is not None and on.controller.run.state == "generating")
    assert len(on.window.page.findChildren(QPlainTextEdit)) == 3  # code, whole answer, printed output
    assert on.window.page.answer.toPlainText() == ""


def test_reader_keeps_the_place_in_each_candidate(on: Stage) -> None:
    on.generate(2)
    on.finish()
    on.window.page.code.find("total")
    on.do("candidate_2")
    assert not on.window.page.code.textCursor().hasSelection()
    on.do("candidate_1")
    assert on.window.page.code.textCursor().selectedText() == "total"


def test_a_candidate_that_has_ended_opens_at_its_beginning(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(Script((ScriptedCandidate(tuple(f"line_{n} = {n}\n" for n in range(200))),)))
    on.write()
    on.generate(2)
    bar = on.window.page.code.verticalScrollBar()
    on.until(lambda: on.controller.run is not None and on.controller.run.candidates[1].tokens > 120)
    assert bar.value() == bar.maximum() > 0  # the end is followed while it streams
    on.do("candidate_2")
    assert bar.value() == bar.maximum() > 0
    on.finish()
    for number in (1, 2):
        on.do(f"candidate_{number}")
        assert (bar.value(), bar.maximum() > 0) == (0, True)
    bar.setValue(20)
    on.do("candidate_1")
    on.do("candidate_2")
    assert bar.value() == 20
    on.controller.running.show(on.controller.run)  # opened again
    assert bar.value() == 0


def test_pictures_are_complete_and_small(theme: Theme, tmp_path: Path) -> None:
    assert {path.name for path in (ROOT / "docs" / "screenshots").glob("*.png")} == set(names())
    for path in (ROOT / "docs" / "screenshots").glob("*.png"):
        assert path.stat().st_size <= 150_000
    state = next(iter(STATES))
    try:
        assert take(theme, state, "dark", tmp_path, tmp_path).stat().st_size > 5_000
    finally:
        theme.force("")


# What a child process does before its own part: `later` runs a function when the window is there.
CHILD = """
import os, signal, sys, time
start = time.monotonic()
from PySide6.QtCore import QTimer
import app.window.start

build = app.window.start.build

def later(milliseconds, do):
    def build_and_plan(*args):
        controller = build(*args)
        QTimer.singleShot(milliseconds, lambda: do(controller.window))
        return controller
    app.window.start.build = build_and_plan
"""
START = """
def look(window):
    assert window.windowTitle() == "Bassline"
    assert "torch" not in sys.modules, "torch was imported"
    assert "transformers" not in sys.modules
    print(f"{time.monotonic() - start:.3f}")
    window.close()

later(20, look)
sys.exit(app.window.start.main([]))
"""


def child(code: str, home: Path) -> subprocess.CompletedProcess[str]:
    env = {"BASSLINE_HOME": str(home), "QT_QPA_PLATFORM": "offscreen", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-W", "error", "-c", CHILD + code]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=30)


def test_window_starts_soon_without_torch_and_leaves_with_zero(tmp_path: Path) -> None:
    done = child(START, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.replace("This plugin does not support propagateSizeHints()\n", "") == ""
    assert float(done.stdout) < 6.0  # 1.5 s on idle cores; tests share them


CRASH = """
def fail(window):
    QTimer.singleShot(100, lambda: look(window))
    raise ValueError("a slot broke")

def look(window):
    print(window.notice.sentence)
    window.close()

later(20, fail)
sys.exit(app.window.start.main([]))
"""


def test_an_error_nobody_caught_is_a_sentence_and_in_the_log(tmp_path: Path) -> None:
    done = child(CRASH, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a slot broke" in done.stdout
    assert "ValueError: a slot broke" in (tmp_path / "logs" / "window.log").read_text("utf-8")


CLOSE_BY_SIGNAL = """
def begin(window):
    window.actions_by_id["generate"].trigger()
    QTimer.singleShot(300, lambda: os.kill(os.getpid(), signal.SIGTERM))

later(100, begin)
sys.exit(app.window.start.main(["--demo"]))
"""


def test_a_polite_kill_in_the_middle_of_a_run_ends_in_order(tmp_path: Path) -> None:
    done = child(CLOSE_BY_SIGNAL, tmp_path)
    assert done.returncode == 0, done.stderr


def test_real_runner_answers_cross_into_the_main_thread(
    theme: Theme, tmp_path: Path, open_stage: Callable[..., Stage], qtbot: QtBot
) -> None:
    from engine.runner.client import RunnerClient

    on = open_stage()
    on.controller.runner._open_runner = RunnerClient
    on.write()
    on.generate(3)
    on.finish()
    on.do("run_tests")
    qtbot.waitUntil(lambda: not on.controller.running.testing, timeout=30_000)
    run = on.controller.run
    assert run is not None
    found = {number: candidate.report.verdict for number, candidate in run.candidates.items() if candidate.report}
    if "infra" in found.values() or not found:
        pytest.skip(f"no box on this machine: {found}")
    assert found == {1: "pass", 2: "fail", 3: "pass"}
