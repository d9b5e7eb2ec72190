"""What the window shows of models, run and tests. It reads, and changes nothing but widgets."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Slot

from app.controllers.model_load import ModelLoadController
from app.controllers.runs import RunController
from app.item_models.rate import Rate
from app.system.engine_thread import EventBatch
from app.ui.action_state import ActionState
from app.widgets.main_window import MainWindow
from app.widgets.status_line import model_in_words, preload_in_words, run_in_title, run_in_words
from engine.contract import CandidateFinished, Loading, ModelChoice, Ready, RunFinished, StepDone, TextAdded
from engine.session.run import Run

BEAT_S = 1.0  # numbers that change more often are not read, and painting them costs


class ViewController(QObject):
    """``refresh`` may be called at any time. A tick that brought nothing but text only moves the page on: the numbers
    that grow with it follow once a second, and everything else changes by other events.
    """

    def __init__(
        self,
        window: MainWindow,
        loading: ModelLoadController,
        running: RunController,
        situation: Callable[[], ActionState],
        length: Callable[[Ready | None], str],
        parent: QObject | None = None,
    ):
        super().__init__(parent)
        self._window, self._loading, self._running = window, loading, running
        self._situation, self._length = situation, length
        self._rate, self._beat_s = Rate(), 0.0  # of the run, and when the numbers are shown next
        self._beat = False  # the numbers are due
        self._strip_is_about: ModelChoice | None = None
        loading.changed.connect(self._models)
        loading.staged.connect(self._stage)
        loading.drained.connect(self._drained)
        running.in_view.connect(self._in_view)
        running.began.connect(self._began)
        running.applied.connect(self._note)
        running.finished.connect(self._finished)
        running.changed.connect(self.refresh)
        running.tests_changed.connect(self._tested)
        window.prompt.textChanged.connect(self.refresh)
        window.tests.textChanged.connect(self.refresh)
        window.page.chosen.connect(self.refresh)

    @Slot()
    def refresh(self) -> None:
        window, run = self._window, self._running.run
        self._beat = False
        now = self._situation()
        window.enable(now)
        window.candidates.mark_tests(run is not None and not now.past and window.tests.text() != run.tests)
        window.candidates.flush()
        window.page.refresh()
        window.context.show_length(self._length(self._loading.ready))
        window.setWindowTitle(run_in_title(run))
        preload = self._loading.preloading
        words = preload_in_words(window.bar.title_of(preload.model), self._loading.stage) if preload else ""
        window.status.show_model(words or model_in_words(self._loading.ready))
        if run is not None:
            window.status.show_run(run_in_words(run, self._rate.per_second))

    @Slot(bool)
    def _drained(self, more: bool) -> None:
        if more or self._beat:
            self.refresh()
        else:
            self._window.page.refresh()

    @Slot()
    def _models(self) -> None:
        """A load began or ended. One that nobody waits for stays in the status line and moves nothing."""
        strip = self._window.loading
        if not self._loading.busy:
            strip.hide()
        elif strip.isHidden() or self._loading.wanted != self._strip_is_about:
            self._strip_is_about = self._loading.wanted
            strip.begin(self._window.bar.model_title)
        self.refresh()

    @Slot(object)
    def _stage(self, stage: Loading) -> None:
        if self._loading.busy:
            self._window.loading.show_stage(stage)

    @Slot(object)
    def _in_view(self, run: Run) -> None:
        self._forget_speed()
        self._window.candidates.show(run)
        self._window.page.start()
        self._window.show_candidates(True)
        self._window.status.offer()

    @Slot(object)
    def _began(self, run: Run) -> None:
        self._forget_speed()  # its clock starts over
        self._window.candidates.touch_all()  # who was cut off is nobody's best any more
        self._window.page.go_on()

    @Slot()
    def _forget_speed(self) -> None:
        self._rate, self._beat_s = Rate(), 0.0

    @Slot(tuple)
    def _note(self, events: EventBatch) -> None:
        candidates = self._window.candidates
        for event in events:
            match event:
                case TextAdded():
                    candidates.begin(event.candidate, event.at_s, event.tokens)
                case StepDone():
                    if event.at_s >= self._beat_s:
                        self._beat_s = event.at_s + BEAT_S
                        self._rate.add(event.at_s, event.tokens)
                        candidates.take_speeds(event.at_s)
                        self._beat = True
                case CandidateFinished():
                    candidates.touch(event.candidate)

    @Slot(object)
    def _finished(self, event: RunFinished) -> None:
        self._window.candidates.touch_all()
        self.refresh()

    @Slot()
    def _tested(self) -> None:
        self._window.candidates.touch_all()
        self.refresh()
