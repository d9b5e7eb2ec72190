"""Connects the parts of the window: each does one job between widgets and engine, runner or disk.

A part is a QObject that gets what it needs and connects itself. To add one, write it in a file of its own and name it
in ``MainController.__init__``; what several of them need to know about the whole is the Situation.
"""

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.controllers.announcements import Announcer
from app.controllers.comparison import ComparisonController
from app.controllers.history import HistoryController
from app.controllers.meanwhile import MeanwhileController
from app.controllers.memory_fit import MemoryFitController
from app.controllers.model_library import ModelLibraryController
from app.controllers.model_load import ModelLoadController, OpenEngine
from app.controllers.out_of_memory import OutOfMemoryController
from app.controllers.palette import PaletteController
from app.controllers.preferences import PreferencesController
from app.controllers.preload import PreloadController
from app.controllers.prompt import PromptController
from app.controllers.questions import QuestionController
from app.controllers.runs import RunController
from app.controllers.save import SaveController
from app.controllers.search import SearchController
from app.controllers.servers import ServersController
from app.controllers.suggested_tests import SuggestedTestsController
from app.controllers.testing_consent import TOGGLES, TestingConsent
from app.controllers.unsent_text import UnsentText
from app.controllers.views import ViewController
from app.dialogs import question
from app.system.engines import SCRIPTED
from app.system.runner_connection import OpenRunner, RunnerConnection
from app.ui.action_state import ActionState
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.candidate_page import ANSWER, CODE, COMPARE, DETAILS, TEST_LOG, TILES
from app.widgets.main_window import MainWindow
from app.widgets.start_page import Example, examples
from app.widgets.status_line import drafts_do_not_pay
from engine.contract import BadRequest, BasslineError, LoadFailed, Ready, Request, RunFinished
from engine.runner.verdicts import Verdict
from engine.session.effects import TestPolicy
from engine.session.run import Run
from engine.session.states import RunState


class MainController(QObject):
    """``closed`` is emitted when everything has ended; ``clean`` is false if the engine's thread would not."""

    closed = Signal(bool)

    def __init__(
        self,
        window: MainWindow,
        theme: Theme,
        open_engine: OpenEngine,
        open_runner: OpenRunner,
        settings: Path,
        history: Path,
    ):
        """``settings`` and ``history``: the files that hold them."""
        super().__init__(window)
        self.window = window
        self._closing = False
        self._question: question.QuestionDialog | None = None  # whether to close, while it stands
        self.loading = ModelLoadController(open_engine, self)
        self.runner = RunnerConnection(open_runner, self)
        self.running = RunController(self.loading, self.runner, self._test_policy, window.tests.text, self)
        self.tests = TestingConsent(window, self.running, self.runner, self)
        self.comparison = ComparisonController(window, self.running, self.runner, self._may_run_code, self)
        self.questions = QuestionController(window, self.running, self.comparison, self._may_run_code, self)
        self.suggesting = SuggestedTestsController(window, self.loading, self.running, self.comparison, self)
        self.searching = SearchController(window, self.loading, self.running, self)
        self.preparing = PreloadController(window, self.loading, self.running, self)
        self.fitting = MemoryFitController(window, self.loading, self)
        self.asking = PromptController(window, self.running, self)
        self.saving = SaveController(window, self.running, self)
        self.commanding = PaletteController(window, theme, self)
        self.ways_out = OutOfMemoryController(window, self.generate, self)
        self.announcing = Announcer(window, self)
        self.history = HistoryController(window, self.loading, self.running, history, self)
        self.preferences = PreferencesController(window, theme, self.history, settings, self)
        self.unsent = UnsentText(window, self.running, self.history, settings.with_name("unsent.json"), self)
        self.servers = ServersController(window, self)
        self.models = ModelLibraryController(window, theme, self.loading, self)
        self.meanwhile = MeanwhileController(window, self.loading, self.models, self.generate, self)
        self.showing = ViewController(
            window, self.loading, self.running, self.situation, self.asking.length_in_words, self
        )
        self._connect()
        self.showing.refresh()

    @property
    def run(self) -> Run | None:
        """The run in view."""
        return self.running.run

    @property
    def ready(self) -> Ready | None:
        return self.loading.ready

    def _connect(self) -> None:
        window, on = self.window, self.window.on
        for id, do in (
            ("generate", self.generate),
            ("generate_more", self.generate_more),
            ("stop", self.stop),
            ("cancel_candidate", lambda: self.running.stop_one(window.page.number)),
            ("quit", self.ask_to_close),
            ("next_passing", self.next_passing),
            ("best", lambda: window.page.choose(window.candidates.best)),
            ("next_candidate", lambda: window.page.step(1)),
            ("previous_candidate", lambda: window.page.step(-1)),
            ("go_to_prompt", lambda: window.go_to_editor(window.prompt)),
            ("go_to_tests", lambda: window.go_to_editor(window.tests)),
            ("go_to_code", lambda: window.page.show_way(CODE)),
            ("go_to_answer", lambda: window.page.show_way(ANSWER)),
            ("go_to_test_log", lambda: window.page.show_way(TEST_LOG)),
            ("go_to_details", lambda: window.page.show_way(DETAILS)),
            ("compare", lambda: window.page.show_way(COMPARE)),
            ("tile", lambda: window.page.show_way(TILES)),
        ):
            on(id, do)
        for number in range(1, 10):
            on(f"candidate_{number}", partial(window.page.choose, number))
        window.loading.cancelled.connect(self.stop)
        window.start_page.chosen.connect(self.use_example)
        window.start_page.demo_chosen.connect(self.play_demo)
        window.wants_to_close.connect(self.ask_to_close)
        self.history.changed.connect(self.showing.refresh)
        self.suggesting.changed.connect(self.showing.refresh)
        self.history.used_again.connect(self.asking.ask_again)
        self.history.goes_on.connect(self.searching.resume)
        self.preferences.changed.connect(self.showing.refresh)
        self.running.finished.connect(self._finished)
        self.loading.failed.connect(self._load_failed)
        window.bar.model_chosen.connect(self.showing.refresh)
        for news in (window.notice.announced, window.status.flashed, self.running.announcement):
            news.connect(self.announcing.say)
        for step in (self.loading.changed, self.running.changed, self.running.finished, self.running.tests_changed):
            step.connect(self._keep_question_true)
        self.running.stuck.connect(self._offer_force)
        self.preferences.changed.connect(self._apply_settings)
        self._apply_settings()

    # What a user asks for.

    def use_example(self, example: Example) -> None:
        self.window.prompt.replace_text(example.prompt.strip())
        self.window.tests.replace_text(example.tests)
        self.window.go_to_editor(self.window.prompt)

    @Slot()
    def get_ready(self) -> None:
        """Once the window is there: load what was used last, and look whether it fits."""
        self.preparing.preload()
        self.fitting.look_soon()

    def offer_demo(self) -> None:
        """Everything is filled in for the recorded run; Generate starts it."""
        self.window.bar.choose_model(SCRIPTED)
        self.use_example(examples()[0])

    def play_demo(self) -> None:
        self.offer_demo()
        self.generate()

    def generate(self) -> None:
        """Start a run; the model is loaded first when it is not there yet."""
        self.window.notice.leave()
        try:
            self.start(self.asking.request(self.window.bar.settings()))
        except BasslineError as error:
            self.window.notice.say(str(error))

    @Slot(object)
    def start(self, request: Request) -> None:
        """Raises BadRequest while a run goes on, when no model is named, and for a search without tests."""
        if self.running.busy:
            raise BadRequest(tr("A run is going on; stop it first."))
        settings, tests = self.window.bar.settings(), self.window.tests.text()
        search = self.searching.search(settings.budget, settings.choice, tests)
        self.meanwhile.keep(settings.choice)
        self.running.start(request, settings.choice, tests, search)

    def generate_more(self) -> None:
        self.window.notice.leave()
        try:
            settings = self.window.bar.settings()
            self.running.more(settings.candidates, settings.choice)
        except BasslineError as error:
            self.window.notice.say(str(error))

    def stop(self) -> None:
        """Ask for an end; it has come when the engine says so."""
        if self.loading.busy:
            self.window.loading.stopping()
        self.loading.cancel()
        self.suggesting.stop()
        self.running.stop()

    def next_passing(self) -> None:
        if self.run is not None:
            passing = sorted(n for n, candidate in self.run.candidates.items() if candidate.passed)
            after = [number for number in passing if number > self.window.page.number]
            if not passing:
                self.window.status.flash(tr("No candidate has passed its tests yet."))
            self.window.page.choose((after or passing or [0])[0])

    def ask_to_close(self) -> None:
        """One question when something runs; none otherwise."""
        now = self.situation()
        if not now.busy or self._closing:
            self.shut_down()
            return
        self._question = dialog = question.closing(self.window, self._what_closing_stops(now))
        dialog.accepted.connect(self.shut_down)
        dialog.finished.connect(self._question_answered)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _what_closing_stops(self, now: ActionState) -> str:
        doing = tr("The model is loading.") if now.loading else tr("Candidates are being generated.")
        if now.testing and not now.running:
            doing = tr("Tests are running.")
        return question.closing_text(doing, self.history.keeping)

    @Slot()
    def _question_answered(self) -> None:
        self._question = None

    @Slot()
    def _keep_question_true(self) -> None:
        """While it stands, what it asks about may go over into something else, or end."""
        if self._question is not None and not self._closing:
            now = self.situation()
            if now.busy:
                self._question.text.setText(self._what_closing_stops(now))
            else:
                self._question.reject()

    def shut_down(self) -> None:
        """Refuse work, end the test boxes, then the engine and its thread, then the window."""
        if self._closing:
            return
        self._closing = True
        self.running.close()
        self.suggesting.close()
        self.announcing.close()
        self.fitting.close()
        self.searching.close()
        self.meanwhile.close()
        self.showing.refresh()
        self.window.let_go()
        self.runner.close()
        for part in (self.preferences, self.unsent, self.servers, self.models, self.history):
            part.close()
        self.closed.emit(self.loading.close())

    # What needs more than one part.

    @Slot(object)
    def _finished(self, event: RunFinished) -> None:
        run, window = self.run, self.window
        if event.reason:
            self.ways_out.say(event)
        elif run is not None and (sentence := drafts_do_not_pay(run)):
            window.status.offer(tr("Switch drafts off"), sentence, window.bar.advanced.without_drafts)
        elif run is not None and (sentence := run.advice()):
            window.notice.say(sentence, tone="warning")

    @Slot(object)
    def _load_failed(self, event: LoadFailed) -> None:
        if self.running.busy and not event.cancelled:  # a search, which goes on without that model
            self.window.notice.say(event.reason, event.details, tone="warning")
        elif not event.cancelled:
            self.ways_out.say(event)

    @Slot()
    def _offer_force(self) -> None:
        self.window.notice.say(
            tr(
                "The engine has not stopped yet, because a step takes long. You can force it to stop; the model is "
                "then loaded again."
            ),
            tone="warning",
            choices=[(tr("Force stop"), self.running.force)],
        )

    @Slot()
    def _apply_settings(self) -> None:
        self.saving.editor = self.preferences.settings.editor
        self.showing.refresh()

    def _may_run_code(self) -> bool:
        return self.preferences.settings.run_code

    def _test_policy(self) -> TestPolicy:
        """What the user wants now; nothing runs by itself where that is switched off."""
        allowed = self._may_run_code()
        return TestPolicy(*(allowed and self.window.is_on(toggle) for toggle in TOGGLES))

    def _loads_other(self) -> bool:
        try:
            return self.loading.busy and self.loading.loads_other(self.window.bar.settings().choice)
        except BasslineError:
            return False

    def situation(self) -> ActionState:
        """What the actions ask: which of them make sense now."""
        run, window = self.run, self.window
        candidates = run.candidates if run else {}
        current = candidates.get(window.page.number)
        return ActionState(
            loading=self.loading.busy,
            loads_other=self._loads_other(),
            preloading=self.loading.preloading is not None,
            running=self.running.busy,
            stopping=run is not None and run.state == RunState.STOPPING,
            testing=self.running.testing,
            suggesting=self.suggesting.writing,
            closing=self._closing,
            past=self.history.past is not None,
            may_run_code=self.preferences.settings.run_code,
            has_prompt=not window.prompt.blank,
            has_tests=not window.tests.blank,
            candidates=len(candidates),
            finished=sum(candidate.ended for candidate in candidates.values()),
            passing=sum(candidate.passed for candidate in candidates.values()),
            has_model=self.ready is not None,
            has_best=bool(window.candidates.best),
            current_failed=current is not None
            and current.report is not None
            and current.report.verdict == Verdict.FAIL,
            current_runs=current is not None and not current.ended and self.running.busy,
            current_ended=current is not None and current.ended,
            current_has_text=current is not None and bool(current.text),
            current_has_code=current is not None and bool(current.text) and not current.has_no_code,
        )
