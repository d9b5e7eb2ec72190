"""Work that would block the window, on its own thread; the result comes back to the main thread."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import ref

from PySide6.QtCore import QObject, Qt, Signal, Slot
from shiboken6 import isValid

from engine.contract import BasslineError


class _MainThread(QObject):
    """Brings what other threads say into the main thread. It outlives every window.

    A signal emitted on an object that the main thread deletes at that very moment is a crash, and to ask beforehand
    whether the object still lives does not help. So nothing that can die is touched on the other thread.
    """

    arrived = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.arrived.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    @Slot(object)
    def _deliver(self, message: "_Call") -> None:
        owner = message.owner()
        if owner is not None and isValid(owner):
            message.call(owner)


@cache
def _main_thread() -> _MainThread:
    return _MainThread()


@dataclass(frozen=True)
class _Call:
    owner: "ref[QObject]"
    call: Callable[[Any], None]


def main_thread_call(owner: QObject) -> Callable[[Callable[[Any], None]], None]:
    """A function that any thread may call: what it is given is called with ``owner`` in the main thread, if that lives.

    Ask for it in the main thread.
    """
    signal, weak = _main_thread().arrived, ref(owner)
    return lambda call: signal.emit(_Call(weak, call))


class Task(QObject):
    """One piece of work at a time. ``done`` gives its result, ``failed`` a sentence; a forgotten one says nothing."""

    done = Signal(object)
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None):
        super().__init__(parent)
        self._number = 0
        self._busy = False

    @property
    def busy(self) -> bool:
        return self._busy

    def run(self, work: Callable[[], Any]) -> None:
        """Start ``work``; what was under way before is forgotten."""
        self._number += 1
        self._busy = True
        number, tell = self._number, main_thread_call(self)

        def go() -> None:
            result, sentence = None, ""
            try:
                result = work()
            except BasslineError as error:
                sentence = str(error)
            except Exception as error:  # it would end unseen on this thread
                sentence = f"Something went wrong inside Bassline: {error or type(error).__name__}."
            tell(lambda task: task.take(number, result, sentence))

        threading.Thread(target=go, name="task", daemon=True).start()

    def forget(self) -> None:
        """Nobody waits any more."""
        self._number += 1
        self._busy = False

    def take(self, number: int, result: object, sentence: str) -> None:
        """How it ended; called in the main thread."""
        if number != self._number:
            return
        self._busy = False
        if sentence:
            self.failed.emit(sentence)
        else:
            self.done.emit(result)
