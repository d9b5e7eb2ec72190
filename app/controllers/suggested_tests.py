"""Tests that the model suggests: what it is asked, what it writes, and which of it the user takes."""

import secrets

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.controllers.comparison import ComparisonController
from app.controllers.model_load import ModelLoadController
from app.controllers.runs import RunController
from app.system.engine_thread import EventBatch
from app.ui.words import tr
from app.widgets.main_window import MainWindow, key_text
from app.widgets.suggested_tests import OfferedTest, SuggestedTests
from engine.contract import BasslineError, Cancel, CandidateFinished, Generate, RunFinished, RunOutcome
from engine.elicitation import model_prompts, suggestions
from engine.elicitation.answers import NotWritable, as_written
from engine.elicitation.elicitation import Elicitation
from engine.elicitation.suggestions import Ranked

FUNCTIONS_ONLY = "Tests are suggested for functions only; F9 asks which result is right."
NO_RESULT = "No candidate returns a value on any input, so there is nothing that a suggested test could be about."
NOTHING_READ = "The model wrote no test of {name} that could be read; write one in the Tests tab."
NONE_PASSED = "No candidate passes any of the tests that the model wrote, so none is suggested."
ALL_THERE = "What the model wrote is in your tests already, or was answered."
STOPPED = "Stopped; no tests are suggested."
OTHER_MODEL = "Another model is being loaded, so no tests are suggested."
OTHER_RUN = "No tests are suggested for the last run any more."


class SuggestedTestsController(QObject):
    """The model's answers are a run of their own in the engine, which is nobody else's: no tab, history or figure.

    Whatever the user begins meanwhile ends it first. ``changed``: the model has begun to write, or ended.
    """

    changed = Signal()

    def __init__(
        self,
        window: MainWindow,
        loading: ModelLoadController,
        runs: RunController,
        comparison: ComparisonController,
        parent: QObject | None = None,
    ):
        super().__init__(parent)
        self._window, self._loading, self._runs, self._comparison = window, loading, runs, comparison
        self.list = SuggestedTests(window.theme, window.page)
        self._name = ""  # of the engine's run, while it goes on
        self._texts: dict[int, str] = {}
        self._expected = 0
        self._offered: list[Ranked] = []
        window.on("suggest_tests", self.suggest)
        loading.received.connect(self._receive)
        loading.changed.connect(self._models_changed)
        runs.in_view.connect(self._other_run)
        runs.began.connect(self._other_run)
        comparison.renewed.connect(self.dismiss)
        self.list.added.connect(self._add)
        self.list.dismissed.connect(self.dismiss)

    @property
    def writing(self) -> bool:
        """The model writes tests."""
        return bool(self._name)

    def suggest(self) -> None:
        """To the list, if it is there; else have tests written, once for the candidates of a run, and show them."""
        if not self.list.isHidden():
            self.list.setFocus(Qt.FocusReason.ShortcutFocusReason)
            return
        elicitation = self._comparison.prepare()
        if elicitation is None or self.writing:
            return
        if model_prompts.askable(elicitation.target):
            self._comparison.observe(self._observed)
        else:
            self._window.status.flash(tr(FUNCTIONS_ONLY))

    def stop(self) -> None:
        self._give_up(tr(STOPPED))

    def close(self) -> None:
        """The engine is about to be closed, which ends what it writes."""
        self._name = ""

    # What the model is asked.

    def _observed(self) -> None:
        """A minute of the model's time is spent only where something may come of it."""
        elicitation = self._comparison.elicitation
        if elicitation is None or self.writing:
            return
        if not elicitation.gives_values:
            self._window.status.flash(elicitation.sentence if elicitation.problem else tr(NO_RESULT))
        elif elicitation.suggested:  # the same seed would give the same texts
            self._show()
        else:
            self._ask_model(elicitation)

    def _ask_model(self, elicitation: Elicitation) -> None:
        run = self._runs.run
        if run is None or self._loading.ready is None:
            return
        try:
            request = model_prompts.for_asserts(run.request, elicitation.target)
        except BasslineError as error:
            self._window.notice.say(str(error))
            return
        self._name, self._texts, self._expected = f"suggest-{secrets.token_hex(6)}", {}, request.candidates
        self._loading.submit(Generate(self._name, request))
        self._tell()

    @Slot(tuple)
    def _receive(self, events: EventBatch) -> None:
        event = events[-1]
        if not self._name or getattr(event, "run", None) != self._name:
            return
        if isinstance(event, CandidateFinished):
            self._texts[event.candidate] = event.text
            self._tell()
        elif isinstance(event, RunFinished):
            self._name = ""
            self._tell()
            self._written(event)

    def _written(self, event: RunFinished) -> None:
        if event.outcome in (RunOutcome.REFUSED, RunOutcome.FAILED):
            self._window.notice.say(event.reason, event.details)
            return
        elicitation = self._comparison.prepare()
        if elicitation is None:
            return
        found = suggestions.read([text for _, text in sorted(self._texts.items())], elicitation.target)
        if not found:
            self._window.status.flash(tr(NOTHING_READ).format(name=elicitation.target.name))
            return
        self._comparison.suggest(found)
        self._comparison.observe(self._show)

    @Slot()
    def _models_changed(self) -> None:
        if self._loading.busy or self._loading.preloading is not None or self._loading.ready is None:
            self._give_up(tr(OTHER_MODEL))

    @Slot()
    def _other_run(self) -> None:
        self._give_up(tr(OTHER_RUN))

    def _give_up(self, sentence: str) -> None:
        if self._name:
            name, self._name = self._name, ""
            self._loading.submit(Cancel(name))
            self._tell()
            self._window.status.flash(sentence)

    def _tell(self) -> None:
        words = tr("The model writes tests: {n} of {all}").format(n=len(self._texts), all=self._expected)
        self._window.status.show_writing(words if self.writing else "")
        self.changed.emit()

    # What the user takes.

    def _show(self) -> None:
        elicitation, tests = self._comparison.elicitation, self._window.tests.text()
        if elicitation is None:
            return
        self._offered, rows = [], []
        count = len(elicitation.candidates)
        for offer in elicitation.offered():
            try:
                text = as_written(tests, offer.answer)
            except NotWritable:
                continue
            self._offered.append(offer)
            rows.append(OfferedTest(text, _agreement(len(offer.members), count)))
        if rows:
            key = key_text(self._window.actions_by_id["suggest_tests"])
            head = tr("Suggested by the model, not reviewed yet: tick what is right ({key})").format(key=key)
            self.list.offer(head, rows)
            self._window.status.flash(tr("Tests suggested: {n}").format(n=len(rows)))
        else:
            self._window.status.flash(tr(NONE_PASSED if elicitation.open_suggestions else ALL_THERE))

    @Slot(list)
    def _add(self, places: list[int]) -> None:
        """They are tests from now on, and count as the user's answers."""
        elicitation, chosen = self._comparison.elicitation, [self._offered[place] for place in places]
        if elicitation is None:
            return
        try:
            self._comparison.write([offer.answer for offer in chosen])
        except NotWritable as why:
            self.list.refuse(str(why))
            return
        for offer in chosen:
            elicitation.accept(offer)
        self.dismiss()
        self._comparison.settle(tested=True)
        words = tr("1 test was added") if len(chosen) == 1 else tr("{n} tests were added").format(n=len(chosen))
        self._window.status.flash(words)

    @Slot()
    def dismiss(self) -> None:
        """They can be looked at again."""
        had_focus = self.list.has_focus
        self.list.hide()
        if had_focus:
            self._window.page.code.setFocus()


def _agreement(members: int, count: int) -> str:
    """For example: 5 of 8 candidates agree."""
    return tr("{n} of {all} candidates agree").format(n=members, all=count)
