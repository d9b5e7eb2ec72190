"""When tests run, what the user is asked and told before, and what a first pass ends."""

from PySide6.QtCore import QObject, Slot

from app.dialogs import question
from app.running import RunController
from app.testing import RunnerConnection
from app.widgets.main_window import MainWindow
from app.words import tr
from engine.runner.protocol import Lamps
from engine.session.effects import ConsentQuestion, FirstPass, RefusedTests

TOLD = "told_about_running"
TOGGLES = ("test_as_finished", "stop_at_first_pass")


class TestController(QObject):
    """Stands between the window's actions and the tests of the run in view."""

    __test__ = False  # not a test class, whatever pytest makes of the name

    def __init__(
        self, window: MainWindow, runs: RunController, runner: RunnerConnection, parent: QObject | None = None
    ):
        super().__init__(parent)
        self._window, self._runs = window, runs
        window.on("run_tests", runs.run_tests)
        for toggle in TOGGLES:
            window.on(toggle, runs.policy_changed)
        runs.for_the_user.connect(self._say)
        runner.looked.connect(self._first_words)
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
                self._window.page.choose(effect.candidate)

    @Slot(object)
    def _first_words(self, lamps: Lamps) -> None:
        """What a person should have read once about running what a model wrote, where no question says it anyway."""
        if lamps.sealed and lamps.words and not self._window.remembered(TOLD):
            self._window.remember(TOLD, "yes")
            self._window.notice.say(lamps.words, tone="warning")

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
