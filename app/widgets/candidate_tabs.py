"""The strip of candidates: number, state in words, its shape, tests and speed, on two short lines each."""

from PySide6.QtCore import QModelIndex, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QTabBar, QWidget

from app.item_models.candidates import Badge, CandidatesModel
from app.theme import Theme, em

ICON = 15
PAD = 6
GAP = 4


class CandidateTabs(QTabBar):
    """Shows a CandidatesModel and keeps to it; ``currentChanged`` says which row is in view."""

    def __init__(self, theme: Theme, model: CandidatesModel, parent: QWidget | None = None):
        super().__init__(parent)
        self._theme, self._model = theme, model
        self.setAccessibleName("Candidates")
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
        metrics, bold = QFontMetrics(self.font()), QFontMetrics(self._bold())
        # All the same width, so nothing jumps while states change; narrower when there are many.
        text = metrics.horizontalAdvance("testing 10/10") + bold.horizontalAdvance("32")
        widest = text + ICON + 2 * GAP + 2 * PAD + 3
        narrowest = metrics.horizontalAdvance("passed 3/3") + bold.horizontalAdvance("8") + ICON + 2 * GAP + 2 * PAD
        share = (self.width() - 2) // max(1, self.count())
        return QSize(max(narrowest, min(widest, share)), 2 * metrics.height() + 3 * GAP)

    def minimumTabSizeHint(self, index: int) -> QSize:  # noqa: N802
        return self.tabSizeHint(index)

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(40 * em(), super().sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours = self._theme.colours
        painter.fillRect(QRect(0, self.height() - 1, self.width(), 1), colours["border"])
        for index in range(self.count()):
            shown = self._model.badge(index)
            if shown is not None and self.tabRect(index).intersects(event.rect()):
                self._paint_tab(painter, index, shown)

    def _paint_tab(self, painter: QPainter, index: int, shown: Badge) -> None:
        colours, rect = self._theme.colours, self.tabRect(index)
        selected = index == self.currentIndex()
        if selected:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours["accent_soft"] if self.hasFocus() else colours["base"])
            painter.drawRoundedRect(rect.adjusted(1, 2, -1, 6), 6, 6)
            painter.fillRect(rect.left() + 1, rect.bottom() - 1, rect.width() - 2, 2, colours["accent"])
        number = str(self._model.index(index).data(Qt.ItemDataRole.UserRole + 1))
        inner = rect.adjusted(PAD, GAP, -PAD + 2, -GAP)
        line = QFontMetrics(self.font()).height()
        top = QRect(inner.left(), inner.top() + 1, inner.width(), line)
        icon = self._theme.pixmap(shown.icon, shown.tone, ICON, self.devicePixelRatio())
        painter.drawPixmap(QPoint(top.left(), top.center().y() - ICON // 2 + 1), icon)
        left = top.left() + ICON + GAP
        painter.setFont(self._bold())
        painter.setPen(colours["text"])
        painter.drawText(QRect(left, top.top(), top.width(), line), Qt.AlignmentFlag.AlignVCenter, number)
        left += QFontMetrics(self._bold()).horizontalAdvance(number) + GAP
        painter.setFont(self.font())
        painter.setPen(colours["text" if shown.tone == "text" else shown.tone])
        word = QFontMetrics(self.font()).elidedText(shown.word, Qt.TextElideMode.ElideRight, inner.right() - left + 2)
        painter.drawText(QRect(left, top.top(), inner.right() - left + 2, line), Qt.AlignmentFlag.AlignVCenter, word)
        painter.setPen(colours["muted"])
        below = QRect(top.left() + ICON + GAP, top.bottom() + GAP, top.width() - ICON - GAP, line)
        painter.drawText(below, Qt.AlignmentFlag.AlignVCenter, shown.note)

    def _bold(self) -> QFont:
        font = QFont(self.font())
        font.setBold(True)
        return font

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
        for row in range(first.row(), last.row() + 1):
            self._name(row)
            self.update(self.tabRect(row))

    def _name(self, row: int) -> None:
        words = self._model.index(row).data()
        self.setAccessibleTabName(row, words)
        self.setTabToolTip(row, words)
