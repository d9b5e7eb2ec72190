"""The questions and notices about running tests: consent, refused tests, and the first pass."""

from PySide6.QtCore import QObject, Slot

from app.controllers.runs import RunController
from app.dialogs import question
from app.system.runner_connection import RunnerConnection
from app.ui.words import tr
from app.widgets.main_window import MainWindow
from engine.runner.protocol import Isolation
from engine.session.effects import ConsentQuestion, FirstPass, RefusedTests

RUNNING_EXPLAINED = "told_about_running"
TOGGLES = ("test_as_finished", "stop_at_first_pass")


class TestingConsent(QObject):
    """Stands between the window's actions and the tests of the run in view."""

    def __init__(
        self, window: MainWindow, runs: RunController, runner: RunnerConnection, parent: QObject | None = None
    ):
        super().__init__(parent)
        self._window, self._runs = window, runs
        window.on("run_tests", runs.run_tests)
        for toggle in TOGGLES:
            window.on(toggle, runs.policy_changed)
        runs.for_the_user.connect(self._say)
        runner.probed.connect(self._explain_running)
        runner.failed.connect(window.notice.say)

    @Slot(object)
    def _say(self, effect: ConsentQuestion | RefusedTests | FirstPass) -> None:
        match effect:
            case ConsentQuestion():
                self._ask_consent(effect)
            case RefusedTests():
                self._window.notice.say(effect.sentence)
            case FirstPass():
                if effect.stopped:
                    words = tr("Candidate {number} passed; the others were stopped.")
                    self._window.status.flash(words.format(number=effect.candidate))
                self._window.page.open(effect.candidate)

    @Slot(object)
    def _explain_running(self, isolation: Isolation) -> None:
        """What a user should have read once about running what a model wrote, where no question says it anyway."""
        if isolation.sealed and isolation.words and not self._window.remembered(RUNNING_EXPLAINED):
            self._window.remember(RUNNING_EXPLAINED, "yes")
            self._window.notice.say(isolation.words, tone="warning")

    def _ask_consent(self, asked: ConsentQuestion) -> None:
        ask = question.same_process if asked.kind == "same_process" else question.consent
        dialog = ask(self._window, asked.sentence)
        dialog.finished.connect(self._answer_consent)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot(int)
    def _answer_consent(self, result: int) -> None:
        if not result:
            for toggle in TOGGLES:
                self._window.actions_by_id[toggle].setChecked(False)
        self._runs.answer_consent(bool(result))
