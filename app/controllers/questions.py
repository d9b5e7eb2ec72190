"""Questions about what candidates do: when they are compared, what is asked, and what an answer changes."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Slot

from app.controllers.runs import RunController
from app.dialogs import question as dialogs
from app.system.runner_connection import RunnerConnection
from app.widgets.main_window import MainWindow
from app.widgets.question_strip import QuestionStrip
from engine.contract import RunFinished
from engine.contract.states import FINISHED
from engine.elicitation.answers import Answer, NotWritable, with_answer
from engine.elicitation.elicitation import Elicitation, Solution
from engine.elicitation.questions import Question
from engine.elicitation.target import NothingToAsk
from engine.runner.protocol import Answer as RunnerAnswer
from engine.runner.protocol import CancelTests, ConsentNeeded, Observed
from engine.session.run import Run

BY_ITSELF = "ask_by_itself"


class QuestionController(QObject):
    """Compares the candidates of a run that has ended without tests, or when it is asked to."""

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
        self.strip = QuestionStrip(window.theme, window.page)
        self._elicitation: Elicitation | None = None
        self._run: Run | None = None
        self._question: Question | None = None
        self._wanted = False  # by the user, not by itself
        self._consent = False
        self._names = 0
        self._ids: list[str] = []
        window.on("ask", self.ask)
        runs.finished.connect(self._run_finished)
        runs.in_view.connect(self._forget)
        runs.began.connect(self._forget)
        runner.answered.connect(self._answered)
        self.strip.chosen.connect(self._choose)
        self.strip.written.connect(self._write)
        self.strip.indifferent.connect(lambda: self._keep(None))
        self.strip.dismissed.connect(self._dismiss)

    def ask(self) -> None:
        """To the question, if one stands; else compare the candidates and ask."""
        if not self.strip.isHidden():
            self.strip.setFocus(Qt.FocusReason.ShortcutFocusReason)
            return
        self._wanted = True
        self._compare()

    @Slot(object)
    def _run_finished(self, _event: RunFinished) -> None:
        if self._window.is_on(BY_ITSELF) and self._may_run_code() and self._window.tests.blank:
            self._wanted = False
            self._compare()

    def _compare(self) -> None:
        run = self._runs.run
        if run is None or not run.ended or self._ids:
            return
        solutions = {
            number: Solution(c.code, c.mean_logprob, c.text)
            for number, c in sorted(run.candidates.items())
            if c.state in FINISHED and c.code.strip() and c.block.maybe_python
        }
        if len(solutions) < 2 and not self._wanted:
            return
        try:
            self._elicitation, self._run = Elicitation(run.request.prompt, self._window.tests.text(), solutions), run
        except NothingToAsk as why:
            self._say(str(why))
            return
        self._send()

    def _send(self) -> None:
        assert self._elicitation is not None
        self._names += 1
        requests = self._elicitation.requests(f"compare/{self._names}", self._consent)
        self._ids = [request.id for request in requests]
        for request in requests:
            if not self._runner.send(request):
                self._forget()
                return

    @Slot(object)
    def _answered(self, answer: RunnerAnswer) -> None:
        id = getattr(answer, "id", "")
        if id not in self._ids or self._elicitation is None:
            return
        if isinstance(answer, ConsentNeeded):
            self._ask_consent(answer)
        elif isinstance(answer, Observed):
            self._ids.remove(id)
            self._elicitation.take(answer)
            if not self._ids:
                self._show_standings()
                self._next()

    def _ask_consent(self, asked: ConsentNeeded) -> None:
        """Without a sandbox nothing is run by itself; whoever wants it is asked once for all candidates."""
        ids, self._ids = self._ids, []
        for id in ids:
            self._runner.send(CancelTests(id))
        if not self._wanted:
            return
        dialog = dialogs.consent(self._window, asked.sentence)
        dialog.accepted.connect(self._agreed)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot()
    def _agreed(self) -> None:
        self._consent = True
        self._compare()

    def _show_standings(self) -> None:
        """The tabs regroup by what the candidates do."""
        if self._elicitation is not None and self._run is not None:
            self._run.compared(self._elicitation.standings(), self._elicitation.record())
            self._runs.tests_changed.emit()

    def _next(self) -> None:
        assert self._elicitation is not None
        self._question = self._elicitation.question()
        if self._question is not None:
            self.strip.ask(self._question)
            return
        self._take_strip_away()
        self._say(self._elicitation.sentence)

    def _say(self, sentence: str) -> None:
        self._window.status.flash(sentence)

    @Slot(int)
    def _choose(self, place: int) -> None:
        if self._elicitation is not None and self._question is not None:
            self._keep(self._elicitation.choose(self._question, place))

    @Slot(str)
    def _write(self, text: str) -> None:
        if self._elicitation is None or self._question is None:
            return
        try:
            self._keep(self._elicitation.another(self._question, text))
        except ValueError as why:
            self.strip.refuse(str(why))

    def _keep(self, answer: Answer | None) -> None:
        """``answer`` None: it does not matter."""
        elicitation, asked = self._elicitation, self._question
        if elicitation is None or asked is None:
            return
        if answer is not None:
            try:
                self._window.tests.replace_text(with_answer(self._window.tests.text(), answer))
            except NotWritable as why:
                self.strip.refuse(str(why))
                return
        elicitation.keep(asked, answer)
        self._show_standings()
        if answer is not None and self._may_run_code():
            self._runs.run_tests()
        if self._run is not None and (best := self._run.best()) is not None:
            self._window.page.choose(best)
        self._next()

    @Slot()
    def _dismiss(self) -> None:
        """The question can be asked for again."""
        self._question = None
        self._take_strip_away()

    def _take_strip_away(self) -> None:
        had_focus = self.strip.isAncestorOf(self._window.focusWidget() or self._window) or self.strip.hasFocus()
        self.strip.hide()
        if had_focus:
            self._window.page.code.setFocus()

    @Slot()
    def _forget(self) -> None:
        """Another run is in view, or this one goes on."""
        self._elicitation = self._question = self._run = None
        self._ids = []
        self._take_strip_away()
