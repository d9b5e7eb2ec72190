"""The strip of candidates: number, state in words, its shape, tests and speed, on two short lines each."""

from PySide6.QtCore import QModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QTabBar, QWidget

from app.item_models.candidates import CandidatesModel
from app.ui.theme import Theme, em
from app.ui.words import tr
from app.widgets.badge import badge_size, paint_badge
from engine.session.states import TEST_STATES, TestState


class CandidateTabs(QTabBar):
    """Shows a CandidatesModel and keeps to it; ``currentChanged`` says which row is in view."""

    def __init__(self, theme: Theme, model: CandidatesModel, parent: QWidget | None = None):
        super().__init__(parent)
        self._theme, self._model = theme, model
        self.setAccessibleName(tr("Candidates"))
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # nothing behind it is painted with each speed
        self.setDrawBase(False)
        self.setExpanding(False)
        self.setUsesScrollButtons(True)
        self.setElideMode(Qt.TextElideMode.ElideNone)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        model.modelReset.connect(self._reset)
        model.rowsInserted.connect(self._inserted)
        model.dataChanged.connect(self._touched)
        theme.changed.connect(self.update)

    def tabSizeHint(self, index: int) -> QSize:  # noqa: N802
        # All the same width, so nothing jumps while states change; narrower when there are many.
        widest = badge_size(self.font(), tr(TEST_STATES[TestState.RUNNING].word) + " 10/10", "32")
        narrowest = badge_size(self.font(), tr(TEST_STATES[TestState.PASSED].word) + " 3/3", "8")
        share = (self.width() - 2) // max(1, self.count())
        return QSize(max(narrowest.width() - 3, min(widest.width(), share)), widest.height())

    def minimumTabSizeHint(self, index: int) -> QSize:  # noqa: N802
        return self.tabSizeHint(index)

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(40 * em(), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        return QSize(8 * em(), QFontMetrics(self.font()).height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(event.rect(), self._theme.colours["window"])
        painter.fillRect(QRect(0, self.height() - 1, self.width(), 1), self._theme.colours["border"])
        for index in range(self.count()):
            if event.region().intersects(self.tabRect(index)):
                self._paint_tab(painter, index)

    def _paint_tab(self, painter: QPainter, index: int) -> None:
        colours, rect = self._theme.colours, self.tabRect(index)
        shown, candidate = self._model.badge(index), self._model.candidate(index)
        if shown is None or candidate is None:
            return
        if index == self.currentIndex():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours["accent_soft"] if self.hasFocus() else colours["base"])
            painter.drawRoundedRect(rect.adjusted(1, 2, -1, 6), 6, 6)
            painter.fillRect(rect.left() + 1, rect.bottom() - 1, rect.width() - 2, 2, colours["accent"])
        paint_badge(painter, rect, self._theme, self.font(), candidate.number, shown)

    def _reset(self) -> None:
        while self.count():
            self.removeTab(self.count() - 1)
        for row in range(self._model.rowCount()):
            self._add(row)

    def _inserted(self, parent: QModelIndex, first: int, last: int) -> None:
        for row in range(first, last + 1):
            self._add(row)

    def _add(self, row: int) -> None:
        self.insertTab(row, "")
        self._name(row)

    def _touched(self, first: QModelIndex, last: QModelIndex) -> None:
        if self.isHidden():
            return
        for row in range(first.row(), last.row() + 1):
            self._name(row)
            self.update(self.tabRect(row))

    def _name(self, row: int) -> None:
        words = self._model.index(row).data()
        if words != self.tabToolTip(row):
            self.setAccessibleTabName(row, words)
            self.setTabToolTip(row, words)
