"""Displays a candidate's text. Copying, saving and testing never read it: the text lives in the run."""

from dataclasses import dataclass

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QShowEvent, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.ui.highlight import Colouring, displayed, too_large
from app.ui.theme import Theme, monospace

CORNER = 3  # pixels: what the frame's round corners take of a square


@dataclass(frozen=True)
class ViewPosition:
    """Where a reader was: the selection and how far down. ``following``: at the end, so stay there."""

    anchor: int = 0
    position: int = 0
    top: int = 0
    following: bool = True


class CodeView(QPlainTextEdit):
    """Read-only. Text is added at the end while it streams and settles, coloured, when it is complete."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None):
        super().__init__(parent)
        self._theme = theme
        self._shown = ""  # as displayed
        self._held = ""  # a CR at the end of a piece may be half of a CRLF
        self._settled: tuple[str, str] | None = None
        self.setAccessibleName(name)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setFont(monospace())
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTabStopDistance(self.fontMetrics().horizontalAdvance(" " * 4))
        self.setViewportMargins(CORNER, CORNER, CORNER, CORNER)
        self.document().setDocumentMargin(10 - CORNER)
        self._colouring = Colouring(self.document(), theme.colours)
        theme.changed.connect(self._recolour)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        super().showEvent(event)
        self._fill()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self._fill()

    def _fill(self) -> None:
        """Below a border of the sheet Qt takes a viewport for transparent, and paints all that is behind it again with
        each word that is added.
        """
        self.viewport().setAutoFillBackground(True)

    @property
    def notice(self) -> str:
        """Why the text is not shown in full colour, as a sentence, or empty."""
        return too_large(self._settled[0]) if self._settled else ""

    def clear_all(self) -> None:
        self._colouring.stop()
        self._shown, self._held, self._settled = "", "", None
        self.setPlainText("")

    def stream(self, piece: str) -> None:
        """Add ``piece`` at the end. View and selection stay where they are, unless the reader was at the end."""
        text = displayed((self._held + piece).removesuffix("\r"))
        self._held = "\r" if piece.endswith("\r") else ""
        self._edit(len(self._shown), text)

    def settle(self, text: str, language: str) -> None:
        """Show exactly ``text``, in colour if it is not too large. What stays keeps its selection and place."""
        if self._settled == (text, language):
            return
        shown = displayed(text)
        start = self._shown.find(shown) if shown and len(shown) < len(self._shown) else -1
        if start >= 0:  # the code block inside the answer that was streamed: take away what is around it
            self._cut(start + len(shown), len(self._shown))
            self._cut(0, start)
            self._shown = shown
        else:
            keep = _common(self._shown, shown)
            self._edit(keep, shown[keep:])
        self._held, self._settled = "", (text, language)
        self._recolour()

    def place(self) -> ViewPosition:
        cursor, bar = self.textCursor(), self.verticalScrollBar()
        return ViewPosition(cursor.anchor(), cursor.position(), bar.value(), self._follows())

    def go_to(self, place: ViewPosition) -> None:
        last = self.document().characterCount() - 1
        self._select(min(place.anchor, last), min(place.position, last))
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum() if place.following else place.top)

    def _edit(self, keep: int, text: str) -> None:
        """Keep the first ``keep`` characters and put ``text`` in the place of the rest, by a cursor of our own."""
        if not text and keep == len(self._shown):
            return
        across, down, reader = self.horizontalScrollBar(), self.verticalScrollBar(), self.textCursor()
        follows, left, top = self._follows(), across.value(), down.value()
        if keep < len(self._shown):
            self._cut(keep, len(self._shown))
            reader = self.textCursor()
        anchor, position = reader.anchor(), reader.position()
        writer = QTextCursor(self.document())
        writer.beginEditBlock()  # within one a cursor has no line laid out only to know where it stands
        writer.setPosition(self.document().characterCount() - 1)
        writer.insertText(text)
        writer.endEditBlock()
        self._shown = self._shown[:keep] + text
        self._select(anchor, position)  # Qt pushes a cursor along when text is added where it stands
        across.setValue(left)
        down.setValue(down.maximum() if follows else top)

    def _select(self, anchor: int, position: int) -> None:
        cursor = self.textCursor()
        if (cursor.anchor(), cursor.position()) != (anchor, position):
            cursor.setPosition(anchor)
            cursor.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(cursor)

    def _cut(self, start: int, end: int) -> None:
        cursor = QTextCursor(self.document())
        cursor.setPosition(_units(self._shown, start))
        cursor.setPosition(_units(self._shown, end), QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()

    def _follows(self) -> bool:
        bar = self.verticalScrollBar()
        return bar.value() >= bar.maximum() and not self.textCursor().hasSelection()

    def _recolour(self) -> None:
        if self.font() != monospace():
            self.setFont(monospace())
        self._colouring.use(self._theme.colours)
        if self._settled and not self.notice:
            self._colouring.colour(self._shown, self._settled[1])
        else:
            self._colouring.stop()


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _units(text: str, index: int) -> int:
    """Qt counts UTF-16 units where Python counts characters."""
    head = text[:index]
    return index if head.isascii() else len(head.encode("utf-16-le", "surrogatepass")) // 2
