"""One run from the command line: engine on its own thread, tests in the runner, one queue to this one."""

import contextlib
import queue
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

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
)
from engine.event_log import EventLog
from engine.runner.forms import parse
from engine.runner.isolation import same_process_sentence
from engine.runner.needs import same_process
from engine.runner.protocol import Answer, CancelTests, Isolation, RunTests, TestFinished
from engine.session.arms import Budget, Model
from engine.session.driver import RunDriver
from engine.session.effects import ConsentQuestion, Effect, FirstPass, RefusedTests, TestPolicy
from engine.session.provenance import Provenance
from engine.session.recorder import Recorder
from engine.session.run import Run
from engine.session.search import Search

_NAME = "run"
_TICK_S = 0.1
_CLOSE_S = 5.0
_PROBE_S = 60.0


class ConsentMissing(BasslineError):
    """The code cannot be sealed off here and nobody agreed to run it anyway."""


class RunnerSilent(BasslineError):
    """The service that runs tests died before it said anything."""


class CommandLineRunner(Protocol):
    """The part of ``engine.runner.client.RunnerClient`` that a run needs."""

    def probe(self) -> None: ...

    def test(self, test: RunTests) -> None: ...

    def cancel(self, id: str) -> None: ...

    def close(self) -> None: ...


OpenRunner = Callable[[Callable[[Answer], None]], CommandLineRunner]
AskConsent = Callable[[str], bool]


@dataclass(frozen=True)
class Job:
    """What to generate, with which models, against which tests. Empty ``tests``: none.

    ``first_pass``: be done when one candidate has passed. ``environment``: whose packages the tests may use.
    ``budget``: go on until one passes, with the models of ``ladder``, the one of ``choice`` first.
    """

    request: Request
    choice: ModelChoice
    tests: str = ""
    first_pass: bool = False
    environment: str = ""
    budget: Budget | None = None
    ladder: Sequence[Model] = ()


class Interrupt:
    """The user pressed Ctrl-C."""


class CommandLineRun:
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
        search = Search(job.budget, job.ladder) if job.budget else None
        self.run = Run(_NAME, search.first(job.request) if search else job.request, job.tests)
        self.ready: Ready | None = None
        self.load_failed: LoadFailed | None = None
        self.interrupted = False
        self._engine, self._open_runner, self._progress = engine, open_runner, progress
        self._ask_consent, self._recorder = ask_consent, recorder
        self._consents = set[str]()  # kinds, as ConsentNeeded names them
        policy = TestPolicy(as_finished=True, stop_at_first_pass=job.first_pass)
        self._driver = RunDriver(
            self.run, lambda: policy, consents=self._consents, environment=job.environment, search=search
        )
        self._runner: CommandLineRunner | None = None
        self._inbox: queue.SimpleQueue[Event | Answer | Interrupt] = queue.SimpleQueue()
        self._log = EventLog()

    def play(self) -> None:
        """Raises ConsentMissing before anything was loaded."""
        thread = threading.Thread(target=self._serve, name="engine", daemon=True)
        with contextlib.ExitStack() as at_end:
            at_end.callback(self._progress.close)
            if self.job.tests:
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
        """Before the long part: can the code be sealed off, and if not, does the user agree?"""
        assert self._runner is not None
        self._runner.probe()
        try:
            isolation = self._inbox.get(timeout=_PROBE_S)
        except queue.Empty:
            raise RunnerSilent("The test runner did not start; try again, or leave --tests out.") from None
        if isinstance(isolation, Isolation) and not isolation.sealed:
            self._must_agree("consent", isolation.words or isolation.note)
        if reason := same_process(parse(self.job.tests)):
            self._must_agree("same_process", same_process_sentence(reason))

    def _must_agree(self, kind: str, sentence: str) -> None:
        if not self._ask_consent(sentence):
            raise ConsentMissing(f"{sentence} Nothing was run; add --yes to run the code anyway.")
        self._consents.add(kind)

    def _over(self) -> bool:
        return bool(self.load_failed) or (self.interrupted and self.run.state == "waiting") or self._driver.over

    def _take_next(self) -> None:
        try:
            message = self._inbox.get(timeout=_TICK_S)
        except queue.Empty:
            message = None
        self._perform(self._driver.tick())
        if message is None:
            self._progress.tick()
        elif isinstance(message, Interrupt):
            self._interrupt()
        elif isinstance(message, Answer):
            self._take_answer(message)
        else:
            self._take_event(message)

    def _take_event(self, event: Event) -> None:
        self._log.event(event)
        if isinstance(event, Ready) and self.ready is None:
            self._ready(event)
        elif isinstance(event, LoadFailed) and self.ready is None:
            self.load_failed = event
        effects = self._driver.engine_event(event)
        if self._recorder is not None:
            self._recorder.note(self.run)
            if isinstance(event, CandidateFinished):
                self._recorder.flush()  # what is told of as finished outlives a kill
        self._progress.event(event, self.run)
        self._perform(effects)

    def _ready(self, event: Ready) -> None:
        self.ready = event
        self.run.provenance = Provenance(self.job.choice, event)
        self._perform(self._driver.begin())
        if self._recorder is not None:
            self._recorder.begin(self.run)

    def _take_answer(self, answer: Answer) -> None:
        number = None if isinstance(answer, Isolation) else self.run.number_of(answer.id)
        if number is None:
            return
        effects = self._driver.runner_answer(answer)
        if isinstance(answer, TestFinished) and self._recorder is not None:
            self._recorder.note(self.run)
        self._progress.tested(self.run, number)
        self._perform(effects)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case RunTests():
                    assert self._runner is not None
                    self._runner.test(effect)
                    if (number := self.run.number_of(effect.id)) is not None:
                        self._progress.tested(self.run, number)
                case CancelTests():
                    if self._runner is not None:
                        self._runner.cancel(effect.id)
                case ConsentQuestion():
                    self._answer(effect)
                case RefusedTests():
                    self._progress.note(effect.sentence)
                case FirstPass():
                    self._progress.note(f"Candidate {effect.candidate} passed; the others are stopped.")
                    self._perform(self._driver.cancel_tests())
                case _:
                    if isinstance(effect, Generate) and effect.request.first_candidate > 1:
                        self._progress.note(self._next_leg(effect))
                    self._submit(effect)

    def _next_leg(self, generate: Generate) -> str:
        """What a run that goes on tries now, in a sentence."""
        numbers = generate.request.numbers
        origins = [self.run.candidates[number].origin for number in numbers]
        corrected = sorted({origin.of for origin in origins if origin.of})
        repairs = f"repairs of candidate{'s' * (len(corrected) > 1)} {', '.join(map(str, corrected))}"
        fresh = next((f"more from {origin.model}" for origin in origins if not origin.of), "")
        what = " and ".join(filter(None, [fresh, repairs if corrected else ""]))
        return f"None has passed yet; candidates {numbers.start} to {numbers.stop - 1} are {what}."

    def _answer(self, asked: ConsentQuestion) -> None:
        given = self._ask_consent(asked.sentence)
        if not given:
            self._progress.note(f"{asked.sentence} The tests were not run; add --yes to run them anyway.")
        self._perform(self._driver.answer_consent(given))

    def _interrupt(self) -> None:
        self.interrupted = True
        self._progress.note("Stopping; Ctrl-C once more leaves at once.")
        if self.ready:
            self._perform(self._driver.stop())
        else:
            self._submit(Cancel())
