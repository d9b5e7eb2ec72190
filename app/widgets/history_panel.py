"""Earlier runs beside the candidates: a search box, a list, and what can be done with the one that is chosen."""

from collections.abc import Sequence
from textwrap import shorten

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetrics, QKeySequence, QPainter, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QPushButton,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.item_models.history import HistoryModel, HistoryRole
from app.ui.theme import Theme, em
from app.ui.words import tr
from app.widgets.controls import label
from engine.session.journal import UNDO_S, HistoryEntry

SEARCH_MS = 150

Index = QModelIndex | QPersistentModelIndex


class HistoryPanel(QWidget):
    """``wanted``: the list for this search is asked for, by ``show_entries``. The others name a run by its number."""

    wanted = Signal(str)
    open_chosen = Signal(int)
    delete_chosen = Signal(int)
    undo_chosen = Signal(int)
    undo_over = Signal()  # what was deleted can go for good
    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None):
        super().__init__(parent)
        self.setAccessibleName(tr("History"))
        self._model = HistoryModel(self)
        self._blocked = ""
        self._deleted = 0
        self._search = QLineEdit()
        self._search.setAccessibleName(tr("Search the history"))
        self._search.setPlaceholderText(tr("Search prompts and code"))
        self._search.setClearButtonEnabled(True)
        self._view = QListView()
        self._view.setModel(self._model)
        self._view.setAccessibleName(tr("Earlier runs"))
        self._view.setItemDelegate(_TwoLines(theme, self))
        self._view.setUniformItemSizes(True)
        self._view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self._view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self._empty = label(tone="muted", wrap=True)
        self._open = _button(tr("Open"), tr("Open this run (Enter)"))
        self._delete = _button(tr("Delete"), tr("Delete this run from the history (Del)"))
        self._undone = label(tone="muted", wrap=True)
        self._undo = _button(tr("Undo"), tr("Bring the deleted run back"))
        self._lay_out(theme)
        self._timers()
        self._connect()
        theme.changed.connect(self._view.viewport().update)
        self._offer_undo(0)
        self._moved()

    @property
    def count(self) -> int:
        """Runs in the list."""
        return self._model.rowCount()

    def show_entries(self, entries: Sequence[HistoryEntry]) -> None:
        """What the search has found, newest first. The chosen run stays chosen while it is in the list."""
        chosen = self._chosen()
        self._model.show(entries)
        row = self._model.row_of(chosen)
        if row >= 0:
            self._view.setCurrentIndex(self._model.index(row))
        words = tr("No run contains “{search}”.") if self._search.text().strip() else tr("Runs will appear here.")
        self._empty.setText("" if entries else words.format(search=self._search.text().strip()))
        self._empty.setVisible(not entries)
        self._view.setVisible(bool(entries))
        self._moved()

    def block_opening(self, reason: str) -> None:
        """Why no run can be opened now, as a sentence; empty when one can."""
        if reason != self._blocked:
            self._blocked = reason
            self._moved()

    def show_deleted(self, id: int) -> None:
        """Run ``id`` was deleted; if it is in the list, it can be brought back for a while."""
        if (row := self._model.row_of(id)) >= 0:
            title = self._model.index(row).data()
            self._undone.setText(tr("Deleted “{title}”").format(title=shorten(title, 30, placeholder="…")))
            self._offer_undo(id)

    def refresh(self) -> None:
        """The history has changed: ask for the list again, soon and once, if anybody sees it."""
        if self.isVisible() and not self._soon.isActive():
            self._soon.start()

    def start_search(self) -> None:
        """Somebody has just opened it, with a key or from the menu: what they type next is a search."""
        if self.isVisible():
            self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
            self._search.selectAll()

    def close_down(self) -> None:
        """No timer outlives the window."""
        self._soon.stop()
        self._undo_time.stop()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        super().showEvent(event)
        self._ask()

    def _lay_out(self, theme: Theme) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        title = _Title(theme)
        title.closed.connect(self.closed)
        buttons, undo = QHBoxLayout(), QHBoxLayout()
        buttons.addWidget(self._open)
        buttons.addWidget(self._delete)
        buttons.addStretch(1)
        undo.addWidget(self._undone, 1)
        undo.addWidget(self._undo)
        column.addWidget(title)
        column.addWidget(self._search)
        column.addWidget(self._view, 1)
        column.addWidget(self._empty)
        column.addStretch(0)
        column.addLayout(buttons)
        column.addLayout(undo)
        self.setMinimumWidth(21 * em())

    def _timers(self) -> None:
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SEARCH_MS)
        self._soon.timeout.connect(self._ask)
        self._undo_time = QTimer(self)
        self._undo_time.setSingleShot(True)
        self._undo_time.setInterval(int(UNDO_S * 1000) + 100)
        self._undo_time.timeout.connect(self._undo_is_over)

    def _connect(self) -> None:
        self._search.textChanged.connect(lambda _: self._soon.start())
        self._search.returnPressed.connect(self._view.setFocus)
        self._view.selectionModel().currentChanged.connect(lambda *_: self._moved())
        self._view.activated.connect(lambda _: self._open_this())
        self._open.clicked.connect(self._open_this)
        self._delete.clicked.connect(self._delete_this)
        self._undo.clicked.connect(self._undo_this)
        delete = QShortcut(QKeySequence.StandardKey.Delete, self._view)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(self._delete_this)

    def _ask(self) -> None:
        self.wanted.emit(self._search.text().strip())

    def _chosen(self) -> int:
        index = self._view.currentIndex()
        return index.data(HistoryRole.ID) if index.isValid() else 0

    def _moved(self) -> None:
        some = bool(self._chosen())
        self._open.setEnabled(some and not self._blocked)
        self._open.setToolTip(self._blocked or tr("Open this run (Enter)"))
        self._delete.setEnabled(some)

    def _open_this(self) -> None:
        if self._open.isEnabled():
            self.open_chosen.emit(self._chosen())

    def _delete_this(self) -> None:
        if id := self._chosen():
            self.delete_chosen.emit(id)

    def _undo_this(self) -> None:
        self.undo_chosen.emit(self._deleted)
        self._offer_undo(0)
        self._view.setFocus()

    def _offer_undo(self, id: int) -> None:
        self._deleted = id
        self._undone.setVisible(bool(id))
        self._undo.setVisible(bool(id))
        if id:
            self._undo_time.start()
        else:
            self._undo_time.stop()

    def _undo_is_over(self) -> None:
        self._offer_undo(0)
        self.undo_over.emit()


class _Title(QWidget):
    """What the panel is, and the button that closes it."""

    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None):
        super().__init__(parent)
        self._theme = theme
        self._close = QToolButton()
        self._close.setAutoRaise(True)
        self._close.setAccessibleName(tr("Close the history"))
        self._close.setToolTip(tr("Close the history"))
        self._close.clicked.connect(self.closed)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(label(tr("History"), role="heading"), 1)
        row.addWidget(self._close)
        theme.changed.connect(self._paint_icon)
        self._paint_icon()

    def _paint_icon(self) -> None:
        self._close.setIcon(self._theme.icon("close", "muted"))


def _button(text: str, tip: str) -> QPushButton:
    button = QPushButton(text)
    button.setAccessibleName(text)
    button.setToolTip(tip)
    button.setAutoDefault(False)
    return button


class _TwoLines(QStyledItemDelegate):
    """The prompt's first line, and below it, muted, when it was and what came of it."""

    def __init__(self, theme: Theme, parent: QWidget):
        super().__init__(parent)
        self._theme = theme

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        metrics: QFontMetrics = option.fontMetrics
        colours = self._theme.colours
        if state & QStyle.StateFlag.State_Selected:
            focus = state & QStyle.StateFlag.State_HasFocus
            painter.fillRect(rect, colours["accent_soft" if focus else "sunken"])
            painter.fillRect(rect.left(), rect.top(), 2, rect.height(), colours["accent"])
        inside, line = rect.adjusted(8, 4, -6, -4), metrics.lineSpacing()
        for place, (text, colour) in enumerate(((index.data(), "text"), (index.data(HistoryRole.NOTE), "muted"))):
            painter.setPen(colours[colour])
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, inside.width())
            painter.drawText(inside.left(), inside.top() + place * line + metrics.ascent(), shown)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        return QSize(10, 2 * option.fontMetrics.lineSpacing() + 8)
