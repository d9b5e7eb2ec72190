"""The view never moves what the reader holds, and shows what it cannot show as such."""

import pytest
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.ui.highlight import LONGEST_LINE, displayed
from app.ui.theme import Theme
from app.widgets.code_view import CodeView


@pytest.fixture
def view(theme: Theme, qtbot: QtBot) -> CodeView:
    result = CodeView(theme, "Code")
    qtbot.addWidget(result)
    result.resize(400, 200)
    result.show()
    return result


def lines(count: int, start: int = 0) -> str:
    return "".join(f"line {number}\n" for number in range(start, start + count))


def test_streaming_follows_the_end_while_the_reader_is_there(view: CodeView) -> None:
    for start in range(0, 100, 5):
        view.stream(lines(5, start))
        QApplication.processEvents()
        assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    assert view.verticalScrollBar().maximum() > 50


def test_streaming_leaves_a_reader_who_went_up(view: CodeView) -> None:
    """The view stays where the reader is."""
    view.stream(lines(100))
    view.verticalScrollBar().setValue(10)
    view.stream(lines(100, 100))
    assert view.verticalScrollBar().value() == 10
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
    view.stream(lines(5, 200))
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


@pytest.mark.parametrize("backwards", [False, True])
def test_streaming_leaves_a_selection_that_reaches_the_end(view: CodeView, backwards: bool) -> None:
    view.stream(lines(100))
    cursor = view.textCursor()
    end = view.document().characterCount() - 1
    places = (end, end - 20) if backwards else (end - 20, end)
    cursor.setPosition(places[0])
    cursor.setPosition(places[1], QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    top = view.verticalScrollBar().value()
    view.stream(lines(100, 100))
    assert (view.textCursor().anchor(), view.textCursor().position()) == places
    assert view.verticalScrollBar().value() == top  # the reader is at work, the end can wait


def test_settling_takes_away_what_is_around_the_code_and_keeps_the_selection(view: CodeView) -> None:
    code = lines(30)
    view.stream(f"Here \U0001f600 it is:\n```python\n{code}```\nEnjoy!")
    view.find("line 17")
    assert view.textCursor().selectedText() == "line 17"
    view.settle(code, "python")
    assert view.toPlainText() == code
    assert view.textCursor().selectedText() == "line 17"


def test_settling_on_other_text_replaces_from_the_first_difference(view: CodeView) -> None:
    view.stream("a = 1\nb = \U0001f600\nc")
    view.settle("a = 1\nb = \U0001f601\nd = 2\n", "python")
    assert view.toPlainText() == "a = 1\nb = \U0001f601\nd = 2\n"


@pytest.mark.parametrize("cut", range(1, 9))
def test_line_ends_split_between_pieces_are_one(view: CodeView, cut: int) -> None:
    text = "a\r\nb\rc\n\r\n"
    view.stream(text[:cut])
    view.stream(text[cut:])
    view.settle(text, "python")
    assert view.toPlainText() == "a\nb\nc\n\n"


def test_a_place_is_found_again(view: CodeView) -> None:
    view.settle(lines(200), "python")
    view.find("line 150")
    view.verticalScrollBar().setValue(99)
    place = view.place()
    view.clear_all()
    view.settle(lines(200), "python")
    view.go_to(place)
    assert view.place() == place
    assert view.textCursor().selectedText() == "line 150"


def test_colours_are_ranges_in_utf16_and_leave_the_text_alone(view: CodeView, qtbot: QtBot) -> None:
    code = 's = "\U0001f600\U0001f600"  # ok\r\ndef f(): return 1\n'
    view.settle(code, "python")
    qtbot.waitUntil(lambda: not view._colouring.busy)
    first, second = view.document().findBlockByNumber(0), view.document().findBlockByNumber(1)
    pieces = [(r.start, r.length) for r in first.layout().formats()]
    assert (first.text().index('"'), 6) in pieces or sum(n for _, n in pieces) >= 6
    comment = first.layout().formats()[-1]
    assert (comment.start, comment.length) == (len(first.text().encode("utf-16-le")) // 2 - 4, 4)
    assert (second.layout().formats()[0].start, second.layout().formats()[0].length) == (0, 3)
    assert view.toPlainText() == code.replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("text", "sign"),
    [("x" * 200_001, "without colours"), ("y" * 30_000 + "\nz = 1", "shortened")],
    ids=["large", "long line"],
)
def test_what_is_too_large_is_shown_plain_and_says_so(view: CodeView, text: str, sign: str) -> None:
    view.settle(text, "python")
    assert sign in view.notice
    assert "Copy and save give all of it." in view.notice
    assert not view._colouring.busy
    assert all(len(line) <= LONGEST_LINE for line in view.toPlainText().split("\n"))


def test_signs_stand_for_what_cannot_be_seen() -> None:
    assert displayed("\x1b[31m\x00\ufeff\u2029\x7f\ud800") == "␛[31m␀\ufffd\n␡\ufffd"
    assert displayed("a\tb\u2028\u00a0\u200f\n") == "a\tb\u2028\u00a0\u200f\n"


def test_forty_kilobytes_are_coloured_soon(view: CodeView, qtbot: QtBot) -> None:
    code = "def f(x):\n    return x + 1  # more\n\n" * 1100
    view.settle(code, "python")
    qtbot.waitUntil(lambda: not view._colouring.busy, timeout=3000)
    last = view.document().findBlockByNumber(3297)
    assert last.text() == "def f(x):"
    assert last.layout().formats()
