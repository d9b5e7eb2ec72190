"""Questions about what candidates do: when one is asked, and what an answer changes."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Slot

from app.controllers.comparison import ComparisonController
from app.controllers.runs import RunController
from app.widgets.main_window import MainWindow
from app.widgets.question_strip import QuestionStrip
from engine.contract import RunFinished
from engine.elicitation.answers import Answer, NotWritable
from engine.elicitation.questions import Question

BY_ITSELF = "ask_by_itself"


class QuestionController(QObject):
    """Asks about the candidates of a run that has ended without tests, or when it is asked to."""

    def __init__(
        self,
        window: MainWindow,
        runs: RunController,
        comparison: ComparisonController,
        may_run_code: Callable[[], bool],
        parent: QObject | None = None,
    ):
        super().__init__(parent)
        self._window, self._comparison, self._may_run_code = window, comparison, may_run_code
        self.strip = QuestionStrip(window.theme, window.page)
        self._question: Question | None = None
        window.on("ask", self.ask)
        runs.finished.connect(self._run_finished)
        comparison.renewed.connect(self._dismiss)
        self.strip.chosen.connect(self._choose)
        self.strip.written.connect(self._write)
        self.strip.indifferent.connect(lambda: self._keep(None))
        self.strip.dismissed.connect(self._dismiss)

    def ask(self) -> None:
        """To the question, if one stands; else compare the candidates and ask."""
        if not self.strip.isHidden():
            self.strip.setFocus(Qt.FocusReason.ShortcutFocusReason)
        elif self._comparison.prepare() is not None:
            self._comparison.observe(self._next)

    @Slot(object)
    def _run_finished(self, _event: RunFinished) -> None:
        if not (self._window.is_on(BY_ITSELF) and self._may_run_code() and self._window.tests.blank):
            return
        elicitation = self._comparison.prepare()
        if elicitation is not None and len(elicitation.solutions) > 1:
            self._comparison.observe(self._next, wanted=False)

    def _next(self) -> None:
        elicitation = self._comparison.elicitation
        if elicitation is None:
            return
        self._question = elicitation.question()
        if self._question is not None:
            self.strip.ask(self._question)
            return
        self._take_strip_away()
        self._window.status.flash(elicitation.sentence)

    @Slot(int)
    def _choose(self, place: int) -> None:
        elicitation = self._comparison.elicitation
        if elicitation is not None and self._question is not None:
            self._keep(elicitation.choose(self._question, place))

    @Slot(str)
    def _write(self, text: str) -> None:
        elicitation = self._comparison.elicitation
        if elicitation is None or self._question is None:
            return
        try:
            self._keep(elicitation.another(self._question, text))
        except ValueError as why:
            self.strip.refuse(str(why))

    def _keep(self, answer: Answer | None) -> None:
        """``answer`` None: it does not matter."""
        elicitation, asked = self._comparison.elicitation, self._question
        if elicitation is None or asked is None:
            return
        if answer is not None:
            try:
                self._comparison.write([answer])
            except NotWritable as why:
                self.strip.refuse(str(why))
                return
        elicitation.keep(asked, answer)
        self._comparison.settle(tested=answer is not None)
        self._next()

    @Slot()
    def _dismiss(self) -> None:
        """The question can be asked for again."""
        self._question = None
        self._take_strip_away()

    def _take_strip_away(self) -> None:
        had_focus = self.strip.has_focus
        self.strip.hide()
        if had_focus:
            self._window.page.code.setFocus()
