"""The place of messages above the editors: always there, so that nothing moves when one comes or goes."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QSize
from PySide6.QtWidgets import QStackedLayout, QWidget

LINES = 2  # of text
PADDING = 6


class MessageArea(QWidget):
    """Shows one of its messages at a time, the first of those that want to be seen.

    A message comes and goes by its own ``show`` and ``hide``; while another one has its place, it waits. The height
    depends on the font alone.
    """

    def __init__(self, messages: Sequence[QWidget] = (), parent: QWidget | None = None):
        super().__init__(parent)
        self._places: dict[QWidget, QWidget] = {}
        self._stack = QStackedLayout(self)
        self._stack.setContentsMargins(0, 0, 0, 0)
        self._nothing = QWidget()
        self._stack.addWidget(self._nothing)
        for message in messages:
            self.add(message)

    def add(self, message: QWidget) -> None:
        """The last one in the order."""
        place = QWidget()
        layout = QStackedLayout(place)
        layout.setContentsMargins(0, 0, 0, 0)
        hidden = message.isHidden()
        layout.addWidget(message)
        message.setHidden(hidden)
        message.installEventFilter(self)
        self._places[message] = place
        self._stack.addWidget(place)
        self._fit()

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(0, self.minimumHeight())

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        return self.sizeHint()  # no message makes the window wider

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        if event.type() in (QEvent.Type.ShowToParent, QEvent.Type.HideToParent):
            wanted = (place for message, place in self._places.items() if not message.isHidden())
            self._stack.setCurrentWidget(next(wanted, self._nothing))
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        text = LINES * self.fontMetrics().lineSpacing() + PADDING
        self.setFixedHeight(max([text, *(message.minimumSizeHint().height() for message in self._places)]))
