"""Tests that the model wrote, each with a tick box: the list lies over the page and moves nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QBrush, QFont, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.ui.theme import Theme, monospace
from app.ui.words import tr
from app.widgets.controls import ElidedLabel, label
from app.widgets.overlay import Overlay

_SHARE = 0.55  # of the page, at most: the candidates stay in sight
_TEST, _ORIGIN, _AGREEMENT = range(3)


@dataclass(frozen=True)
class OfferedTest:
    """``text``: as it would be written; ``agreement``: who agrees, in words."""

    text: str
    agreement: str


class SuggestedTests(Overlay):
    """Hidden until ``offer``; nothing is ticked beforehand.

    While it has the focus, arrows go through the tests, Space ticks, Enter adds what is ticked, Esc dismisses it.
    """

    added = Signal(list)  # places of the tests that are ticked

    def __init__(self, theme: Theme, over: QWidget):
        super().__init__(theme, over, tr("Dismiss the suggested tests"))
        self._head = ElidedLabel()
        self._table = _Table(self)
        self._table.setAccessibleName(tr("Suggested tests"))
        self._table.confirmed.connect(self._add_ticked)
        self._table.itemChanged.connect(self._count)
        self.setFocusProxy(self._table)
        self._add = QPushButton()
        self._add.setProperty("kind", "primary")
        self._add.setAutoDefault(False)
        self._add.setAccessibleName(tr("Add the ticked tests"))
        self._add.clicked.connect(self._add_ticked)
        self._keys = label(tr("Space ticks, Enter adds, Esc dismisses"), tone="muted")
        self._wrong = label(tone="failed", wrap=True)
        self._wrong.hide()
        self._lay_out()
        theme.changed.connect(self._tone)

    @property
    def words(self) -> list[str]:
        """Every row in a sentence, as screen readers have it."""
        rows = range(self._table.rowCount())
        return [str(self._item(row).data(Qt.ItemDataRole.AccessibleTextRole)) for row in rows]

    @property
    def ticked(self) -> list[int]:
        rows = range(self._table.rowCount())
        return [row for row in rows if self._item(row).checkState() == Qt.CheckState.Checked]

    def offer(self, head: str, tests: Sequence[OfferedTest]) -> None:
        """Shows them; where the focus is stays as it was."""
        self._wrong.hide()
        self._head.set_full_text(head)
        self.setAccessibleName(head)
        self._table.blockSignals(True)
        self._table.setRowCount(len(tests))
        for row, test in enumerate(tests):
            self._fill(row, test)
        self._table.blockSignals(False)
        self._table.setCurrentCell(0, _TEST)
        self._table.resizeRowsToContents()
        self._tone()
        self._count()
        self.appear()

    def refuse(self, sentence: str) -> None:
        """What is ticked cannot be added, and why."""
        self._wrong.setText(sentence)
        self._wrong.show()
        self.place()

    def height_for(self, width: int, most: int) -> int:
        """As high as its rows, within a share of what there is."""
        rows = sum(self._table.rowHeight(row) for row in range(self._table.rowCount()))
        frame = 2 * self._table.frameWidth() + 2
        own = min(max(self._table.sizeHint().height(), self._table.minimumHeight()), self._table.maximumHeight())
        around = self.sizeHint().height() - own
        self._table.setFixedHeight(max(2 * self.fontMetrics().height(), min(rows + frame, int(most * _SHARE) - around)))
        return self._table.height() + around

    def _item(self, row: int, column: int = _TEST) -> QTableWidgetItem:
        item = self._table.item(row, column)
        assert item is not None
        return item

    def _fill(self, row: int, test: OfferedTest) -> None:
        suggested = tr("suggested")
        words = f"{test.text}, {suggested}, {test.agreement}"
        for column, text in ((_TEST, test.text), (_ORIGIN, suggested), (_AGREEMENT, test.agreement)):
            item = QTableWidgetItem(text)
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
            item.setToolTip(text if column == _TEST else "")
            if column == _TEST:
                item.setFont(_code_font())
            self._table.setItem(row, column, item)
        first = self._item(row)
        first.setFlags(first.flags() | Qt.ItemFlag.ItemIsUserCheckable)
        first.setCheckState(Qt.CheckState.Unchecked)
        first.setData(Qt.ItemDataRole.AccessibleTextRole, words)

    def _add_ticked(self) -> None:
        if self.ticked:
            self.added.emit(self.ticked)
        else:
            self.refuse(tr("Tick the tests that are right first, with Space."))

    def _count(self) -> None:
        count = len(self.ticked)
        self._add.setText(tr("Add {n} ticked").format(n=count) if count else tr("Add the ticked tests"))
        self._add.setEnabled(count > 0)
        if count:
            self._wrong.hide()
            self.place()

    def _tone(self) -> None:
        muted = QBrush(self._theme.colours["muted"])
        for row in range(self._table.rowCount()):
            for column in (_ORIGIN, _AGREEMENT):
                self._item(row, column).setForeground(muted)

    def _lay_out(self) -> None:
        first, last = QHBoxLayout(), QHBoxLayout()
        first.setSpacing(8)
        first.addWidget(self._head, 1)
        first.addWidget(self.dismiss)
        last.setSpacing(8)
        last.addWidget(self._add)
        last.addWidget(self._keys)
        last.addStretch(1)
        self.column.setSpacing(6)
        self.column.addLayout(first)
        self.column.addWidget(self._table)
        self.column.addWidget(self._wrong)
        self.column.addLayout(last)


def _code_font() -> QFont:
    """With its family named, or an item would take the table's."""
    font = monospace()
    font.setFamily(font.family())
    return font


class _Table(QTableWidget):
    """Keys are about whole rows, whichever column is current."""

    confirmed = Signal()

    def __init__(self, parent: QWidget):
        super().__init__(0, 3, parent)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.hide()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(_TEST, QHeaderView.ResizeMode.Stretch)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        item = self.item(self.currentRow(), _TEST)
        if event.key() == Qt.Key.Key_Space and item is not None:
            ticked = item.checkState() == Qt.CheckState.Checked
            item.setCheckState(Qt.CheckState.Unchecked if ticked else Qt.CheckState.Checked)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.confirmed.emit()
        elif event.key() == Qt.Key.Key_Escape:
            event.ignore()  # for the list
        else:
            super().keyPressEvent(event)
