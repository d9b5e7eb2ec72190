"""One run after another, from Generate to the engine's last word."""

import secrets
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.engine_thread import Together
from app.loading import ModelLoading
from app.words import tr
from engine.contract import (
    Add,
    Cancel,
    CandidateFinished,
    Generate,
    LoadFailed,
    ModelChoice,
    Request,
    RunFinished,
)
from engine.session.provenance import Provenance
from engine.session.run import Run

FORCE_MS = 3000


class Running(QObject):
    """Knows the run in view and tells the engine what becomes of it."""

    in_view = Signal(object)  # a Run: new, or an old one that is looked at again
    began = Signal(object)  # a Run that was handed to the engine just now, for the first time or to go on
    heard = Signal(tuple)  # events that came together, after the run has taken them in
    candidate_ended = Signal(int)
    finished = Signal(object)  # RunFinished
    stuck = Signal()  # Stop was asked for three seconds ago, and the engine has not answered
    told = Signal(str)  # a sentence for who does not see the window
    changed = Signal()

    def __init__(self, loading: ModelLoading, parent: QObject | None = None):
        super().__init__(parent)
        self.run: Run | None = None
        self._loading = loading
        self._waiting: Callable[[], None] | None = None  # what begins as soon as the models are there
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.timeout.connect(self.stuck)
        loading.ready_for.connect(self._models_are_there)
        loading.failed.connect(self._no_models)
        loading.said.connect(self._hear)

    @property
    def busy(self) -> bool:
        """The engine has not said its last word on the run in view."""
        return self.run is not None and not self.run.ended

    def start(self, request: Request, choice: ModelChoice, tests: str) -> None:
        """A new run; the models are loaded first when they are not there yet."""

        def begin() -> None:
            run = Run(_new_name(), request, tests)
            run.provenance = Provenance(self._loading.loaded, self._loading.ready)
            self._begin(run, request)

        self._when_loaded(choice, begin)

    def more(self, count: int, choice: ModelChoice) -> None:
        """``count`` further candidates of the run in view, whether it goes on or has ended. Raises BadRequest."""
        run = self.run
        if run is None:
            return
        request = run.more(count)
        if not run.ended:
            run.expect(request)
            self._loading.submit(Add(run.name, count))
            self.changed.emit()
            return

        def go_on() -> None:
            run.reopen(request)
            self._begin(run, request)

        self._when_loaded(choice, go_on)

    def show(self, run: Run) -> None:
        """Put a run into view that nothing is asked of."""
        self.run = run
        self.in_view.emit(run)
        self.changed.emit()

    def stop(self) -> None:
        """Ask for an end; it has come when the engine says so."""
        self._waiting = None
        if self.run is not None and not self.run.ended:
            if self.run.state != "stopping":
                self._patience.start(FORCE_MS)
            self.run.stop()
            self._loading.submit(Cancel(self.run.name))
        self.changed.emit()

    def stop_one(self, number: int) -> None:
        if self.run is not None:
            self._loading.submit(Cancel(self.run.name, number))

    def force(self) -> None:
        """The engine does not come back: what it owes has failed, and the next load opens another."""
        run = self.run
        self._loading.abandon()
        if run is not None and not run.ended:
            self._hear((RunFinished(run.name, "stopped"),))

    def close(self) -> None:
        self._waiting = None
        self._patience.stop()

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
        self._waiting = None

    def _begin(self, run: Run, request: Request) -> None:
        if run is not self.run:
            self.show(run)
        self.began.emit(run)
        self._loading.submit(Generate(run.name, request))
        self.changed.emit()

    @Slot(tuple)
    def _hear(self, events: Together) -> None:
        event = events[-1]
        if self.run is None or getattr(event, "run", None) != self.run.name:
            return
        for each in events:
            self.run.apply(each)
        self.heard.emit(events)
        if isinstance(event, CandidateFinished):
            self.candidate_ended.emit(event.candidate)
            ended = sum(candidate.ended for candidate in self.run.candidates.values())
            self.told.emit(tr("{n} of {all} candidates have ended").format(n=ended, all=len(self.run.candidates)))
        elif isinstance(event, RunFinished):
            self._patience.stop()
            self.finished.emit(event)
            self.told.emit(tr("The run has ended: {outcome}").format(outcome=tr(event.outcome)))


def _new_name() -> str:
    """Unlike any other run's, also of other days: the history keeps them."""
    return f"run-{secrets.token_hex(6)}"
