"""Work that would stop the window for a while, on a thread of its own; its end comes back into the main thread."""

import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal, Slot

from engine.contract import BasslineError


class Errand(QObject):
    """One piece of work at a time. ``done`` gives its result, ``failed`` a sentence; a forgotten one says nothing."""

    done = Signal(object)
    failed = Signal(str)
    _ended = Signal(int, object, str)

    def __init__(self, parent: QObject | None = None):
        super().__init__(parent)
        self._number = 0
        self._busy = False
        self._ended.connect(self._take, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        return self._busy

    def run(self, work: Callable[[], Any]) -> None:
        """Start ``work``; what was under way before is forgotten."""
        self._number += 1
        self._busy = True
        number = self._number

        def go() -> None:
            result, sentence = None, ""
            try:
                result = work()
            except BasslineError as error:
                sentence = str(error)
            except Exception as error:  # it would end unseen on this thread
                sentence = f"Something went wrong inside Bassline: {error or type(error).__name__}."
            try:
                self._ended.emit(number, result, sentence)
            except RuntimeError:  # the window has closed meanwhile
                pass

        threading.Thread(target=go, name="errand", daemon=True).start()

    def forget(self) -> None:
        """Nobody waits any more."""
        self._number += 1
        self._busy = False

    @Slot(int, object, str)
    def _take(self, number: int, result: object, sentence: str) -> None:
        if number != self._number:
            return
        self._busy = False
        if sentence:
            self.failed.emit(sentence)
        else:
            self.done.emit(result)
