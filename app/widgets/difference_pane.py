"""One side of a comparison: code with a mark before every line that differs."""

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent, QTextCursor, QTextFormat
from PySide6.QtWidgets import QTextEdit, QWidget

from app.item_models.difference import ADDED, CHANGED, FILLER, REMOVED, SAME, DifferenceLine
from app.ui.highlight import displayed
from app.ui.theme import Theme
from app.widgets.code_view import CodeView

_COLOURS = {ADDED: "added", REMOVED: "removed", CHANGED: "changed", FILLER: "sunken"}
_TONES = {ADDED: "passed", REMOVED: "failed", CHANGED: "warning"}
MARKED = 2000  # lines; further ones keep their mark in the margin, but no colour behind them


class DifferencePane(CodeView):
    """The marks stand in a margin of their own, so what is selected here is code."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None):
        super().__init__(theme, name, parent)
        self._lines: Sequence[DifferenceLine] = ()
        self._margin = _Margin(self, theme)
        self.setViewportMargins(self._margin.sizeHint().width(), 0, 0, 0)
        self.updateRequest.connect(lambda rect, dy: self._margin.update())
        theme.changed.connect(self._mark)

    @property
    def lines(self) -> Sequence[DifferenceLine]:
        return self._lines

    def show_lines(self, lines: Sequence[DifferenceLine], language: str) -> None:
        if list(lines) != list(self._lines):
            self._lines = lines
            self.settle("\n".join(line.text for line in lines), language)
            self._mark()

    def go_to_row(self, row: int) -> None:
        """Put the cursor there, with some lines above it in view."""
        block = self.document().findBlockByNumber(row)
        self.setTextCursor(QTextCursor(block))
        self.verticalScrollBar().setValue(max(0, row - 3))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        super().resizeEvent(event)
        inside = self.contentsRect()
        self._margin.setGeometry(QRect(inside.left(), inside.top(), self._margin.sizeHint().width(), inside.height()))

    def _mark(self) -> None:
        marked = [(row, line) for row, line in enumerate(self._lines) if line.mark != SAME]
        self.setExtraSelections([shown for row, line in marked[:MARKED] for shown in self._selections(row, line)])
        self._margin.update()

    def _selections(self, row: int, line: DifferenceLine) -> list[QTextEdit.ExtraSelection]:
        colours, block = self._theme.colours, self.document().findBlockByNumber(row)
        colour = _COLOURS[line.mark]
        whole = QTextEdit.ExtraSelection()
        whole.cursor = QTextCursor(block)
        whole.format.setBackground(colours[colour])
        whole.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
        found = [whole]
        for start, end in line.parts:
            part = QTextEdit.ExtraSelection()
            cursor = QTextCursor(block)
            cursor.setPosition(block.position() + _units(line.text, start))
            cursor.setPosition(block.position() + _units(line.text, end), QTextCursor.MoveMode.KeepAnchor)
            part.cursor = cursor
            part.format.setBackground(colours[f"{colour}_part"])
            found.append(part)
        return found

    def paint_marks(self, painter: QPainter, width: int) -> None:
        """A sign for every line in view that differs; a shape, so it can be told without colour."""
        colours, block = self._theme.colours, self.firstVisibleBlock()
        height, bottom = self.fontMetrics().height(), self.viewport().height()
        painter.setFont(self.font())
        while block.isValid() and block.blockNumber() < len(self._lines):
            top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
            if top > bottom:
                return
            line = self._lines[block.blockNumber()]
            if line.mark in _TONES:
                painter.fillRect(QRect(0, round(top), width, height), colours[_COLOURS[line.mark]])
                painter.setPen(colours[_TONES[line.mark]])
                painter.drawText(QRect(0, round(top), width, height), Qt.AlignmentFlag.AlignCenter, line.mark)
            block = block.next()


class _Margin(QWidget):
    def __init__(self, pane: DifferencePane, theme: Theme):
        super().__init__(pane)
        self._pane, self._theme = pane, theme

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(2 * self._pane.fontMetrics().horizontalAdvance("~") + 4, 0)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        painter = QPainter(self)
        painter.fillRect(event.rect(), self._theme.colours["base"])
        self._pane.paint_marks(painter, self.width())


def _units(text: str, index: int) -> int:
    """Qt counts UTF-16 units, of the line as it is displayed."""
    return len(displayed(text[:index]).encode("utf-16-le", "surrogatepass")) // 2
