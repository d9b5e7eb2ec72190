"""One run after another, from Generate to the last verdict."""

import secrets
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.controllers.model_load import ModelLoadController
from app.system.engine_thread import EventBatch
from app.system.runner_connection import RunnerConnection
from app.ui.words import tr
from engine.contract import (
    BadRequest,
    Cancel,
    CandidateFinished,
    Generate,
    Load,
    LoadFailed,
    ModelChoice,
    Request,
    RunFinished,
    RunOutcome,
)
from engine.runner.protocol import Answer, CancelTests, Isolation, RunTests, TestFinished
from engine.session import turns
from engine.session.batches import repairs_of_each
from engine.session.driver import RunDriver
from engine.session.effects import ConsentQuestion, Effect, FirstPass, RefusedTests, TestPolicy
from engine.session.provenance import Provenance
from engine.session.run import Run
from engine.session.search import Search

FORCE_MS = 3000
TICK_MS = 200


class RunController(QObject):
    """Owns the run in view and its driver, and carries messages between the driver, the engine and the test runner."""

    in_view = Signal(object)  # a Run: new, or an old one that is looked at again
    began = Signal(object)  # a Run that was handed to the engine just now, for the first time or to go on
    applied = Signal(tuple)  # events that came together, after the run has taken them in
    finished = Signal(object)  # RunFinished
    tests_changed = Signal()  # there is news of tests
    stuck = Signal()  # Stop was asked for three seconds ago, and the engine has not answered
    for_the_user = Signal(object)  # ConsentQuestion, RefusedTests or FirstPass
    announcement = Signal(str)  # a sentence for who does not see the window
    searched = Signal(object)  # a Run whose search has ended without a pass
    larger_model = Signal(str, object)  # a model that a search would load, and what to call with a yes or a no
    changed = Signal()

    def __init__(
        self,
        loading: ModelLoadController,
        runner: RunnerConnection,
        policy: Callable[[], TestPolicy],
        tests: Callable[[], str],
        parent: QObject | None = None,
    ):
        """``policy`` and ``tests``: as they stand in the window now."""
        super().__init__(parent)
        self.driver: RunDriver | None = None
        self.objection: Callable[[Run], str] = lambda _: ""  # why a run that has ended must not go on here
        self._loading, self._runner = loading, runner
        self._policy, self._tests = policy, tests
        self._consents = set[str]()
        self._waiting: Callable[[], None] | None = None  # what begins as soon as the models are there
        self._force_timer = QTimer(self)
        self._force_timer.setSingleShot(True)
        self._force_timer.timeout.connect(self.stuck)
        self._last_word: RunFinished | None = None  # of the engine, on all that it was asked for
        self._clock = QTimer(self)  # while a run searches: its budget of time is kept
        self._clock.setInterval(TICK_MS)
        self._clock.timeout.connect(self._tick)
        loading.ready_for.connect(self._models_are_there)
        loading.failed.connect(self._no_models)
        loading.received.connect(self._receive)
        runner.answered.connect(self._answered)

    @property
    def run(self) -> Run | None:
        """The run in view."""
        return self.driver.run if self.driver else None

    @property
    def busy(self) -> bool:
        """The engine has not said its last word on the run in view, or will be asked for more."""
        return self.driver is not None and (not self.driver.run.ended or self.driver.continues)

    @property
    def testing(self) -> bool:
        return self.driver is not None and self.driver.testing

    def start(self, request: Request, choice: ModelChoice, tests: str, search: Search | None = None) -> None:
        """A new run; the models are loaded first when they are not there yet. ``search``: until one passes."""

        def begin() -> None:
            run = Run(_new_name(), search.first(request) if search else request, tests)
            run.provenance = Provenance(self._loading.loaded, self._loading.ready)
            self.show(run, search)
            assert self.driver is not None
            self._begin(run, self.driver.begin())

        self._when_loaded(choice, begin)

    def more(self, count: int, choice: ModelChoice) -> None:
        """``count`` further candidates of the run in view, whether it goes on or has ended. Raises BadRequest."""
        driver = self.driver
        if driver is None:
            return
        driver.run.more(count)  # raises before a model is loaded for it
        if not self.busy:
            self._reopen(driver.run, choice, lambda: driver.more(count))
        else:
            self._perform(driver.more(count))
            self.changed.emit()

    def go_on(self, choice: ModelChoice, search: Search | None = None) -> None:
        """The run in view has ended, and goes on with what it did not finish; ``search``: until one passes.

        Raises BadRequest where it must not.
        """
        driver = self.driver
        if driver is None or self.busy:
            return
        self._reopen(driver.run, choice, lambda: driver.go_on(search))

    def repair(self, number: int, count: int, seed: int, choice: ModelChoice) -> None:
        """Corrections of a candidate join the run in view. Raises BadRequest."""
        driver = self.driver
        if driver is None or self.busy:
            return
        turns.fix(driver.run, number, seed)  # raises before a model is loaded for it
        self._reopen(driver.run, choice, lambda: driver.repair(number, count, seed))

    def repair_each(self, count: int, seed: int, choice: ModelChoice) -> None:
        """Corrections of all answers that failed join the run in view, in one batch. Raises BadRequest."""
        driver = self.driver
        if driver is None or self.busy:
            return
        repairs_of_each(driver.run, count, seed)  # raises before a model is loaded for it
        self._reopen(driver.run, choice, lambda: driver.repair_each(count, seed))

    def show(self, run: Run, search: Search | None = None) -> None:
        """Put a run into view, of which nothing is asked yet."""
        self.cancel_tests()
        self.driver = RunDriver(run, self._policy, tests=self._tests, consents=self._consents, search=search)
        self.in_view.emit(run)
        self.changed.emit()

    def stop(self) -> None:
        """Ask for an end of the run and its tests; it has come when the engine says so."""
        self._waiting = None
        if self.driver is not None:
            self._perform(self.driver.stop())
        self.changed.emit()

    def stop_one(self, number: int) -> None:
        if self.run is not None:
            self._loading.submit(Cancel(self.run.name, number))

    def force(self) -> None:
        """The engine does not come back: what it owes has failed, and the next load opens another."""
        run = self.run
        self._loading.abandon()
        if run is not None and not run.ended:
            self._receive((RunFinished(run.name, RunOutcome.STOPPED),))

    def close(self) -> None:
        self._waiting = None
        self._force_timer.stop()
        self._clock.stop()

    # Tests.

    def policy_changed(self) -> None:
        if self.driver is not None:
            self._perform(self.driver.policy_changed())

    def run_tests(self) -> None:
        if self.driver is not None:
            self._perform(self.driver.run_tests())

    def cancel_tests(self) -> None:
        if self.driver is not None:
            self._perform(self.driver.cancel_tests())

    def answer_consent(self, given: bool) -> None:
        if self.driver is not None:
            self._perform(self.driver.answer_consent(given))

    # What the driver wants done.

    def _perform(self, effects: Iterable[Effect]) -> None:
        tests, no_runner = False, False
        for effect in effects:
            match effect:
                case RunTests() | CancelTests():
                    tests = True
                    if not no_runner and not self._runner.send(effect) and self.driver is not None:
                        no_runner = True  # it has said why; what else is to be done does not need one
                        self.driver.answer_consent(False)
                case ConsentQuestion() | RefusedTests() | FirstPass():
                    self.for_the_user.emit(effect)
                case Load():
                    self._load_for_search(effect.choice)
                case _:
                    if isinstance(effect, Cancel) and not self._force_timer.isActive():
                        self._force_timer.start(FORCE_MS)
                    if isinstance(effect, Generate):
                        self._last_word = None
                    self._loading.submit(effect)
        if tests:
            self.tests_changed.emit()
        self._tell_end()

    def _tell_end(self) -> None:
        """Once, when the engine has said its last word and nothing more will be asked of it."""
        if self._last_word is None or self.driver is None or self.driver.continues or not self.driver.run.ended:
            return
        event, self._last_word = self._last_word, None
        self._force_timer.stop()
        self._clock.stop()
        self.finished.emit(event)
        if not self.driver.testing and self.driver.run.decisions:
            self.searched.emit(self.driver.run)
        self.announcement.emit(tr("The run has ended: {outcome}").format(outcome=tr(event.outcome)))

    def _reopen(self, run: Run, choice: ModelChoice, do: Callable[[], list[Effect]]) -> None:
        """A run that has ended goes on with what ``do`` asks for, once the models are there."""
        if sentence := self.objection(run):
            raise BadRequest(sentence)
        self._when_loaded(choice, lambda: self._begin(run, do()))

    def _load_for_search(self, choice: ModelChoice) -> None:
        """The next model of a search, once the user has nothing against it."""
        driver = self.driver

        def loaded() -> None:
            if driver is not None and driver is self.driver and self._loading.ready is not None:
                self._perform(driver.engine_event(self._loading.ready))
                self.changed.emit()

        def decide(agreed: bool) -> None:
            if agreed:
                self._when_loaded(choice, loaded)
            elif driver is not None and driver is self.driver:
                self._perform(driver.engine_event(LoadFailed("The user did not want it.")))

        if self._loading.has(choice):
            loaded()
        else:
            self.larger_model.emit(choice.model, decide)

    def _when_loaded(self, choice: ModelChoice, do: Callable[[], None]) -> None:
        if self._loading.has(choice):
            do()
        else:
            self._waiting = do
            self._loading.load(choice)

    @Slot(object)
    def _models_are_there(self, choice: ModelChoice) -> None:
        if not self._loading.busy and self._waiting is not None:
            do, self._waiting = self._waiting, None
            do()

    @Slot(object)
    def _no_models(self, event: LoadFailed) -> None:
        if event.cancelled and self._loading.busy:
            return  # another load took its place, and that is what is waited for
        self._waiting = None
        if self.driver is not None:
            self._perform(self.driver.engine_event(event))  # a search goes on without that model

    def _begin(self, run: Run, effects: list[Effect]) -> None:
        if self.driver is not None and self.driver.searching:
            self._clock.start()
        self.began.emit(run)
        self._perform(effects)
        self.changed.emit()

    # What the engine and the test runner say.

    @Slot()
    def _tick(self) -> None:
        if self.driver is not None:
            self._perform(self.driver.tick())

    @Slot(tuple)
    def _receive(self, events: EventBatch) -> None:
        event, driver = events[-1], self.driver
        if driver is None or getattr(event, "run", None) != driver.run.name:
            return
        effects = [effect for each in events for effect in driver.engine_event(each)]
        self.applied.emit(events)
        if isinstance(event, CandidateFinished):
            ended = sum(candidate.ended for candidate in driver.run.candidates.values())
            self.announcement.emit(
                tr("{n} of {all} candidates have ended").format(n=ended, all=len(driver.run.candidates))
            )
        elif isinstance(event, RunFinished):
            self._last_word = event
        self._perform(effects)

    @Slot(object)
    def _answered(self, answer: Answer) -> None:
        assert not isinstance(answer, Isolation)
        number = self.run.number_of(answer.id) if self.run else None
        if self.driver is None or self.run is None or number is None:
            return
        effects = self.driver.runner_answer(answer)
        if isinstance(answer, TestFinished):
            words = tr("Candidate {number}: tests {label}")
            self.announcement.emit(words.format(number=number, label=self.run.candidates[number].tests_label))
        self.tests_changed.emit()
        self._perform(effects)


def _new_name() -> str:
    """Unlike any other run's, also of other days: the history keeps them."""
    return f"run-{secrets.token_hex(6)}"
