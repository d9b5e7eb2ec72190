"""When tests run, what a person is asked and told before, and what a first pass ends."""

import warnings

from PySide6.QtCore import QObject, Slot

from app.dialogs import question
from app.running import Running
from app.testing import Testing
from app.widgets.main_window import MainWindow
from app.words import tr
from engine.runner.forms import BrokenTests, parse
from engine.runner.protocol import Lamps

TOLD = "told_about_running"


class Judging(QObject):
    """Stands between the window's tests and whoever runs them. ``allowed`` False: nothing runs by itself."""

    def __init__(self, window: MainWindow, running: Running, testing: Testing, parent: QObject | None = None):
        super().__init__(parent)
        self._window, self._running, self._testing = window, running, testing
        self.allowed = True
        self._broken = ""  # tests that a person was told cannot be used
        window.on("run_tests", self.run_tests)
        window.on("test_as_finished", self.test_finished_ones)
        window.on("stop_at_first_pass", self.test_finished_ones)
        running.in_view.connect(testing.attach)
        running.candidate_ended.connect(self.test_finished_ones)
        testing.looked.connect(self._first_words)
        testing.passed.connect(self._first_pass)
        testing.consent_needed.connect(self._ask_consent)
        testing.failed.connect(window.notice.say)

    def run_tests(self) -> None:
        """Tests that cannot be used are a sentence, and no candidate's error."""
        self._broken = ""
        self._test()

    def test_finished_ones(self) -> None:
        """Where that is wanted; not what a stop has cut off a moment ago."""
        run, window = self._running.run, self._window
        wanted = window.is_on("test_as_finished") or window.is_on("stop_at_first_pass")
        stopped = run is not None and run.state == "stopping"
        if wanted and not stopped and not window.tests.blank and self.allowed:
            self._test()

    def _test(self) -> None:
        tests = self._window.tests.text()
        if not (sentence := objection(tests)):
            self._testing.test(tests)
        elif tests != self._broken:  # once, and not with every candidate that ends
            self._broken = tests
            self._window.notice.say(sentence)

    @Slot(int)
    def _first_pass(self, number: int) -> None:
        """The run has what it was asked for; what is in test already may still end."""
        run, window = self._running.run, self._window
        if window.is_on("stop_at_first_pass") and run is not None and not run.ended and run.state != "stopping":
            self._running.stop()
            window.status.flash(tr("Candidate {number} passed; the others were stopped.").format(number=number))
            window.page.choose(number)

    @Slot(object)
    def _first_words(self, lamps: Lamps) -> None:
        """What a person should have read once about running what a model wrote, where no question says it anyway."""
        if lamps.sealed and lamps.words and not self._window.remembered(TOLD):
            self._window.remember(TOLD, "yes")
            self._window.notice.say(lamps.words, tone="warning")

    @Slot(str, str)
    def _ask_consent(self, sentence: str, kind: str) -> None:
        ask = question.same_process if kind == "same_process" else question.consent
        dialog = ask(self._window, sentence)
        dialog.finished.connect(self._answer_consent)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _answer_consent(self, result: int) -> None:
        if not result:
            for id in ("test_as_finished", "stop_at_first_pass"):
                self._window.actions_by_id[id].setChecked(False)
        self._testing.answer_consent(bool(result))


def objection(tests: str) -> str:
    """Why these tests cannot be used, in a sentence; empty when they can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a "\d" in somebody's tests
            parse(tests)
    except BrokenTests as error:
        return str(error)
    except RecursionError:
        return tr("Your tests are nested too deeply.")
    return ""
