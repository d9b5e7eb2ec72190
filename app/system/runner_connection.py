"""The window's line to the test runner.

The runner's client calls back on its reader thread. The only thing done there is to emit a signal, which is
connected, queued, to a bound method of an object of the main thread.
"""

from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QObject, Qt, Signal, Slot

from engine.contract import BasslineError
from engine.runner.protocol import Answer, CancelTests, Isolation, Observe, RunTests


class WindowRunner(Protocol):
    """The part of ``engine.runner.client.RunnerClient`` that the window needs."""

    def probe(self) -> None: ...

    def test(self, test: RunTests) -> None: ...

    def observe(self, request: Observe) -> None: ...

    def cancel(self, id: str) -> None: ...

    def close(self) -> None: ...


OpenRunner = Callable[[Callable[[Answer], None]], WindowRunner]


class RunnerConnection(QObject):
    """Opens a runner with the first test. ``answered`` is emitted in the main thread."""

    answered = Signal(object)  # Answer, but for Isolation
    probed = Signal(object)  # Isolation: what holds on this machine, once per runner
    failed = Signal(str)
    _arrived = Signal(object)

    def __init__(self, open_runner: OpenRunner, parent: QObject | None = None):
        super().__init__(parent)
        self._open_runner = open_runner
        self._runner: WindowRunner | None = None
        self._closed = False
        self._arrived.connect(self._pass_on, Qt.ConnectionType.QueuedConnection)

    def send(self, request: RunTests | CancelTests | Observe) -> bool:
        """False, and ``failed`` says why, when no test can be run."""
        try:
            if isinstance(request, CancelTests):
                if self._runner is not None:
                    self._runner.cancel(request.id)
                return True
            if self._runner is None:
                self._runner = self._open_runner(self._arrived.emit)
                self._runner.probe()
            if isinstance(request, Observe):
                self._runner.observe(request)
            else:
                self._runner.test(request)
        except BasslineError as error:
            self.failed.emit(str(error))
            return False
        return True

    def close(self) -> None:
        """End the runner and every box; what it says in doing so is nobody's any more."""
        self._closed = True
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    @Slot(object)
    def _pass_on(self, answer: Answer) -> None:
        if self._closed:
            return
        if isinstance(answer, Isolation):
            self.probed.emit(answer)
        else:
            self.answered.emit(answer)
