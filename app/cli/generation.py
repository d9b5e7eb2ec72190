"""One run from the command line: the engine on its own thread, tests in the runner, one queue to this thread."""

import contextlib
import queue
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.cli.interrupts import on_interrupt
from app.cli.progress import Progress
from app.cli.questions import Comparison
from engine.contract import (
    BadRequest,
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
    RunOutcome,
)
from engine.event_log import EventLog
from engine.runner.isolation import same_process_sentence
from engine.runner.needs import same_process
from engine.runner.protocol import (
    Answer,
    CancelTests,
    ConsentNeeded,
    Isolation,
    Observe,
    Observed,
    RunTests,
    TestFinished,
)
from engine.runner.verdicts import Verdict
from engine.session.arms import Budget, Model, best_failing
from engine.session.checked_tests import check
from engine.session.driver import RunDriver
from engine.session.effects import ConsentQuestion, Effect, FirstPass, RefusedTests, TestPolicy
from engine.session.own_file import OWN, is_own
from engine.session.provenance import Provenance
from engine.session.recorder import Recorder
from engine.session.resume import search_of
from engine.session.run import Run
from engine.session.search import Search
from engine.session.turns import can_fix

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

    def observe(self, request: Observe) -> None: ...

    def cancel(self, id: str) -> None: ...

    def close(self) -> None: ...


OpenRunner = Callable[[Callable[[Answer], None]], CommandLineRunner]
AskConsent = Callable[[str], bool]


@dataclass(frozen=True)
class Job:
    """What to generate, with which models, against which tests. Empty ``tests``: none.

    ``first_pass``: be done when one candidate has passed. ``environment``: whose packages the tests may use.
    ``budget``: go on until one passes, with the models of ``ladder``, the one of ``choice`` first.
    ``compare``: call the candidates with the same inputs afterwards, and rank by what they do; ``ask``: ask which
    results are right; ``suggest``: have the model write tests, which order the candidates, for that file.

    ``run``: go on with this one, which has ended, instead of beginning one; ``kept`` is its number in the history.
    ``fix``: begin with corrections of that candidate of it, or of the ``BEST`` of those that fail these tests; without
    a budget these are all, as many as ``request`` asks for.
    """

    request: Request
    choice: ModelChoice
    tests: str = ""
    first_pass: bool = False
    environment: str = ""
    budget: Budget | None = None
    ladder: Sequence[Model] = ()
    compare: bool = False
    ask: bool = False
    suggest: Path | None = None
    run: Run | None = None
    kept: int | None = None
    fix: int = 0


BEST = -1  # for ``Job.fix``


def check_fix(run: Run, number: int) -> None:
    """Raises BadRequest when the tests of that candidate found nothing that could be corrected."""
    candidate = run.candidates[number]
    if candidate.has_no_code:
        raise BadRequest(f"Candidate {number} wrote no code; choose another one.")
    if candidate.report is not None and candidate.report.verdict == Verdict.INFRA:
        raise BadRequest(candidate.why)
    if sentence := can_fix(candidate):
        raise BadRequest(sentence)


class Interrupt:
    """The user pressed Ctrl-C."""


class CommandLineRun:
    """Plays one job to its end. Afterwards ``run`` holds what came of it, also when it was interrupted.

    ``asked``: the engine was asked for candidates. It is not where a run that was to go on passes its tests already.
    """

    def __init__(
        self,
        job: Job,
        open_engine: Callable[[], Engine],
        open_runner: OpenRunner,
        ask_consent: AskConsent,
        progress: Progress,
        recorder: Recorder | None = None,
    ) -> None:
        self.job = job
        search = Search(job.budget, job.ladder) if job.budget and not job.run else None
        self.run = job.run or Run(_NAME, search.first(job.request) if search else job.request, job.tests)
        self._search = search_of(job.run, job.ladder, job.budget) if job.budget and job.run else None
        self._choice = self._search.ladder[self._search.loaded].choice if self._search else job.choice
        self.asked = False
        self.ready: Ready | None = None
        self.load_failed: LoadFailed | None = None
        self.interrupted = False
        self._reason = ""  # of the last leg's end, which the next one leaves behind
        # A run that goes on may turn out to need none, and to open one takes seconds.
        self._engine = open_engine() if job.run is None else None
        self._open_engine, self._open_runner, self._progress = open_engine, open_runner, progress
        self._ask_consent, self._recorder = ask_consent, recorder
        self._tests = job.tests  # and the answers to questions
        self._fix = job.fix
        self._consents = set[str]()  # kinds, as ConsentNeeded names them
        policy = TestPolicy(as_finished=True, stop_at_first_pass=job.first_pass)
        self._driver = RunDriver(
            self.run,
            lambda: policy,
            tests=lambda: self._tests,
            consents=self._consents,
            environment=job.environment,
            search=search,
        )
        self._runner: CommandLineRunner | None = None
        self.comparison: Comparison | None = None
        self._inbox: queue.SimpleQueue[Event | Answer | Interrupt] = queue.SimpleQueue()
        self._log = EventLog()

    def play(self) -> None:
        """Raises ConsentMissing before anything was loaded, and BadRequest where nothing can be corrected."""
        with contextlib.ExitStack() as at_end:
            at_end.callback(self._progress.close)
            if self._recorder is not None and self.job.kept is not None:
                self._recorder.resume(self.run, self.job.kept)
                self._recorder.hold(self.run)
                self._recorder.flush()  # before anything that takes long
            if self.job.tests or self.job.compare:
                self._runner = self._open_runner(self._inbox.put)
                at_end.callback(self._runner.close)
                self._agree()
            at_end.enter_context(on_interrupt(lambda: self._inbox.put(Interrupt())))
            if self.job.run is not None and not self._needs_more():
                return
            engine = self._engine = self._engine or self._open_engine()
            thread = threading.Thread(target=self._serve, args=(engine,), name="engine", daemon=True)
            thread.start()
            at_end.callback(thread.join, _CLOSE_S)
            at_end.callback(engine.submit, Close())
            self._submit(Load(self._choice))
            while not self._over():
                self._take_next()
            if self.job.compare and self.run.ended and not self.interrupted and self.ready:
                self._compare()

    def _submit(self, message: Message) -> None:
        assert self._engine is not None
        self._log.message(message)
        self._engine.submit(message)

    def _serve(self, engine: Engine) -> None:
        try:
            engine.run(self._inbox.put)
        except Exception as error:  # whatever it is, finished candidates must stay
            reason, details = f"The engine stopped with an error: {error}", traceback.format_exc()
            self._inbox.put(RunFinished(self.run.name, RunOutcome.FAILED, reason=reason, details=details))

    def _needs_more(self) -> bool:
        """What there is is tested first, which needs no model. Raises BadRequest where nothing can be corrected."""
        self._perform(self._driver.run_tests())
        while self._driver.testing and not self.interrupted:
            self._take_next()
        if self.interrupted or any(candidate.passed for candidate in self.run.candidates.values()):
            return False
        if self._fix == BEST:
            best = best_failing(self.run)
            if best is None:
                run = self.job.kept
                raise BadRequest(
                    f"No candidate of run {run} is left whose failing test could be shown to the model; "
                    f"name one (fix {run} CANDIDATE), or try others: resume {run}."
                )
            self._fix = best.number
        if number := self._fix or (OWN if is_own(self.run) and not self.run.decisions else 0):
            check_fix(self.run, number)
        return True

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
        source = check(self.job.tests).source if self.job.tests else None
        if source is not None and (reason := same_process(source)):
            self._must_agree("same_process", same_process_sentence(reason))

    def _must_agree(self, kind: str, sentence: str) -> None:
        if not self._ask_consent(sentence):
            raise ConsentMissing(f"{sentence} Nothing was run; add --yes to run the code anyway.")
        self._consents.add(kind)

    def _over(self) -> bool:
        if self.load_failed or not self.asked:
            return bool(self.load_failed) or self.interrupted
        return self._driver.over

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
        if isinstance(event, RunFinished):
            self._reason = event.reason
        effects: list[Effect] = []
        if isinstance(event, Ready | LoadFailed) and self.ready is None:
            self._first_model_answered(event)
        else:
            if isinstance(event, RunFinished) and not self.asked:  # the engine's last words
                self.load_failed = LoadFailed(event.reason, event.details)
            effects = self._driver.engine_event(event)
        if self._recorder is not None:
            self._recorder.note(self.run)
            if isinstance(event, CandidateFinished):
                self._recorder.flush()  # what is told of as finished outlives a kill
        self._progress.event(event, self.run)
        self._perform(effects)

    def _first_model_answered(self, event: Ready | LoadFailed) -> None:
        """The run begins. The driver did not ask for this model, and may be about to ask for another."""
        if isinstance(event, LoadFailed):
            self.load_failed = event
            return
        self.ready = event
        self.run.provenance = Provenance(self._choice, event)
        effects = self._begin()
        self.asked = True
        if self._recorder is not None and self.job.kept is None:
            self._recorder.begin(self.run)
            self._recorder.hold(self.run)
        self._perform(effects)

    def _begin(self) -> list[Effect]:
        if self.job.run is None:
            return self._driver.begin()
        if self._search is not None:
            return self._driver.go_on(self._search, self._fix)
        return self._driver.repair(self._fix, self.job.request.candidates, self.job.request.seed)

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
                    others = "; the others are stopped" if effect.stopped else ""
                    self._progress.note(f"Candidate {effect.candidate} passed{others}.")
                    self._perform(self._driver.cancel_tests())
                case _:
                    if isinstance(effect, Generate) and effect.request.first_candidate > 1:
                        self._note_next_leg(effect)
                    self._submit(effect)

    def _note_next_leg(self, generate: Generate) -> None:
        """What befell candidates of the leg before, and what a run that goes on tries now."""
        if self._reason:
            self._progress.note(f"bassline: {self._reason}")
            self._reason = ""
        numbers = generate.request.numbers
        origins = [self.run.candidates[number].origin for number in numbers]
        corrected = sorted({origin.of for origin in origins if origin.of})
        repairs = f"repairs of candidate{'s' * (len(corrected) > 1)} {', '.join(map(str, corrected))}"
        fresh = next((f"more from {origin.model}" for origin in origins if not origin.of), "")
        what = " and ".join(filter(None, [fresh, repairs if corrected else ""]))
        self._progress.note(f"None has passed yet; candidates {numbers.start} to {numbers.stop - 1} are {what}.")

    def _answer(self, asked: ConsentQuestion) -> None:
        given = self._ask_consent(asked.sentence)
        if not given:
            self._progress.note(f"{asked.sentence} The tests were not run; add --yes to run them anyway.")
        self._perform(self._driver.answer_consent(given))

    # What candidates do.

    def _compare(self) -> None:
        self.comparison = Comparison(self.run, self, "consent" in self._consents, self.job.environment)
        self.comparison.compare(self.job.suggest is not None)
        if self.job.ask and not self.interrupted:
            self._tests = self.comparison.ask()
        if self._recorder is not None:
            self._recorder.note(self.run)
        if self._tests != self.run.tests:
            self._perform(self._driver.run_tests())
            while not self._over():
                self._take_next()

    def note(self, sentence: str) -> None:
        self._progress.note(sentence)

    def observe(self, requests: list[Observe]) -> Iterator[Observed]:
        """Ends early where the user interrupts."""
        assert self._runner is not None
        for request in requests:
            self._runner.observe(request)
        left = {request.id for request in requests}
        while left and not self.interrupted:
            message = self._inbox.get()
            if isinstance(message, Interrupt):
                self._interrupt()
            elif isinstance(message, Observed) and message.id in left:
                left.remove(message.id)
                yield message
            elif isinstance(message, ConsentNeeded) and message.id in left:
                left.remove(message.id)
                yield Observed(message.id, (), message.sentence)

    def generate(self, request: Request, name: str) -> list[str]:
        """Texts by the model of the run, in the order of their numbers; those that were written when it was ended."""
        texts: dict[int, str] = {}
        self._submit(Generate(name, request))
        while True:
            message = self._inbox.get()
            if isinstance(message, Interrupt):
                self.interrupted = True
                self._submit(Cancel(name))
            elif isinstance(message, CandidateFinished) and message.run == name:
                texts[message.candidate] = message.text
            elif isinstance(message, RunFinished) and message.run in (name, _NAME):
                return [text for _, text in sorted(texts.items())]

    def _interrupt(self) -> None:
        self.interrupted = True
        self._progress.note("Stopping; Ctrl-C once more leaves at once.")
        self._perform(self._driver.stop())
        if not self.ready and self._engine is not None:
            self._submit(Cancel())
