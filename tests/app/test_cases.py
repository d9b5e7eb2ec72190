"""Inputs that broke other products, through the whole window."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage, QInputMethodEvent, QTextCursor
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.ui.theme import Theme
from app.widgets.code_editor import CodeEditor
from engine.contract import Emit, Event, ModelChoice, RunFinished, RunStarted
from engine.scripted import Script, ScriptedCandidate, ScriptedEngine, from_texts
from tests.app.stage import PROMPT, Stage

ROOT = Path(__file__).resolve().parents[2]


def finished(open_stage: Callable[..., Stage], *answers: str, chunk: int = 4096) -> Stage:
    on = open_stage(from_texts(answers, chunk=chunk))
    on.write()
    on.generate(len(answers))
    on.finish()
    return on


FORMS = {
    "```python\nx = 1\n```": "x = 1\n",
    "Here it is:\n\n```python\nx = 1\n```\nDone.": "x = 1\n",
    "```python\nx = 1\n```\nUse it so:\n```sh\npython x.py\n```": "x = 1\n",
    "1. Do this:\n   ```python\n   x = 1\n   ```": "x = 1\n",
    "````python\nx = '''\n```\n'''\n````": "x = '''\n```\n'''\n",
    "~~~python\nx = 1\n~~~": "x = 1\n",
    "```python\nx = 1\ny = 2": "x = 1\ny = 2",
    "x = 1": "x = 1",
    "```go\nvar x = 1\n```": "var x = 1\n",
    "```c++\nint x = 1;\n```": "int x = 1;\n",
    "```\nx = 1\n```": "x = 1\n",
}


@pytest.mark.parametrize(("answer", "code"), FORMS.items())
def test_the_code_of_every_form_of_answer_is_shown_and_copied(
    open_stage: Callable[..., Stage], answer: str, code: str
) -> None:
    """Only a block, prose and a block, two blocks, lists, long fences, tildes, no end, none at all, other tags."""
    on = finished(open_stage, answer, chunk=3)
    assert on.window.page.code.toPlainText() == code
    on.do("copy")
    assert QGuiApplication.clipboard().text() == code
    on.do("go_to_answer")
    assert on.window.page.answer.toPlainText() == answer


LARGE = {
    "two thousand lines": "```python\n" + "\n".join(f"x_{n} = '```'" for n in range(2000)) + "\n```",
    "one line": "x = '" + "x" * 1_000_000,
    "four hundred kilobytes": "value = 'some text'  # and a remark\n" * 11_000,
}


@pytest.mark.parametrize("answer", LARGE.values(), ids=LARGE)
def test_large_answers_are_shown_as_far_as_sense_goes_and_copied_whole(
    open_stage: Callable[..., Stage], answer: str
) -> None:
    """2,000 lines with fences, a line of a million characters, 400 kB."""
    on = finished(open_stage, answer, chunk=50_000)
    run = on.controller.run
    assert run is not None
    assert run.candidates[1].text == answer
    on.do("copy")
    assert QGuiApplication.clipboard().text() == run.candidates[1].code
    note = on.window.page._note
    assert note.isVisible() == (len(answer) > 200_000)
    if note.isVisible():
        assert note.text().endswith("Copy and save give all of it.")


def test_another_model_while_generating_waits_for_the_next_run(on: Stage) -> None:
    """The run that goes on is not touched; the next Generate loads the other model."""
    on.generate(3)
    on.until(lambda: on.controller.run is not None and on.controller.run.state == "generating")
    on.window.bar.choose_model("default")
    assert not on.window.actions_by_id["generate"].isEnabled()
    on.finish()
    assert on.controller.run is not None
    assert on.controller.run.outcome == "finished"
    assert len(on.engines) == 1
    on.do("generate")
    on.finish()
    assert len(on.engines) == 2
    assert on.controller.loading.loaded == ModelChoice("default")


PASTED = {
    "300 lines": "x = 1\n" * 300,
    "10,000 lines": "x = 1\n" * 10_000,
    "1 MB": "x = 'some text'\n" * 65_536,
    "one line of 1 MB": "x" * 1_000_000,
}


@pytest.mark.parametrize("text", PASTED.values(), ids=PASTED)
def test_large_pastes_arrive_whole_and_soon(on: Stage, text: str) -> None:
    """Into the prompt and into the tests, by the clipboard."""
    for editor in (on.window.prompt, on.window.tests):
        QGuiApplication.clipboard().setText(text)
        editor.selectAll()
        start = time.monotonic()
        editor.paste()
        QApplication.processEvents()
        assert time.monotonic() - start < 8  # 1 s on idle cores; tests share them
        assert editor.text() == text


class Narrow(ScriptedEngine):
    """Counts the prompt before it starts, as the sampler does."""

    def run(self, emit: Emit) -> None:
        def heed(event: Event) -> None:
            if isinstance(event, RunStarted):
                raise TooLong(event.run)
            emit(event)

        try:
            super().run(heed)
        except TooLong as error:
            emit(RunFinished(str(error), "refused", reason=TOO_LONG))
            super().run(emit)


class TooLong(Exception):
    pass


TOO_LONG = "The prompt has 8,193 tokens and the model reads 8,192; shorten it by 1 token."


def test_a_prompt_over_the_limit_is_refused_with_numbers(open_stage: Callable[..., Stage]) -> None:
    """One token too many; nothing starts, the window says the engine's sentence and keeps the prompt."""
    on = open_stage()
    on.write()
    on.controller.loading.open_engine = lambda choice: Narrow(on.script, on.clock)
    on.generate(2)
    on.until(lambda: on.window.notice.isVisible())
    assert on.window.notice.sentence == TOO_LONG
    assert on.window.prompt.text() == PROMPT
    run = on.controller.run
    assert run is not None
    assert {candidate.state for candidate in run.candidates.values()} == {"failed"}
    assert on.window.actions_by_id["generate"].isEnabled()


def test_text_that_is_being_composed_is_never_sent(on: Stage, qtbot: QtBot) -> None:
    """An input method shows text before it is entered; Enter belongs to it, and in the editor makes a line."""
    on.window.prompt.setFocus()
    on.window.prompt.replace_text("")
    QApplication.sendEvent(on.window.prompt, QInputMethodEvent("かな", []))
    qtbot.keyClick(on.window.prompt, Qt.Key.Key_Return)
    assert on.controller.run is None
    commit = QInputMethodEvent()
    commit.setCommitString("仮名")
    QApplication.sendEvent(on.window.prompt, commit)
    qtbot.keyClick(on.window.prompt, Qt.Key.Key_Enter)
    assert on.controller.run is None
    assert "仮名" in on.window.prompt.text()


PLAIN = (
    *(Qt.Key.Key_A, Qt.Key.Key_Q, Qt.Key.Key_1, Qt.Key.Key_Escape, Qt.Key.Key_Delete, Qt.Key.Key_Backspace),
    *(Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right),
)


def test_no_plain_key_loses_anything_wherever_the_focus_is(on: Stage, qtbot: QtBot) -> None:
    """Every control that takes the focus hears every plain key; run, prompt and tests stay."""
    on.generate(3)
    on.finish()
    run, prompt, tests = on.controller.run, on.window.prompt.text(), on.window.tests.text()
    assert run is not None
    before = [candidate.text for candidate in run.candidates.values()]
    controls = [
        widget
        for widget in on.window.findChildren(QWidget)
        if widget.isVisible() and widget.isEnabled() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    ]
    assert len(controls) > 20
    for widget in controls:
        if isinstance(widget, CodeEditor):
            continue  # keys are what these are for
        widget.setFocus()
        for key in PLAIN:
            qtbot.keyClick(widget, key)
    on.settle()
    assert on.controller.run is run
    assert [candidate.text for candidate in run.candidates.values()] == before
    assert (on.window.prompt.text(), on.window.tests.text()) == (prompt, tests)
    assert on.window.isVisible()


def test_a_reader_who_went_up_or_selects_is_left_alone_while_text_streams(open_stage: Callable[..., Stage]) -> None:
    """The view stays, the selection stays, also while the mouse still holds it."""
    on = open_stage(Script((ScriptedCandidate(tuple(f"line {n}\n" for n in range(300))),)))
    on.write()
    on.generate(1)
    on.until(lambda: on.controller.run is not None and on.controller.run.candidates[1].tokens > 120)
    view = on.window.page.code
    view.verticalScrollBar().setValue(10)
    cursor = view.textCursor()
    cursor.setPosition(20)
    cursor.setPosition(60, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    view.verticalScrollBar().setValue(10)
    top, selected = view.verticalScrollBar().value(), view.textCursor().selectedText()
    on.steps(40)
    assert on.controller.run is not None
    assert on.controller.run.candidates[1].tokens > 150
    assert (view.verticalScrollBar().value(), view.textCursor().selectedText()) == (top, selected)


def test_eight_candidates_fit_into_a_small_screen(on: Stage) -> None:
    """At 1280 x 720, title bar included, nothing is cut: no tab, no button, no label of the bar."""
    on.window.resize(1280, 690)
    on.generate(8)
    on.finish()
    on.do("run_tests")
    on.settle()
    assert (on.window.width(), on.window.height()) == (1280, 690)
    tabs = on.window.page.tabs
    assert all(tabs.tabRect(row).right() <= tabs.width() for row in range(tabs.count()))
    for widget in (*on.window.bar.findChildren(QWidget), *on.window.page._buttons):
        if widget.isVisible() and widget.metaObject().className() in ("QLabel", "QPushButton", "QCheckBox"):
            assert widget.width() >= widget.minimumSizeHint().width(), widget.accessibleName()
            right = widget.mapTo(on.window, widget.rect().topRight()).x()
            assert right <= on.window.width(), widget.accessibleName()


def test_the_theme_can_change_while_text_streams(on: Stage, theme: Theme) -> None:
    """Colours change at once; what is shown and where the reader is stay."""
    on.generate(4)
    on.until(lambda: on.controller.run is not None and on.controller.run.candidates[1].tokens > 10)
    shown = on.window.page.code.toPlainText()
    for name in ("dark", "contrast", "light"):
        theme.force(name)
        on.steps(1)
        assert on.window.page.code.toPlainText().startswith(shown)
        image = on.window.grab().toImage()
        assert image.pixelColor(2, image.height() - 3) == theme.colours["window"]
    theme.force("")
    on.finish()
    assert on.controller.run is not None
    assert on.controller.run.outcome == "finished"


@pytest.mark.parametrize("scale", ["1.25", "1.5", "2"])
def test_the_window_is_as_sharp_as_the_screen(tmp_path: Path, scale: str) -> None:
    """At every scale it has the same layout in more pixels, and Qt has nothing to complain about."""
    env = {"QT_SCALE_FACTOR": scale, "QT_QPA_PLATFORM": "offscreen", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tests.app.screenshots", str(tmp_path), "tested"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stderr.replace("This plugin does not support propagateSizeHints()\n", "") == ""
    image = QImage(str(tmp_path / "tested-light.png"))
    assert (image.width(), image.height()) == (round(1280 * float(scale)), round(720 * float(scale)))


def test_speed_is_what_the_engines_clock_says(open_stage: Callable[..., Stage]) -> None:
    """A token per candidate every 20 ms is 50 tokens a second each, however slow the test is."""
    on = open_stage(Script((ScriptedCandidate(tuple("abcdefgh" * 30)),), step_s=0.02))
    on.write()
    on.generate(4)
    on.until(lambda: on.controller.run is not None and on.controller.run.candidates[1].tokens > 120)
    badge = on.window.candidates.badge(0)
    assert badge is not None
    assert badge.note == "50 tok/s"
    assert "200 tok/s" in on.window.status.text
