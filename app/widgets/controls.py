"""Buttons and labels in the style of this window."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QWidget

from app.ui.theme import Theme


def label(text: str = "", *, tone: str = "", role: str = "", wrap: bool = False) -> QLabel:
    """Plain text whatever is in it. ``tone`` colours it, ``role`` is title or heading."""
    result = QLabel(text)
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setProperty("tone", tone)
    result.setProperty("role", role)
    result.setWordWrap(wrap)
    return result


class ElidedLabel(QLabel):
    """One line that ends in "…" where it does not fit; the tooltip and screen readers have all of it.

    It paints its words itself: a QLabel has the whole window laid out again for each new text.
    """

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.full_text = self._shown = ""

    def set_full_text(self, text: str) -> None:
        if text != self.full_text:
            self.full_text = text
            self.setAccessibleDescription(text)
            self._fit()

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(0, self.fontMetrics().height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        super().resizeEvent(event)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        painter, where = QPainter(self), self.alignment() | Qt.AlignmentFlag.AlignVCenter
        role, enabled = self.foregroundRole(), self.isEnabled()
        self.style().drawItemText(painter, self.rect(), where.value, self.palette(), enabled, self._shown, role)

    def _fit(self) -> None:
        self._shown = self.fontMetrics().elidedText(self.full_text, Qt.TextElideMode.ElideRight, self.width())
        self.setToolTip(self.full_text if self._shown != self.full_text else "")
        self.update()


def set_tone(widget: QWidget, tone: str) -> None:
    """Change a tone after the widget was shown; the sheet must be asked again."""
    if widget.property("tone") != tone:
        widget.setProperty("tone", tone)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


class ActionButton(QPushButton):
    """Shows an action and does it: text, icon, tooltip and whether it can be done now come from there.

    Qt's own way is a tool button; push buttons take the focus and Space on every platform.
    """

    def __init__(self, theme: Theme, action: QAction, icon: str, kind: str = "", parent: QWidget | None = None):
        super().__init__(parent)
        self._theme, self._action, self._icon = theme, action, icon
        self.setProperty("kind", kind)
        self.setAutoDefault(False)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setText(action.text())
        self.setAccessibleName(action.text().rstrip("…"))
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        theme.changed.connect(self._paint_icon)
        self._paint_icon()
        self._follow()

    def be_compact(self, compact: bool) -> None:
        """Only the icon, where there is no room for words; the tooltip has them."""
        self.setText("" if compact else self._action.text())

    def _follow(self) -> None:
        if not self._action.isEnabled() and self.hasFocus():
            self.window().setFocus(Qt.FocusReason.OtherFocusReason)
        self.setEnabled(self._action.isEnabled())
        self.setToolTip(self._action.toolTip())

    def _paint_icon(self) -> None:
        colour = "on_accent" if self.property("kind") == "primary" else "text"
        self.setIcon(self._theme.icon(self._icon, colour))
