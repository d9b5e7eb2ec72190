"""Keeps every run in the history, and brings earlier ones back into view."""

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from textwrap import shorten

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.controllers.model_load import ModelLoadController
from app.controllers.run_settings import RunSettings
from app.controllers.runs import RunController
from app.ui.words import tr
from app.widgets.history_panel import HistoryPanel
from app.widgets.main_window import MainWindow
from app.widgets.notice import Choice
from app.widgets.past_strip import PastStrip
from engine.contract import BasslineError, RunFinished, RunOutcome
from engine.session.arms import Budget
from engine.session.journal import HistoryEntry, Journal
from engine.session.record import StoredRun, title
from engine.session.recorder import Recorder
from engine.session.run import Run
from engine.session.search import was_search
from engine.session.unfinished import can_go_on

LOOK_S = 0.5


class HistoryController(QObject):
    """The recorder writes on its own thread; what is listed and opened is read here.

    ``past`` is the run from the history that is in view and can only be read; ``changed`` is emitted when that changes.
    """

    changed = Signal()
    used_again = Signal(object)  # the Request of an earlier run, whose prompt and tests are in the window now
    goes_on = Signal()  # the run in view is to go on
    _complained = Signal(str)
    _wrote = Signal()
    _left = Signal(object)

    def __init__(
        self,
        window: MainWindow,
        loading: ModelLoadController,
        running: RunController,
        file: Path,
        parent: QObject | None = None,
    ):
        super().__init__(parent)
        self._window, self._loading, self._running = window, loading, running
        self.keeping = True
        self.past: StoredRun | None = None
        self._journal: Journal | None = None
        self._noted_at = 0.0  # when the recorder last looked
        self._file = file
        self.panel = HistoryPanel(window.theme)
        self._strip = PastStrip()
        window.add_panel(self.panel, "history")
        window.on("history", self.panel.start_search)
        window.add_strip(self._strip)
        from_the_writer = Qt.ConnectionType.QueuedConnection
        self._complained.connect(window.notice.say, from_the_writer)
        self._wrote.connect(self.panel.refresh, from_the_writer)
        self._left.connect(self._offer, from_the_writer)
        self._recorder = Recorder(file, self._complained.emit, self._wrote.emit)
        self._connect()

    def recover(self) -> None:
        """Offer what the last start left unfinished, if it ended early."""
        self._recorder.recover(self._left.emit)

    def close(self) -> bool:
        """Write what is left; false if that took too long. A run that goes on is stopped, and did not crash."""
        self.panel.close_down()
        run = self._running.run
        if run is not None and self.past is None:
            run.apply(RunFinished(run.name, RunOutcome.STOPPED))
            self._recorder.note(run)
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        return self._recorder.close()

    def _connect(self) -> None:
        self._running.began.connect(self._begin)
        self._running.in_view.connect(self._viewed)
        self._running.objection = self._objection_to
        self._loading.drained.connect(self._drained)
        for news in (self._running.changed, self._running.finished, self._running.tests_changed):
            news.connect(self._note)
        self._strip.use_again.connect(self.use_again)
        self._strip.go_on.connect(self.go_on)
        self.panel.closed.connect(self._window.actions_by_id["history"].trigger)
        self.panel.wanted.connect(self._list)
        self.panel.open_chosen.connect(self.open)
        self.panel.delete_chosen.connect(self._delete)
        self.panel.undo_chosen.connect(self._restore)
        self.panel.undo_over.connect(self._recorder.purge)

    # What goes on is kept.

    @Slot(object)
    def _begin(self, run: Run) -> None:
        self._leave_past()
        if self.keeping and not self._recorder.keeps(run):
            self._recorder.begin(run)
        self._note()

    @Slot(bool)
    def _drained(self, more: bool) -> None:
        """Growing text is written every two seconds, so it need not be looked at with every tick."""
        if more or time.monotonic() - self._noted_at >= LOOK_S:
            self._note()

    @Slot()
    def _note(self) -> None:
        self._noted_at = time.monotonic()
        if self._running.run is not None and self.past is None:
            self._recorder.note(self._running.run)
        self.panel.block_opening(tr("Something is running; stop it first.") if self._busy else "")

    @property
    def _busy(self) -> bool:
        return self._running.busy or self._running.testing or self._loading.busy

    # What was kept comes back.

    @Slot(int)
    def open(self, id: int) -> None:
        """Put an earlier run into view, to be read."""
        if self._busy:
            return
        try:
            kept = self._read().load(id)
        except BasslineError as error:
            self._window.notice.say(str(error))
            return
        self._window.notice.leave()  # what it offered was about another run
        self._show(kept)

    def _show(self, kept: StoredRun) -> None:
        self.past = kept
        self._running.show(kept.run)
        self._strip.show_run(
            title(kept.run.request.prompt), f"{kept.began.astimezone():%Y-%m-%d %H:%M}", can_go_on(kept.run)
        )
        self.changed.emit()

    @Slot()
    def use_again(self) -> None:
        """Its prompt, tests and settings come into the window, and the run can go on."""
        if self._is_up_to_date():
            self._take_up()

    def _take_up(self) -> None:
        kept = self.past
        if kept is None:
            return
        request = kept.run.request
        self._window.prompt.replace_text(request.prompt)
        self._window.tests.replace_text(kept.run.tests)
        settings = RunSettings.of(request, kept.run.provenance.choice)
        if was_search(kept.run):
            settings = replace(settings, until_pass=True, candidates=Budget.candidates)
        self._window.bar.apply(settings)
        self.used_again.emit(request)
        self._recorder.resume(kept.run, kept.id)
        self._leave_past()
        self._window.go_to_editor(self._window.prompt)

    @Slot()
    def go_on(self) -> None:
        """The run from the history that is in view goes on, if anything of it is missing."""
        if self._busy or not self._is_up_to_date():
            return
        if self.past is not None and can_go_on(self.past.run):
            self._take_up()
            self.goes_on.emit()

    def _is_up_to_date(self) -> bool:
        """The run from the history that is in view is as it is on disk, and nobody writes it; if not, why is said.

        One that went on elsewhere since it was opened is put into view as it is now.
        """
        before = self.past
        if before is None or self._is_being_written(before.id):
            return False
        try:
            now = self._read().load(before.id)
        except BasslineError as error:
            self._window.notice.say(str(error))
            return False
        if _state(now.run) != _state(before.run):
            self._show(now)
            self._window.status.flash(tr("This run went on elsewhere; it is shown as it is now."))
        return True

    def _is_being_written(self, id: int) -> bool:
        """By this window or by another process, which must not be disturbed; a sentence has said so."""
        run = self._running.run
        try:
            here = run is not None and self._busy and self._recorder.id_of(run) == id
            sentence = tr("This run is still going on; stop it first.") if here else self._objection(id)
        except BasslineError as error:
            sentence = str(error)
        if sentence:
            self._window.notice.say(sentence)
        return bool(sentence)

    def _objection_to(self, run: Run) -> str:
        """Why a run in view must not go on here; one without its history goes on."""
        id = self._recorder.id_of(run)
        with suppress(BasslineError):
            return self._objection(id, run) if id is not None else ""
        return ""

    def _objection(self, id: int, known: Run | None = None) -> str:
        """Why run ``id`` is to be left alone, as a sentence; ``known``: the run as it is here. Raises BasslineError."""
        sentence = self._written_elsewhere(id, known)
        if sentence:
            self._recorder.flush()  # what has ended here a moment ago may not be on disk yet
            sentence = self._written_elsewhere(id, known)
        return sentence

    def _written_elsewhere(self, id: int, known: Run | None) -> str:
        journal = self._read()
        if journal.is_open(id):
            return tr("Another Bassline is still writing this run; stop it there first, or wait.")
        if known is not None and journal.load(id).run.candidates.keys() - known.candidates.keys():
            return tr("This run has gone on elsewhere; open it from the history to go on with it.")
        return ""

    @Slot(object)
    def _viewed(self, run: Run) -> None:
        if self.past is not None and run is not self.past.run:
            self._leave_past()

    def _leave_past(self) -> None:
        self.past = None
        self._strip.hide()
        self.changed.emit()

    @Slot(object)
    def _offer(self, left: list[HistoryEntry]) -> None:
        last = left[0]
        words = tr(
            "Bassline closed unexpectedly: {finished} of {n} candidates of “{title}” had finished and were kept."
        )
        choices: list[Choice] = [
            (tr("Show"), lambda: self.open(last.id)),
            (tr("Discard"), lambda: self._delete(last.id)),
        ]
        with suppress(BasslineError):  # it is told when it is to be shown
            if can_go_on(self._read().load(last.id).run):
                choices.insert(0, (tr("Go on"), lambda: self._open_and_go_on(last.id)))
        self._window.notice.say(
            words.format(finished=last.finished, n=last.candidates, title=shorten(last.title, 60, placeholder="…")),
            tone="warning",
            choices=choices,
        )

    def _open_and_go_on(self, id: int) -> None:
        self.open(id)
        self.go_on()

    # The list.

    def _read(self) -> Journal:
        if self._journal is None:
            self._journal = Journal(self._file)
        return self._journal

    @Slot(str)
    def _list(self, search: str) -> None:
        try:
            self.panel.show_entries(self._read().entries(search))
        except BasslineError as error:
            self._window.notice.say(str(error))

    @Slot(int)
    def _delete(self, id: int) -> None:
        if not self._is_being_written(id):
            self._recorder.delete(id)
            self.panel.show_deleted(id)

    @Slot(int)
    def _restore(self, id: int) -> None:
        self._recorder.restore(id)


def _state(run: Run) -> object:
    """What changes when a run goes on."""
    return run.state, run.tests, run.candidates
