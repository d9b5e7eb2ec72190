"""The comparison of the run in view by what its candidates do: observed once, for questions and for suggested tests."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal, Slot

from app.controllers.runs import RunController
from app.dialogs import question as dialogs
from app.system.runner_connection import RunnerConnection
from app.widgets.main_window import MainWindow
from engine.elicitation.answers import Answer, with_answer
from engine.elicitation.elicitation import Elicitation
from engine.elicitation.suggestions import Suggestion
from engine.elicitation.target import NothingToAsk
from engine.runner.protocol import Answer as RunnerAnswer
from engine.runner.protocol import CancelTests, ConsentNeeded, Observed
from engine.session.comparing import elicitation_of
from engine.session.run import Run


class ComparisonController(QObject):
    """``elicitation`` is that of the run in view, None where nobody has asked for one.

    ``renewed``: what was asked or offered so far is about another run, other candidates or other tests.
    """

    renewed = Signal()

    def __init__(
        self,
        window: MainWindow,
        runs: RunController,
        runner: RunnerConnection,
        may_run_code: Callable[[], bool],
        parent: QObject | None = None,
    ):
        super().__init__(parent)
        self._window, self._runs, self._runner, self._may_run_code = window, runs, runner, may_run_code
        self.elicitation: Elicitation | None = None
        self._run: Run | None = None
        self._tests = ""  # that the elicitation knows
        self._suggested: list[Suggestion] = []  # about the run in view, also when it goes on
        self._then: list[Callable[[], None]] = []  # waits for what is being observed
        self._wanted = False  # by the user, not by itself
        self._consent = False
        self._names = 0
        self._ids: list[str] = []
        runs.in_view.connect(self._other_run)
        runs.began.connect(self._forget)
        runner.answered.connect(self._answered)

    def prepare(self) -> Elicitation | None:
        """The elicitation for the candidates and tests that there are now; None, and the status line says why not."""
        run, tests = self._runs.run, self._window.tests.text()
        if run is None or not run.ended:
            return None
        if self.elicitation is None or tests != self._tests:
            self._forget()
            try:
                self.elicitation = elicitation_of(run, tests, suggested=self._suggested)
            except NothingToAsk as why:
                self._window.status.flash(str(why))
                return None
            self._run, self._tests = run, tests
        return self.elicitation

    def observe(self, then: Callable[[], None], wanted: bool = True) -> None:
        """``then`` is called when all candidates were observed: at once where they are. Not without consent.

        ``wanted``: by the user, who is asked for it; else nothing is run without a sandbox.
        """
        if self.elicitation is None:
            return
        self._wanted = wanted or (self._wanted and bool(self._ids))
        if self.elicitation.observed:
            then()
            return
        if then not in self._then:
            self._then.append(then)
        if not self._ids:
            self._send()

    def suggest(self, found: Sequence[Suggestion]) -> None:
        """Tests that the model wrote; they are to be observed next."""
        self._suggested += [suggestion for suggestion in found if suggestion not in self._suggested]
        if self.elicitation is not None:
            self.elicitation.suggest(found)
            if self.elicitation.observed:  # their inputs were tried already
                self._show()

    def write(self, answers: Sequence[Answer]) -> None:
        """As tests into the editor, in one step that can be undone. Raises NotWritable."""
        before = after = self._window.tests.text()
        for answer in answers:
            after = with_answer(after, answer)
        self._window.tests.replace_text(after)
        if before == self._tests:
            self._tests = after

    def settle(self, tested: bool) -> None:
        """Something was answered: candidates stand elsewhere, and are tested anew where it became a test."""
        self._show()
        if tested and self._may_run_code():
            self._runs.run_tests()
        if self._run is not None and (best := self._run.best()) is not None:
            self._window.page.choose(best)

    def _send(self) -> None:
        assert self.elicitation is not None
        self._names += 1
        requests = self.elicitation.requests(f"compare/{self._names}", self._consent)
        self._ids = [request.id for request in requests]
        for request in requests:
            if not self._runner.send(request):
                self._forget()
                return

    @Slot(object)
    def _answered(self, answer: RunnerAnswer) -> None:
        id = getattr(answer, "id", "")
        if id not in self._ids or self.elicitation is None:
            return
        if isinstance(answer, ConsentNeeded):
            self._ask_consent(answer)
        elif isinstance(answer, Observed):
            self._ids.remove(id)
            self.elicitation.take(answer)
            if not self._ids:
                self._all_observed()

    def _all_observed(self) -> None:
        self._show()
        if self.elicitation is not None and not self.elicitation.observed:
            self._send()  # tests were suggested meanwhile
            return
        waiting, self._then = self._then, []
        for then in waiting:
            then()

    def _ask_consent(self, asked: ConsentNeeded) -> None:
        """Without a sandbox nothing is run by itself; whoever wants it is asked once for all candidates."""
        self._cancel()
        if not self._wanted:
            self._then = []
            return
        dialog = dialogs.consent(self._window, asked.sentence)
        dialog.accepted.connect(self._agreed)
        dialog.rejected.connect(self._refused)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot()
    def _agreed(self) -> None:
        self._consent = True
        if self._then and self.elicitation is not None:
            self._send()

    @Slot()
    def _refused(self) -> None:
        self._then = []

    def _show(self) -> None:
        """The tabs regroup by what the candidates do."""
        if self.elicitation is not None and self._run is not None:
            self._run.compared(self.elicitation.compared())
            self._runs.tests_changed.emit()

    def _cancel(self) -> None:
        ids, self._ids = self._ids, []
        for id in ids:
            self._runner.send(CancelTests(id))

    @Slot()
    def _other_run(self) -> None:
        self._suggested = []
        self._forget()

    @Slot()
    def _forget(self) -> None:
        """The run in view is another one, or goes on, or its tests are others now."""
        self._cancel()
        self.elicitation = self._run = None
        self._then = []
        self.renewed.emit()
