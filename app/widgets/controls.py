"""Buttons and labels in the style of this window."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction, QPainter, QPaintEvent, QResizeEvent, QShowEvent, QTextLayout, QTextOption
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
        _paint_words(self, self._shown, self.alignment())

    def _fit(self) -> None:
        self._shown = self.fontMetrics().elidedText(self.full_text, Qt.TextElideMode.ElideRight, self.width())
        self.setToolTip(self.full_text if self._shown != self.full_text else "")
        self.update()


class LineLabel(QLabel):
    """A part of some words, as much of them as its owner has room for; the tooltip and screen readers have all.

    It paints its words itself: a QLabel has the whole window laid out again for each new text.
    """

    def __init__(self, wide: QSizePolicy.Policy, parent: QWidget | None = None):
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(wide, QSizePolicy.Policy.Fixed)
        self.shown = ""

    def show_part(self, part: str, whole: str) -> None:
        self.setAccessibleDescription(whole)
        self.setToolTip(whole if part != whole else "")
        if part != self.shown:
            self.shown = part
            self.update()
            if self.sizePolicy().horizontalPolicy() != QSizePolicy.Policy.Ignored:
                self.updateGeometry()

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(self.fontMetrics().horizontalAdvance(self.shown), self.fontMetrics().height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        _paint_words(self, self.shown, Qt.AlignmentFlag.AlignLeft)


class BoundedLabel(QLabel):
    """Text in as many lines as there is room for, however long its words are.

    ``shortened`` is emitted when the rest did not fit; the tooltip and screen readers have all of it.
    """

    shortened = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.lines: list[str] = []  # as shown

    def setText(self, text: str) -> None:  # noqa: N802
        super().setText(text)
        self._fit()

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        return QSize(0, self.fontMetrics().lineSpacing())

    def sizeHint(self) -> QSize:  # noqa: N802
        return self.minimumSizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        super().resizeEvent(event)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        super().showEvent(event)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        _paint_words(self, "\n".join(self.lines), Qt.AlignmentFlag.AlignLeft)

    def _fit(self) -> None:
        metrics, text = self.fontMetrics(), " ".join(self.text().split())
        starts = _line_starts(text, self, self.width())
        room = max(1, self.height() // metrics.lineSpacing())
        ends = [*starts[1:], len(text)]
        self.lines = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)][:room]
        if len(starts) > room:
            self.lines[-1] = metrics.elidedText(text[starts[room - 1] :], Qt.TextElideMode.ElideRight, self.width())
            if self.isVisible():  # before that it has no size of its own
                self.shortened.emit()
        self.setToolTip(self.text() if len(starts) > room else "")
        self.update()


def _paint_words(widget: QLabel, words: str, where: Qt.AlignmentFlag) -> None:
    place = (where | Qt.AlignmentFlag.AlignVCenter).value
    role, enabled = widget.foregroundRole(), widget.isEnabled()
    widget.style().drawItemText(QPainter(widget), widget.rect(), place, widget.palette(), enabled, words, role)


def _line_starts(text: str, widget: QWidget, width: int) -> list[int]:
    """Where each line of ``text`` begins, broken between words, and within those that are longer than a line."""
    layout = QTextLayout(text, widget.font())
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    layout.beginLayout()
    starts = []
    while (line := layout.createLine()).isValid():
        line.setLineWidth(max(1, width))
        starts.append(line.textStart())
    layout.endLayout()
    return starts or [0]


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
