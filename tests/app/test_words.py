"""Every text of the window goes through tr: under a translator that marks what it translates, no text is bare."""

import re
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QTranslator
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.widgets.start_page import examples
from app.window.start import model_names
from tests.app.stage import FIRST_WORDS, LAMPS, PROMPT, Stage, stage

MARK = "¶"
# What is no prose: numbers, names, keys, code, units.
BARE = re.compile(r"[\W\d_]*|int8|int4|float32|float16|bfloat16|auto|coupled|rejection|Bassline|scripted|line \d")


class Marking(QTranslator):
    def translate(self, context: str, text: str, disambiguation: str | None = None, n: int = -1) -> str:
        return MARK + text if context == "Bassline" else None  # type: ignore[return-value]


@pytest.fixture
def marking(qapp: QApplication) -> Iterator[Marking]:
    translator = Marking()
    QCoreApplication.installTranslator(translator)
    yield translator
    QCoreApplication.removeTranslator(translator)


def texts(window: QWidget) -> Iterator[tuple[str, str]]:
    """Where, and what a person reads there."""
    for widget in window.findChildren(QWidget):
        kind = type(widget).__name__
        if widget.objectName().startswith("qt_") or not widget.isVisibleTo(window):
            continue
        if isinstance(widget, QAbstractButton) and isinstance(widget.parent(), QTabBar):
            continue  # what scrolls a strip is Qt's to name
        if isinstance(widget, QLabel | QAbstractButton):
            yield kind, widget.text()
        if isinstance(widget, QLineEdit):
            yield f"{kind} hint", widget.placeholderText()
        if isinstance(widget, QComboBox):
            yield from ((kind, widget.itemText(row)) for row in range(widget.count()))
        if isinstance(widget, QTabBar):
            yield from ((kind, widget.tabText(row)) for row in range(widget.count()))
        yield f"{kind} name", widget.accessibleName()
        yield f"{kind} tip", widget.toolTip()
    for action in window.findChildren(QAction):
        if action.parent() is window:
            yield "action", action.text()
            yield "action tip", action.toolTip()


def bare(window: QWidget) -> list[tuple[str, str]]:
    given = {title for title, _ in model_names()} | {PROMPT, FIRST_WORDS, *LAMPS.values()}
    given |= {text for example in examples() for text in (example.title, example.summary)}
    return [
        (where, text)
        for where, text in dict.fromkeys(texts(window))
        if text and MARK not in text and not BARE.fullmatch(text) and text not in given
    ]


def test_no_text_of_the_window_is_bare(marking: Marking, theme: object, tmp_path: object, qtbot: QtBot) -> None:
    with stage(theme, tmp_path) as on:
        on.window.show()
        on.write()
        assert bare(on.window) == []
        play(on)


def play(on: Stage) -> None:
    """Through the views and states that have words of their own."""
    on.window.actions_by_id["advanced"].setChecked(True)
    on.generate(12)
    on.until(lambda: on.controller.run is not None and on.controller.run.candidates[1].tokens > 3)
    assert bare(on.window) == []
    on.finish()
    on.do("run_tests")
    on.settle()
    on.window.page.choose(2)
    for way in ("go_to_code", "go_to_answer", "go_to_test_log", "go_to_details", "compare", "tile"):
        on.do(way)
        on.settle()
        assert bare(on.window) == [], way
    for dialog in ("palette", "shortcuts"):
        on.do(dialog)
        opened = QApplication.activeModalWidget() or next(
            w for w in on.window.findChildren(QWidget) if w.isWindow() and w.isVisible()
        )
        assert bare(opened) == [], dialog
        opened.close()
