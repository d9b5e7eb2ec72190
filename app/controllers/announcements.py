"""News for screen readers: what ended, what passed, what went wrong. Never tokens."""

import time

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

EVERY_S = 2.0


class Announcer(QObject):
    """At most one sentence in two seconds; of what comes in between, the last is spoken.

    ``announced`` is emitted with every sentence that goes out.
    """

    announced = Signal(str)

    def __init__(self, speaker: QWidget, parent: QObject | None = None):
        super().__init__(parent)
        self._speaker: QWidget | None = speaker
        self._waiting = ""
        self._next = 0.0  # on the monotonic clock
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._speak)

    @Slot(str)
    def say(self, sentence: str) -> None:
        self._waiting = sentence
        if self._speaker is not None and not self._timer.isActive():
            self._timer.start(max(0, round((self._next - time.monotonic()) * 1000)))

    def close(self) -> None:
        """Say nothing any more."""
        self._speaker = None
        self._timer.stop()

    def _speak(self) -> None:
        if self._speaker is not None:
            self._next = time.monotonic() + EVERY_S
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self._speaker, self._waiting))
            self.announced.emit(self._waiting)
