"""Binds engine, run and tests to the window: actions become messages, events become what is shown."""

import secrets
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.actions import Situation
from app.clipboard import copy_text
from app.dialogs import places, question
from app.engine_thread import EngineThread
from app.engines import SCRIPTED
from app.item_models.rate import Rate
from app.testing import OpenRunner, Testing
from app.widgets.candidate_page import ANSWER, CODE, DETAILS, TEST_LOG
from app.widgets.main_window import MainWindow
from app.widgets.run_bar import Settings
from app.widgets.start_page import Example, examples
from app.widgets.status_line import model_in_words, run_in_title, run_in_words
from engine.contract import (
    BasslineError,
    Cancel,
    CandidateFinished,
    Closed,
    Engine,
    Event,
    Generate,
    Load,
    LoadFailed,
    Loading,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
    StepDone,
    TextAdded,
)
from engine.session import export
from engine.session.run import Run


class Controller(QObject):
    """``closed`` is said when everything has ended; ``clean`` is false if the engine's thread would not."""

    closed = Signal(bool)

    def __init__(self, window: MainWindow, open_engine: Callable[[str], Engine], open_runner: OpenRunner):
        super().__init__(window)
        self.window = window
        self.run: Run | None = None
        self.ready: Ready | None = None
        self._open_engine = open_engine
        self.engine: EngineThread | None = None
        self._engine_kind = ""
        self._wanted: ModelChoice | None = None  # what is loaded, or being loaded
        self._loading = self._closing = False
        self._pending: Request | None = None  # to start as soon as the model is there
        self._runs = 0
        self._rate = Rate()
        self.testing = Testing(open_runner, self)
        self._connect()
        self._show()

    def _connect(self) -> None:
        window, on = self.window, self.window.on
        for id, do in (
            ("generate", self.generate),
            ("stop", self.stop),
            ("run_tests", self.run_tests),
            ("copy", self.copy),
            ("save", self.save),
            ("export", self.export),
            ("quit", self.ask_to_close),
            ("next_passing", self.next_passing),
            ("next_candidate", lambda: self._step(1)),
            ("previous_candidate", lambda: self._step(-1)),
            ("go_to_prompt", lambda: window.go_to_editor(window.prompt)),
            ("go_to_tests", lambda: window.go_to_editor(window.tests)),
            ("go_to_code", lambda: window.page.show_way(CODE)),
            ("go_to_answer", lambda: window.page.show_way(ANSWER)),
            ("go_to_test_log", lambda: window.page.show_way(TEST_LOG)),
            ("go_to_details", lambda: window.page.show_way(DETAILS)),
            ("test_as_finished", self._test_finished_ones),
        ):
            on(id, do)
        for number in range(1, 10):
            on(f"candidate_{number}", partial(window.page.choose, number))
        window.prompt.textChanged.connect(self._show)
        window.tests.textChanged.connect(self._show)
        window.page.chosen.connect(self._show)
        window.loading.cancelled.connect(self.stop)
        window.start_page.chosen.connect(self.use_example)
        window.start_page.demo_chosen.connect(self.play_demo)
        window.wants_to_close.connect(self.ask_to_close)
        self.testing.changed.connect(self._tested)
        self.testing.consent_needed.connect(self._ask_consent)
        self.testing.failed.connect(window.notice.say)

    # What a person asks for.

    def use_example(self, example: Example) -> None:
        self.window.prompt.replace_text(example.prompt.strip())
        self.window.tests.replace_text(example.tests)
        self.window.go_to_editor(self.window.prompt)

    def offer_demo(self) -> None:
        """Everything is filled in for the recorded run; Generate starts it."""
        self.window.bar.choose_model(SCRIPTED)
        self.use_example(examples()[0])

    def play_demo(self) -> None:
        self.offer_demo()
        self.generate()

    def generate(self) -> None:
        """Start a run; the model is loaded first when it is not there yet."""
        self.window.notice.hide()
        try:
            settings = self.window.bar.settings()
            request = self._request(settings)
            choice = settings.choice
        except BasslineError as error:
            self.window.notice.say(str(error))
            return
        if self.ready and choice == self._wanted and self.engine and self.engine.alive:
            self._begin(request)
        else:
            self._pending = request
            self._load(choice)

    def stop(self) -> None:
        """Ask for an end; it has come when the engine says so."""
        if self._loading:
            self._pending = None
            self.window.loading.stopping()
            self._send(Cancel())
        if self.run and not self.run.ended:
            self.run.stop()
            self._send(Cancel(self.run.name))
        self.testing.cancel()
        self._show()

    def run_tests(self) -> None:
        self.testing.test(self.window.tests.text())
        self._show()

    def copy(self) -> None:
        copy_text(self._current_code())
        self.window.status.flash(f"Copied the code of candidate {self.window.page.number}.")

    def save(self) -> None:
        if self.run is not None:
            number, code = self.window.page.number, self._current_code()
            name = export.suggested_name(self.run, number)
            places.ask_file(self.window, self._folder(), name, lambda path: self._save(path, code))

    def export(self) -> None:
        if self.run is not None:
            run, choice, ready = self.run, self._wanted, self.ready
            name = f"bassline-{datetime.now():%Y-%m-%d-%H%M%S}"

            def write(folder: Path, overwrite: bool = False) -> None:
                try:
                    files = export.export_run(run, folder, choice, ready, overwrite)
                    self._saved(folder.parent, f"Exported {len(files)} files to {folder}.")
                except export.AlreadyExists as error:
                    self.window.notice.say(str(error), tone="warning", action="Replace", do=lambda: write(folder, True))
                except BasslineError as error:
                    self.window.notice.say(str(error))

            places.ask_folder(self.window, self._folder(), name, write)

    def next_passing(self) -> None:
        if self.run is not None:
            passing = sorted(n for n, candidate in self.run.candidates.items() if candidate.passed)
            after = [number for number in passing if number > self.window.page.number]
            self.window.page.choose((after or passing or [0])[0])

    def ask_to_close(self) -> None:
        """One question when something runs; none otherwise."""
        now = self.situation()
        if not now.busy or self._closing:
            self.shut_down()
            return
        doing = "The model is loading." if now.loading else "Candidates are being generated."
        if now.testing and not now.running:
            doing = "Tests are running."
        dialog = question.closing(self.window, doing)
        dialog.accepted.connect(self.shut_down)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def shut_down(self) -> None:
        """Refuse work, end the test boxes, then the engine and its thread, then the window."""
        if self._closing:
            return
        self._closing = True
        self._show()
        self.window.let_go()
        self.testing.close()
        clean = self.engine is None or self.engine.close()
        self.closed.emit(clean)

    # What the engine says.

    @Slot(object)
    def _said(self, event: Event) -> None:
        match event:
            case Loading():
                self.window.loading.show_stage(event)
            case Ready():
                self._loaded(event)
            case LoadFailed():
                self._load_failed(event)
            case Closed():
                self.ready = self._wanted = None
            case _ if self.run is not None:
                self.run.apply(event)
                self._note(event)

    def _note(self, event: Event) -> None:
        candidates = self.window.candidates
        match event:
            case TextAdded():
                candidates.touch(event.candidate, event.at_s, event.tokens)
            case StepDone():
                self._rate.add(event.at_s, event.tokens)
            case CandidateFinished():
                candidates.touch(event.candidate)
                self._test_finished_ones()
            case RunFinished():
                candidates.touch_all()
                if event.reason:
                    self.window.notice.say(event.reason, event.details)

    def _load(self, choice: ModelChoice) -> None:
        kind = SCRIPTED if choice.model == SCRIPTED else "sampler"
        if self.engine is None or not self.engine.alive or kind != self._engine_kind:
            if self.engine is not None:
                self.engine.close()
                self.engine.deleteLater()
            self._engine_kind = kind
            self.engine = EngineThread(lambda: self._open_engine(choice.model), self)
            self.engine.said.connect(self._said)
            self.engine.drained.connect(self._show)
        self.ready, self._wanted, self._loading = None, choice, True
        self.window.loading.begin(self.window.bar.model_title)
        self._send(Load(choice))
        self._show()

    def _loaded(self, ready: Ready) -> None:
        self.ready, self._loading = ready, False
        self.window.loading.hide()
        request, self._pending = self._pending, None
        if request is not None:
            self._begin(request)

    def _load_failed(self, event: LoadFailed) -> None:
        self._loading, self._wanted, self._pending = False, None, None
        self.window.loading.hide()
        if not event.cancelled:
            self.window.notice.say(event.reason, event.details)

    def _begin(self, request: Request) -> None:
        self._runs += 1
        self.run = Run(f"run-{self._runs}", request, self.window.tests.text())
        self._rate = Rate()
        self.testing.attach(self.run)
        self.window.candidates.show(self.run)
        self.window.page.start()
        self.window.show_candidates(True)
        self._send(Generate(self.run.name, request))
        self._show()

    # What the tests say.

    @Slot(int)
    def _tested(self, number: int) -> None:
        self.window.candidates.touch_all()
        self._show()

    def _test_finished_ones(self) -> None:
        if self.window.actions_by_id["test_as_finished"].isChecked() and not self.window.tests.blank:
            self.testing.test(self.window.tests.text())

    @Slot(str)
    def _ask_consent(self, sentence: str) -> None:
        dialog = question.consent(self.window, sentence)
        dialog.finished.connect(self._answer_consent)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _answer_consent(self, result: int) -> None:
        if not result:
            self.window.actions_by_id["test_as_finished"].setChecked(False)
        self.testing.answer_consent(bool(result))

    # What is shown.

    def situation(self) -> Situation:
        candidates = self.run.candidates if self.run else {}
        current = candidates.get(self.window.page.number)
        return Situation(
            loading=self._loading,
            running=self.run is not None and not self.run.ended,
            stopping=self.run is not None and self.run.state == "stopping",
            testing=self.testing.busy,
            closing=self._closing,
            has_prompt=not self.window.prompt.blank,
            has_tests=not self.window.tests.blank,
            candidates=len(candidates),
            finished=sum(candidate.ended for candidate in candidates.values()),
            passing=sum(candidate.passed for candidate in candidates.values()),
            current_has_code=current is not None and bool(current.text),
        )

    @Slot()
    def _show(self) -> None:
        self.window.enable(self.situation())
        self.window.page.refresh()
        self.window.setWindowTitle(run_in_title(self.run))
        self.window.status.show_model(model_in_words(self.ready))
        if self.run is not None:
            self.window.status.show_run(run_in_words(self.run, self._rate.per_second))

    # Small things the above needs.

    def _request(self, settings: Settings) -> Request:
        seed = secrets.randbelow(2**31) if settings.seed is None else settings.seed
        return Request(
            self.window.prompt.text(),
            seed,
            settings.candidates,
            sampling=settings.sampling,
            time_budget_s=settings.time_budget_s,
        )

    def _send(self, message: Load | Generate | Cancel) -> None:
        if self.engine is not None:
            self.engine.submit(message)

    def _current_code(self) -> str:
        return self.run.candidates[self.window.page.number].code if self.run else ""

    def _step(self, by: int) -> None:
        tabs = self.window.page.tabs
        tabs.setCurrentIndex((tabs.currentIndex() + by) % max(1, tabs.count()))

    def _folder(self) -> str:
        return self.window.remembered("folder")

    def _save(self, path: Path, code: str) -> None:
        try:
            export.save(path, code, overwrite=True)  # the dialog has asked
            self._saved(path.parent, f"Saved {path}.")
        except BasslineError as error:
            self.window.notice.say(str(error))

    def _saved(self, folder: Path, words: str) -> None:
        self.window.remember("folder", str(folder))
        self.window.status.flash(words)
