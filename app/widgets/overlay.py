"""Something that lies over the lower edge of another widget: it moves nothing and takes no focus by itself."""

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QToolButton, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.words import tr

MARGIN = 6  # to the edges of what it lies over


class Overlay(QFrame):
    """Hidden until ``appear``, which asks others over the same widget to go.

    Esc and a button ask for its end by ``dismissed``; its owner hides it.
    """

    dismissed = Signal()

    def __init__(self, theme: Theme, over: QWidget, dismissing: str, tone: str = ""):
        """``dismissing``: what the button does, for screen readers."""
        super().__init__(over)
        self._theme = theme
        self.setProperty("kind", "notice")
        self.setProperty("tone", tone)
        self.setAutoFillBackground(True)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(10, 5, 6, 5)
        self.column.setSpacing(4)
        self.dismiss = QToolButton()
        self.dismiss.setAccessibleName(dismissing)
        self.dismiss.setToolTip(tr("Dismiss"))
        self.dismiss.setAutoRaise(True)
        self.dismiss.clicked.connect(self.dismissed)
        theme.changed.connect(self._paint)
        self._paint()
        over.installEventFilter(self)
        self.hide()

    @property
    def has_focus(self) -> bool:
        """It, or something in it."""
        focus = self.window().focusWidget()
        return focus is not None and (focus is self or self.isAncestorOf(focus))

    def appear(self) -> None:
        """Where the focus is stays as it was."""
        over = self.parentWidget()
        for other in over.findChildren(Overlay) if over is not None else []:
            if other is not self and not other.isHidden():
                other.dismissed.emit()
        self.show()
        self.place()
        self.raise_()

    def place(self) -> None:
        """Along the lower edge, as high as ``height_for`` says."""
        over = self.parentWidget()
        if over is not None:
            width = over.width() - 2 * MARGIN
            height = self.height_for(width, over.height() - 2 * MARGIN)
            self.setGeometry(MARGIN, over.height() - height - MARGIN, width, height)

    def height_for(self, width: int, most: int) -> int:
        """As high as its words need; ``most``: what there is."""
        return self.column.heightForWidth(width) if self.column.hasHeightForWidth() else self.sizeHint().height()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        if event.type() == QEvent.Type.Resize and not self.isHidden():
            self.place()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        if event.key() == Qt.Key.Key_Escape:
            self.dismissed.emit()
        else:
            super().keyPressEvent(event)

    def _paint(self) -> None:
        self.dismiss.setIcon(self._theme.icon("close", "muted"))
