"""Loads models in advance, in the background."""

from PySide6.QtCore import QObject, Slot

from app.controllers.model_load import ModelLoadController
from app.controllers.runs import RunController
from app.system.engines import SCRIPTED
from app.widgets.main_window import MainWindow
from engine.contract import BasslineError, ModelChoice


class PreloadController(QObject):
    """Loads in the background what was used last or has just been chosen, so that Generate answers at once.

    While a run goes on, nothing is loaded: its models are in use, and its later parts need them too. What is chosen
    meanwhile is loaded when the run has ended.
    """

    def __init__(
        self, window: MainWindow, loading: ModelLoadController, runs: RunController, parent: QObject | None = None
    ):
        super().__init__(parent)
        self._window, self._loading, self._runs = window, loading, runs
        self._put_off = False  # something was chosen during the run
        self._tried: ModelChoice | None = None  # in the background; what failed once is not tried at every key
        window.bar.model_chosen.connect(self._chosen)
        runs.finished.connect(self._run_ended)
        loading.ready_for.connect(self._remember)

    def preload(self) -> None:
        """Load the models that were used last; without the network, and in silence."""
        model, draft = self._window.remembered("model"), self._window.remembered("draft")
        if model:
            self._window.bar.choose_model(model)
            self._window.bar.choose_draft(draft)
            self._chosen()

    @Slot()
    def _chosen(self) -> None:
        self._put_off = self._runs.busy
        if self._put_off:
            return
        try:
            choice = self._window.bar.settings().choice
        except BasslineError:
            return  # it is told when it is asked for
        if choice == self._tried or choice.model == SCRIPTED or self._loading.busy or self._loading.has(choice):
            return
        self._tried = choice
        self._loading.load(choice, quiet=True)

    @Slot()
    def _run_ended(self) -> None:
        if self._put_off:
            self._chosen()

    @Slot(object)
    def _remember(self, choice: ModelChoice) -> None:
        if choice.model != SCRIPTED and not choice.server:
            self._window.remember("model", choice.model)
            self._window.remember("draft", choice.draft)
