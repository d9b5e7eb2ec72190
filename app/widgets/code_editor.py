"""Where a user types: the prompt, and the tests."""

import re

from PySide6.QtCore import QEvent, QMimeData, Qt, QTimer
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QKeyEvent, QTextCursor, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.ui.highlight import LARGEST, Colouring
from app.ui.theme import Theme, monospace

REST_MS = 80
INDENT = "    "
_ENDLESS = re.compile(r"\S{2000}")


def local_files(data: QMimeData) -> list[str]:
    """Paths of the files that are dragged, if it is files."""
    return [url.toLocalFile() for url in data.urls() if url.isLocalFile()]


class CodeEditor(QPlainTextEdit):
    """``language`` empty is prose: Tab leaves it. In code Tab indents, and Ctrl+Tab leaves."""

    def __init__(self, theme: Theme, name: str, placeholder: str, language: str = "", parent: QWidget | None = None):
        super().__init__(parent)
        self._theme, self._language = theme, language
        self.setAccessibleName(name)
        self.setPlaceholderText(placeholder)
        self.setTabChangesFocus(not language)
        self.document().setDocumentMargin(8)
        if language:
            self.setFont(monospace())
            self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
            self.setTabStopDistance(self.fontMetrics().horizontalAdvance(INDENT))
        self._colouring = Colouring(self.document(), theme.colours)
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self._colour)
        self.document().contentsChange.connect(self._changed)
        theme.changed.connect(self._recolour)

    def text(self) -> str:
        """What was typed. ``toPlainText`` would turn no-break spaces into blanks."""
        return self.document().toRawText().replace("\u2029", "\n")

    @property
    def blank(self) -> bool:
        """Nothing but white space, as far as a glance can tell: asked at every key, also with a megabyte in here."""
        return self.document().characterCount() < 1000 and not self.text().strip()

    def replace_text(self, text: str) -> None:
        """Put ``text`` in the place of everything, as one step that Undo takes back."""
        self._wrap_for(text)
        cursor = self.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(text)
        cursor.movePosition(QTextCursor.MoveOperation.Start)
        self.setTextCursor(cursor)

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: N802
        if source.hasText() and _ENDLESS.search(source.text()):
            self._wrap_for(source.text())
        super().insertFromMimeData(source)

    def _wrap_for(self, text: str) -> None:
        """Qt looks for a blank to break at from every place again: a word of 200,000 letters takes it seconds."""
        mode = QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
        self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere if _ENDLESS.search(text) else mode)

    def event(self, event: QEvent) -> bool:
        if (
            self._language
            and isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and event.key() in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab)
        ):
            forward = event.key() == Qt.Key.Key_Tab and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
                return self.focusNextPrevChild(forward)
            self._indent() if forward else self._unindent()
            return True
        return super().event(event)

    def focusNextPrevChild(self, forward: bool) -> bool:  # noqa: N802
        # QPlainTextEdit refuses when Tab is its own; our Ctrl+Tab has already decided.
        return QWidget.focusNextPrevChild(self, forward)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802
        if not self._leave_files_to_the_window(event):
            super().dragEnterEvent(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:  # noqa: N802
        if not self._leave_files_to_the_window(event):
            super().dragMoveEvent(event)

    def _leave_files_to_the_window(self, event: QDragMoveEvent) -> bool:
        """A dropped file is context; its name in the text would be of no use."""
        if not local_files(event.mimeData()):
            return False
        event.ignore()
        return True

    def _indent(self) -> None:
        cursor = self.textCursor()
        if not cursor.hasSelection():
            cursor.insertText(INDENT[cursor.positionInBlock() % len(INDENT) :])
            return
        for line in self._selected_lines(cursor):
            line.insertText(INDENT)
        cursor.endEditBlock()

    def _unindent(self) -> None:
        cursor = self.textCursor()
        for line in self._selected_lines(cursor):
            text = line.block().text()
            for _ in range(min(len(INDENT), len(text) - len(text.lstrip(" ")))):
                line.deleteChar()
        cursor.endEditBlock()

    def _selected_lines(self, cursor: QTextCursor) -> list[QTextCursor]:
        """A cursor at the start of each line of the selection; opens an edit block that the caller ends."""
        document = self.document()
        first = document.findBlock(cursor.selectionStart()).blockNumber()
        last = document.findBlock(cursor.selectionEnd()).blockNumber()
        cursor.beginEditBlock()
        return [QTextCursor(document.findBlockByNumber(number)) for number in range(first, last + 1)]

    def _changed(self, position: int, removed: int, added: int) -> None:
        if self._language and not self._colouring.painting:
            self._colouring.stop()
            self._rest.start()

    def _colour(self) -> None:
        if self.document().characterCount() <= LARGEST:
            self._colouring.colour(self.text(), self._language)

    def _recolour(self) -> None:
        if self.font() != monospace():
            self.setFont(monospace())
        self._colouring.use(self._theme.colours)
        self._colour()
