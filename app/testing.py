"""Tests of a run: candidates go to the runner, its answers come back into the run.

The runner's client calls back on its reader thread. The only thing done there is to emit a signal, which is
connected, queued, to a bound method of an object of the main thread.
"""

import time
from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.words import tr
from engine.contract import BasslineError
from engine.runner.protocol import Answer, ConsentNeeded, Lamps, Test, TestFinished, TestProgress, TestStarted
from engine.session.run import Run


class Runner(Protocol):
    """The part of ``engine.runner.client.RunnerClient`` that the window needs."""

    def probe(self) -> None: ...

    def test(self, test: Test) -> None: ...

    def cancel(self, id: str) -> None: ...

    def close(self) -> None: ...


OpenRunner = Callable[[Callable[[Answer], None]], Runner]


class Testing(QObject):
    """``changed`` names a candidate with news, ``passed`` one that has just passed.

    ``consent_needed`` is said once for all that wait for it.
    """

    __test__ = False  # not a test class, whatever pytest makes of the name

    changed = Signal(int)
    passed = Signal(int)
    told = Signal(str)  # a sentence for who does not see the window
    looked = Signal(object)  # Lamps: what holds on this machine, once per runner
    consent_needed = Signal(str, str)  # a sentence, and what it is for: consent or same_process
    failed = Signal(str)
    _answered = Signal(object)

    def __init__(self, open_runner: OpenRunner, parent: QObject | None = None):
        super().__init__(parent)
        self._open_runner = open_runner
        self._runner: Runner | None = None
        self._run: Run | None = None
        self._started_at = 0.0
        self._agreed: set[str] = set()  # kinds of consent
        self._asking = ""
        self._waiting: list[int] = []  # for consent
        self._open: set[str] = set()
        self._ending: set[str] = set()  # cancelled, and not yet confirmed by the runner
        self._answered.connect(self._take, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        candidates = self._run.candidates.values() if self._run else ()
        return any(candidate.test_state in ("queued", "running") for candidate in candidates)

    def attach(self, run: Run) -> None:
        """Test this run's candidates from now on; its time starts now."""
        self.cancel()
        self._run, self._started_at = run, time.monotonic()

    def test(self, tests: str) -> None:
        """Hand over every candidate that has ended and has no verdict on these tests yet."""
        if self._run is None:
            return
        if tests != self._run.tests:
            self.cancel()
            self._run.change_tests(tests)
        for number in self._run.next_to_test():
            self._submit(number)

    def answer_consent(self, given: bool) -> None:
        waiting, self._waiting = self._waiting, []
        if not given:
            self.cancel()
            return
        self._agreed.add(self._asking)
        for number in waiting:
            self._submit(number)

    def cancel(self) -> None:
        """End every test run at once; candidates without a verdict are *not run* again."""
        if self._run is None:
            return
        self._waiting = []
        busy = [n for n, c in self._run.candidates.items() if c.test_state in ("queued", "running")]
        self._run.forget_queued_tests()
        for number in busy:
            self._end(self._run.test_name(number))
            self.changed.emit(number)

    def close(self) -> None:
        """End the runner and every box."""
        self._run = None
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _submit(self, number: int) -> None:
        assert self._run is not None
        name = self._run.queue_test(number)
        if name in self._ending:
            return  # its turn comes when the runner has let go of the last one by that name
        try:
            if self._runner is None:
                self._runner = self._open_runner(self._answered.emit)
                self._runner.probe()
            self._open.add(name)
            self._runner.test(
                Test(
                    name,
                    self._run.candidates[number].code,
                    self._run.tests,
                    consent="consent" in self._agreed,
                    same_process="same_process" in self._agreed,
                )
            )
        except BasslineError as error:
            self._open.discard(name)
            self._run.forget_queued_tests()
            self.failed.emit(str(error))
        self.changed.emit(number)

    def _end(self, name: str) -> None:
        if self._runner is not None and name in self._open:
            self._ending.add(name)
            self._runner.cancel(name)

    @Slot(object)
    def _take(self, answer: Answer) -> None:
        if isinstance(answer, Lamps):
            self.looked.emit(answer)
            return
        ending = answer.id in self._ending
        if isinstance(answer, TestFinished | ConsentNeeded):
            self._open.discard(answer.id)
            self._ending.discard(answer.id)
        number = self._run.number_of(answer.id) if self._run else None
        if self._run is None or number is None:
            return
        candidate = self._run.candidates[number]
        if ending:  # the last words of a test that was cancelled are no verdict
            if answer.id not in self._ending and candidate.test_state == "queued":
                self._submit(number)
            return
        if isinstance(answer, TestStarted):
            self._run.test_progress(number, 0, answer.total)
        elif isinstance(answer, TestProgress):
            self._run.test_progress(number, candidate.tests_done + 1, candidate.tests_total)
        elif isinstance(answer, TestFinished):
            self._run.record(number, answer.report, time.monotonic() - self._started_at)
            words = tr("Candidate {number}: tests {label}")
            self.told.emit(words.format(number=number, label=candidate.tests_label))
            if candidate.passed:
                self.passed.emit(number)
        elif isinstance(answer, ConsentNeeded):
            self._waiting.append(number)
            if len(self._waiting) == 1:
                self._asking = answer.kind
                self.consent_needed.emit(answer.sentence, answer.kind)
        self.changed.emit(number)
