"""Many candidates: the same badges one below the other, with a filter above them."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.item_models.candidates import CandidatesModel
from app.item_models.filtered import FILTERS, FilteredCandidates
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.badge import badge_size, paint_badge
from app.widgets.fields import choice_box

Index = QModelIndex | QPersistentModelIndex


class CandidateList(QWidget):
    """``picked`` names the candidate that was chosen here."""

    picked = Signal(int)

    def __init__(self, theme: Theme, model: CandidatesModel, parent: QWidget | None = None):
        super().__init__(parent)
        self._rows = FilteredCandidates(model, self)
        self._counts: dict[str, int] = {}
        self._following = self._changed = False
        self._filter = choice_box(
            tr("Show"), tr("Which candidates are listed"), [(name, name) for name in FILTERS], width=10
        )
        self._filter.setMinimumWidth(0)
        self._filter.setMaximumWidth(16_777_215)
        self._view = QListView()
        self._view.setModel(self._rows)
        self._view.setAccessibleName(tr("Candidates"))
        self._view.setItemDelegate(_Badges(theme, self._rows, self))
        self._view.setUniformItemSizes(True)
        self._view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self._view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self._filter)
        column.addWidget(self._view, 1)
        width = badge_size(self.font(), tr("testing") + " 10/10", "128").width()
        self.setFixedWidth(width + self._view.verticalScrollBar().sizeHint().width() + 6)
        self.setFocusProxy(self._view)
        self._filter.currentIndexChanged.connect(self._choose_filter)
        self._view.selectionModel().currentChanged.connect(self._moved)
        for change in (model.dataChanged, model.modelReset, model.rowsInserted):
            change.connect(self._change)
        theme.changed.connect(self._view.viewport().update)
        self.count()

    @property
    def filter(self) -> str:
        return self._rows.filter

    def show_current(self, number: int) -> None:
        """Mark the candidate in view, if the filter shows it."""
        self._following = True
        self._view.setCurrentIndex(self._rows.index_of(number))
        self._following = False

    def refresh(self) -> None:
        """Once per tick: the filter's entries say how many each would show."""
        if self._changed and self.isVisible():
            self.count()

    def count(self) -> None:
        self._changed = False
        counts = self._rows.counts()
        if counts == self._counts:
            return
        self._counts = counts
        for place, (name, count) in enumerate(counts.items()):
            self._filter.setItemText(place, f"{tr(name)} ({count})")

    def _change(self) -> None:
        self._changed = True

    def _choose_filter(self) -> None:
        self._rows.choose(self._filter.currentData())

    def _moved(self, current: QModelIndex, before: QModelIndex) -> None:
        candidate = self._rows.candidate(current)
        if candidate is not None and not self._following:
            self.picked.emit(candidate.number)


class _Badges(QStyledItemDelegate):
    def __init__(self, theme: Theme, rows: FilteredCandidates, parent: QWidget):
        super().__init__(parent)
        self._theme, self._rows = theme, rows

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        candidate, colours = self._rows.candidate(index), self._theme.colours
        model = self._rows.sourceModel()
        assert isinstance(model, CandidatesModel)
        shown = model.badge(self._rows.mapToSource(index).row())
        if candidate is None or shown is None:
            return
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        if state & QStyle.StateFlag.State_Selected:
            focus = state & QStyle.StateFlag.State_HasFocus
            painter.fillRect(rect, colours["accent_soft" if focus else "sunken"])
            painter.fillRect(rect.left(), rect.top(), 2, rect.height(), colours["accent"])
        paint_badge(painter, rect, self._theme, option.font, candidate.number, shown)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        return badge_size(option.font, "", "")
