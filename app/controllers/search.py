"""Until one passes: the models that may take part, the one question that is asked, and the offers after a run."""

import secrets
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Slot

from app.controllers.model_load import ModelLoadController
from app.controllers.runs import RunController
from app.system.tasks import Task
from app.ui.words import tr
from app.widgets.candidate_page import TEST_LOG
from app.widgets.main_window import MainWindow
from app.widgets.notice import Choice
from engine.contract import BadRequest, BasslineError, ModelChoice, RunFinished, RunOutcome
from engine.session.arms import BATCH, Budget, Model, best_failing
from engine.session.batches import repairs_of_each
from engine.session.run import Run
from engine.session.search import Search, was_search

LARGER = "larger_models"  # remembered: "never" when the user wants none


class SearchController(QObject):
    """Makes the Search of a run, and offers to go on where none passed."""

    def __init__(
        self, window: MainWindow, loading: ModelLoadController, runs: RunController, parent: QObject | None = None
    ):
        super().__init__(parent)
        self._window, self._loading, self._runs = window, loading, runs
        self._ladder: list[Model] = []
        self._then: Callable[[], None] | None = None  # waits for that
        self._task = Task(self)
        self._task.done.connect(self._take_ladder)
        self._task.failed.connect(self._no_ladder)
        loading.ready_for.connect(self._look)
        runs.larger_model.connect(self._ask)
        runs.searched.connect(self._offer)
        runs.finished.connect(self._offer_after_tests)
        runs.tests_changed.connect(self._offer_after_tests)
        self._offered: tuple[Run, str, int] | None = None
        self._decide: Callable[[bool], None] | None = None  # while the question about a larger model stands
        window.notice.left.connect(lambda: self._answer(False))
        runs.finished.connect(self._withdraw_question)

    def search(self, budget: Budget | None, choice: ModelChoice, tests: str) -> Search | None:
        """None for a run that asks once. Raises BadRequest where nothing could tell that one passes."""
        if budget is None:
            return None
        if not tests.strip():
            raise BadRequest(tr("“Until one passes” needs tests; write some in the Tests tab."))
        return Search(budget, self._models(choice))

    def go_on(self) -> None:
        """The run in view goes on until one passes, with as many candidates more as a new search may have."""
        self._with_models(lambda choice, models: self._runs.go_on(choice, Search(self._more(), models)))

    def resume(self) -> None:
        """The run in view, one of the history, goes on: what it did not finish, and its search if it was one."""
        if self._runs.run is not None and was_search(self._runs.run):
            self.go_on()
        else:
            self._with_models(lambda choice, _: self._runs.go_on(choice))

    def _more(self) -> Budget:
        run, budget = self._runs.run, self._window.bar.settings().budget or Budget()
        return replace(budget, candidates=budget.candidates + (len(run.candidates) if run else 0))

    def _with_models(self, do: Callable[[ModelChoice, list[Model]], None]) -> None:
        """Once it is known what is larger than the chosen model, and here."""

        def begin() -> None:
            choice = self._choice()
            if self._ladder and self._ladder[0].choice == choice:
                do(choice, self._models(choice))
            else:
                self._then = lambda: do(choice, self._models(choice))
                self._look(choice)

        self._try(begin)

    def _try(self, do: Callable[[], None]) -> None:
        """What the controls say by now may be something that cannot be."""
        try:
            do()
        except BasslineError as error:
            self._window.notice.say(str(error))

    def fix_best(self) -> None:
        """The best failing one; where several answers can be corrected in one batch, as many as there is room for."""
        run, seed = self._runs.run, secrets.randbelow(2**31)
        if run is None or (best := best_failing(run)) is None:
            return
        self._window.page.open(best.number)
        if _fixable(run) > 1:
            self._try(lambda: self._runs.repair_each(BATCH, seed, self._choice()))
        else:
            self._try(lambda: self._runs.repair(best.number, BATCH, seed, self._choice()))

    def close(self) -> None:
        self._task.forget()

    def _choice(self) -> ModelChoice:
        return self._window.bar.settings().choice

    def _models(self, choice: ModelChoice) -> list[Model]:
        known = self._ladder if self._ladder and self._ladder[0].choice == choice else [Model(choice, choice.model)]
        return known[:1] if self._window.remembered(LARGER) == "never" else known

    @Slot(object)
    def _look(self, choice: ModelChoice) -> None:
        """What is larger and here is found out beside, since it reads the disk."""
        from engine.session.ladder import ladder  # takes a moment to import

        if not self._runs.driver or not self._runs.driver.searching:
            self._task.run(lambda: ladder(choice))

    @Slot(object)
    def _take_ladder(self, models: list[Model]) -> None:
        self._ladder = models
        then, self._then = self._then, None
        if then is not None:
            self._try(then)

    @Slot(str)
    def _no_ladder(self, sentence: str) -> None:
        """Told to who waits for it; a run does without."""
        then, self._then = self._then, None
        if then is not None:
            self._window.notice.say(sentence)

    @Slot(str, object)
    def _ask(self, model: str, decide: Callable[[bool], None]) -> None:
        """The one question of a search."""
        title = self._window.bar.title_of(model)
        if self._window.remembered(LARGER) == "yes":
            decide(True)
            return

        words = tr("No candidate has passed yet. {title} is a larger model on this computer. Go on with it?").format(
            title=title
        )
        choices: list[Choice] = [
            (tr("Yes"), lambda: self._answer(True, "yes")),
            (tr("No"), lambda: self._answer(False)),
            (tr("Never"), lambda: self._answer(False, "never")),
        ]
        self._window.notice.say(words, tone="warning", choices=choices)
        self._decide = decide

    def _answer(self, agreed: bool, keep: str = "") -> None:
        if keep:
            self._window.remember(LARGER, keep)
        decide, self._decide = self._decide, None
        if decide is not None:
            decide(agreed)

    @Slot()
    def _withdraw_question(self) -> None:
        """The run has ended while it stood, by a stop: no answer would do anything."""
        if self._decide is not None:
            self._window.notice.leave()

    @Slot()
    def _offer_after_tests(self, _event: RunFinished | None = None) -> None:
        run = self._runs.run
        if run is not None and run.outcome == RunOutcome.FINISHED and not self._runs.busy and not self._runs.testing:
            self._offer(run)

    @Slot(object)
    def _offer(self, run: Run) -> None:
        """Once for the same candidates and tests, when all were tested and none passed."""
        tested = [c for c in run.candidates.values() if c.report is not None]
        this = run, run.tests, len(run.candidates)
        if not tested or any(c.passed for c in tested) or self._offered == this or run.next_to_test():
            return
        self._offered = this
        best = best_failing(run)
        choices = [(tr("Go on until one passes"), self.go_on)]
        if best is not None:
            several = _fixable(run)
            words = tr("Fix the best {n}").format(n=several) if several > 1 else tr("Fix the best one")
            choices.append((words, self.fix_best))
            if not self._window.page.in_use:
                self._window.page.open(best.number, TEST_LOG)
        if (larger := self._next_model()) is not None:
            choices.append((tr("Use {title}").format(title=self._window.bar.title_of(larger)), self._use_larger))
        words = tr("None of the {n} candidates passed the tests.").format(n=len(run.candidates))
        if len(run.candidates) == 1:
            words = tr("The candidate did not pass the tests.")
        self._window.notice.say(words, tone="warning", choices=choices)

    def _next_model(self) -> str | None:
        return self._ladder[1].choice.model if len(self._ladder) > 1 else None

    def _use_larger(self) -> None:
        if (larger := self._next_model()) is not None:
            self._window.bar.choose_model(larger)
            self._window.bar.model_chosen.emit()
            self._window.actions_by_id["generate"].trigger()


def _fixable(run: Run) -> int:
    """Different answers that corrections can be asked of in one batch: those of a conversation, a batch at most."""
    if run.request.mode != "chat":
        return 0
    try:
        _, origins = repairs_of_each(run, BATCH, 0)
    except BasslineError:
        return 0
    return len({origin.of for origin in origins.values()})
