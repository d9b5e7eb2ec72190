"""One run from the command line: engine on its own thread, tests in the runner, one queue to this one."""

import contextlib
import queue
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from app.cli.interrupts import on_interrupt
from app.cli.progress import Progress
from engine.contract import (
    BasslineError,
    Cancel,
    CandidateFinished,
    Close,
    Engine,
    Event,
    Generate,
    Load,
    LoadFailed,
    Message,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
    RunStarted,
)
from engine.event_log import EventLog
from engine.runner.forms import parse
from engine.runner.lamps import same_process_sentence
from engine.runner.needs import same_process
from engine.runner.protocol import (
    Answer,
    ConsentNeeded,
    Lamps,
    Test,
    TestFinished,
    TestProgress,
    TestStarted,
)
from engine.session.provenance import Provenance
from engine.session.recorder import Recorder
from engine.session.run import Candidate, Run

_NAME = "run"
_TICK_S = 0.1
_CLOSE_S = 5.0
_PROBE_S = 60.0


class ConsentMissing(BasslineError):
    """The code cannot be sealed off here and nobody agreed to run it all the same."""


class RunnerSilent(BasslineError):
    """The service that runs tests died before it said anything."""


class Runner(Protocol):
    """The part of ``engine.runner.client.RunnerClient`` that a run needs."""

    def probe(self) -> None: ...

    def test(self, test: Test) -> None: ...

    def cancel(self, id: str) -> None: ...

    def close(self) -> None: ...


OpenRunner = Callable[[Callable[[Answer], None]], Runner]
AskConsent = Callable[[str], bool]


@dataclass(frozen=True)
class Job:
    """What to generate, with which models, against which tests. Empty ``tests``: none.

    ``first_pass``: be done when one candidate has passed. ``environment``: whose packages the tests may use.
    """

    request: Request
    choice: ModelChoice
    tests: str = ""
    first_pass: bool = False
    environment: str = ""


class Interrupt:
    """The person pressed Ctrl-C."""


class Generation:
    """Plays one job to its end. Afterwards ``run`` holds what came of it, also when it was interrupted."""

    def __init__(
        self,
        job: Job,
        engine: Engine,
        open_runner: OpenRunner,
        ask_consent: AskConsent,
        progress: Progress,
        recorder: Recorder | None = None,
    ) -> None:
        self.job = job
        self.run = Run(_NAME, job.request, job.tests)
        self.ready: Ready | None = None
        self.load_failed: LoadFailed | None = None
        self.interrupted = False
        self._engine, self._open_runner, self._progress = engine, open_runner, progress
        self._ask_consent, self._recorder = ask_consent, recorder
        self._agreed: set[str] = set()  # kinds of consent, as ConsentNeeded names them
        self._testing = bool(job.tests)
        self._runner: Runner | None = None
        self._inbox: queue.SimpleQueue[Event | Answer | Interrupt] = queue.SimpleQueue()
        self._started_at = 0.0
        self._log = EventLog()

    def play(self) -> None:
        """Raises ConsentMissing before anything was loaded."""
        thread = threading.Thread(target=self._serve, name="engine", daemon=True)
        with contextlib.ExitStack() as at_end:
            at_end.callback(self._progress.close)
            if self._testing:
                self._runner = self._open_runner(self._inbox.put)
                at_end.callback(self._runner.close)
                self._agree()
            at_end.enter_context(on_interrupt(lambda: self._inbox.put(Interrupt())))
            thread.start()
            at_end.callback(thread.join, _CLOSE_S)
            at_end.callback(self._engine.submit, Close())
            self._submit(Load(self.job.choice))
            while not self._over():
                self._take_next()

    def _submit(self, message: Message) -> None:
        self._log.message(message)
        self._engine.submit(message)

    def _serve(self) -> None:
        try:
            self._engine.run(self._inbox.put)
        except Exception as error:  # whatever it is, finished candidates must stay
            reason, details = f"The engine stopped with an error: {error}", traceback.format_exc()
            self._inbox.put(RunFinished(_NAME, "failed", reason=reason, details=details))

    def _agree(self) -> None:
        """Before the long part: can the code be sealed off, and if not, does the person agree?"""
        assert self._runner is not None
        self._runner.probe()
        try:
            lamps = self._inbox.get(timeout=_PROBE_S)
        except queue.Empty:
            raise RunnerSilent("The test runner did not start; try again, or leave --tests out.") from None
        if isinstance(lamps, Lamps) and not lamps.sealed:
            self._must_agree("consent", lamps.words or lamps.note)
        if reason := same_process(parse(self.job.tests)):
            self._must_agree("same_process", same_process_sentence(reason))

    def _must_agree(self, kind: str, sentence: str) -> None:
        if not self._ask_consent(sentence):
            raise ConsentMissing(f"{sentence} Nothing was run; add --yes to run the code all the same.")
        self._agreed.add(kind)

    def _over(self) -> bool:
        if self.load_failed or (self.interrupted and self.run.state == "waiting"):
            return True
        return self.run.ended and (not self._testing or self.run.tested)

    def _take_next(self) -> None:
        try:
            message = self._inbox.get(timeout=_TICK_S)
        except queue.Empty:
            self._progress.tick()
            return
        if isinstance(message, Interrupt):
            self._interrupt()
        elif isinstance(message, Answer):
            self._tests_say(message)
        else:
            self._engine_says(message)
        if self._testing:
            self._hand_over()

    def _engine_says(self, event: Event) -> None:
        self._log.event(event)
        if isinstance(event, RunStarted):
            self._started_at = time.monotonic()
        elif isinstance(event, Ready):
            self.ready = event
            self._submit(Generate(_NAME, self.job.request))
            self.run.provenance = Provenance(self.job.choice, event)
            if self._recorder is not None:
                self._recorder.begin(self.run)
        elif isinstance(event, LoadFailed):
            self.load_failed = event
        self.run.apply(event)
        if self._recorder is not None:
            self._recorder.note(self.run)
            if isinstance(event, CandidateFinished):
                self._recorder.flush()  # what is told of as finished outlives a kill
        self._progress.event(event, self.run)

    def _tests_say(self, answer: Answer) -> None:
        if isinstance(answer, Lamps):
            return
        number = self.run.number_of(answer.id)
        if number is None:
            return
        candidate = self.run.candidates[number]
        match answer:
            case TestStarted():
                self.run.test_progress(number, 0, answer.total)
            case TestProgress():
                self.run.test_progress(number, candidate.tests_done + 1, candidate.tests_total)
            case TestFinished():
                if self._testing:  # after Ctrl-C the last words of cancelled tests are no verdicts
                    self.run.record(number, answer.report, time.monotonic() - self._started_at)
                    if self._recorder is not None:
                        self._recorder.note(self.run)
                    self._first_pass(candidate)
            case ConsentNeeded():
                self._consent_needed(number, answer)
        self._progress.tested(self.run, number)

    def _first_pass(self, candidate: Candidate) -> None:
        """Where one is enough, the run has what it was asked for."""
        if self.job.first_pass and candidate.passed:
            self._progress.note(f"Candidate {candidate.number} passed; the others are stopped.")
            self._stop_testing()
            if not self.run.ended:
                self.run.stop()
                self._submit(Cancel(_NAME))

    def _consent_needed(self, number: int, asked: ConsentNeeded) -> None:
        if asked.kind in self._agreed or self._ask_consent(asked.sentence):
            self._agreed.add(asked.kind)
            self._test(number)
        else:
            self._progress.note(f"{asked.sentence} The tests were not run; add --yes to run them all the same.")
            self._stop_testing()

    def _hand_over(self) -> None:
        for number in self.run.next_to_test():
            self._test(number)

    def _test(self, number: int) -> None:
        assert self._runner is not None
        name = self.run.queue_test(number)
        code = self.run.candidates[number].code
        agreed: dict[str, Any] = dict.fromkeys(self._agreed, True)
        self._runner.test(Test(name, code, self.job.tests, environment=self.job.environment, **agreed))
        self._progress.tested(self.run, number)

    def _interrupt(self) -> None:
        self.interrupted = True
        self._progress.note("Stopping; Ctrl-C once more leaves at once.")
        self._stop_testing()
        if self.ready:
            self.run.stop()
            self._submit(Cancel(_NAME))
        else:
            self._submit(Cancel())

    def _stop_testing(self) -> None:
        self._testing = False
        for number, candidate in self.run.candidates.items():
            if self._runner and candidate.test_state in ("queued", "running"):
                self._runner.cancel(self.run.test_name(number))
        self.run.forget_queued_tests()
