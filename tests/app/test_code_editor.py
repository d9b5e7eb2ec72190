"""Typing: what was typed comes out, Tab is where it belongs, and there is a way out by keys."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.ui.theme import Theme
from app.widgets.code_editor import CodeEditor


@pytest.fixture
def between(theme: Theme, qtbot: QtBot) -> Iterator[tuple[QLineEdit, CodeEditor, QLineEdit]]:
    """An editor for code between two other controls."""
    window = QWidget()
    qtbot.addWidget(window)
    parts = QLineEdit(), CodeEditor(theme, "Tests", "", "python"), QLineEdit()
    column = QVBoxLayout(window)
    for part in parts:
        column.addWidget(part)
    window.show()
    window.activateWindow()
    parts[1].setFocus()
    qtbot.waitUntil(parts[1].hasFocus)
    yield parts
    window.close()


def test_what_was_typed_comes_out(theme: Theme, qtbot: QtBot) -> None:
    editor = CodeEditor(theme, "Prompt", "")
    qtbot.addWidget(editor)
    text = "a\u00a0b\u2028c\n\t\U0001f600 "
    editor.replace_text(text)
    assert editor.text() == text
    editor.undo()
    assert editor.text() == ""


def test_tab_indents_code_and_ctrl_tab_leaves(between: tuple[QLineEdit, CodeEditor, QLineEdit], qtbot: QtBot) -> None:
    before, editor, after = between
    qtbot.keyClicks(editor, "ab")
    qtbot.keyClick(editor, Qt.Key.Key_Tab)
    assert editor.text() == "ab  "
    editor.replace_text("a\nb\nc")
    editor.selectAll()
    qtbot.keyClick(editor, Qt.Key.Key_Tab)
    assert editor.text() == "    a\n    b\n    c"
    qtbot.keyClick(editor, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    assert editor.text() == "a\nb\nc"
    assert editor.hasFocus()
    qtbot.keyClick(editor, Qt.Key.Key_Tab, Qt.KeyboardModifier.ControlModifier)
    assert after.hasFocus()
    editor.setFocus()
    qtbot.keyClick(
        editor,
        Qt.Key.Key_Backtab,
        Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier,
    )
    assert before.hasFocus()


def test_tab_leaves_prose(theme: Theme, qtbot: QtBot) -> None:
    editor = CodeEditor(theme, "Prompt", "")
    qtbot.addWidget(editor)
    assert editor.tabChangesFocus()


def test_a_megabyte_is_pasted_in_a_second(theme: Theme, qtbot: QtBot) -> None:
    editor = CodeEditor(theme, "Tests", "", "python")
    qtbot.addWidget(editor)
    editor.show()
    text = "x = 1  # a line of code\n" * 44_000
    with qtbot.waitSignal(editor.textChanged, timeout=5000):
        editor.replace_text(text)
    assert not editor.blank
    assert editor.text() == text


def test_colours_come_after_a_rest_and_do_not_undo(
    between: tuple[QLineEdit, CodeEditor, QLineEdit], qtbot: QtBot
) -> None:
    editor = between[1]
    qtbot.keyClicks(editor, "assert f(1)")
    qtbot.waitUntil(lambda: bool(editor.document().firstBlock().layout().formats()))
    first = editor.document().firstBlock().layout().formats()[0]
    assert (first.start, first.length) == (0, 6)
    editor.undo()
    assert editor.text() == ""
