"""Loads models in advance, in the background."""

from PySide6.QtCore import QObject, Slot

from app.controllers.model_load import ModelLoadController
from app.system.engines import SCRIPTED
from app.widgets.main_window import MainWindow
from engine.contract import BasslineError, ModelChoice


class PreloadController(QObject):
    """Loads in the background what was used last or has just been chosen, so that Generate answers at once."""

    def __init__(self, window: MainWindow, loading: ModelLoadController, parent: QObject | None = None):
        super().__init__(parent)
        self._window, self._loading = window, loading
        self._tried: ModelChoice | None = None  # in the background; what failed once is not tried at every key
        window.bar.model_chosen.connect(self._chosen)
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
        try:
            choice = self._window.bar.settings().choice
        except BasslineError:
            return  # it is told when it is asked for
        if choice == self._tried or choice.model == SCRIPTED or self._loading.busy or self._loading.has(choice):
            return
        self._tried = choice
        self._loading.load(choice, quiet=True)

    @Slot(object)
    def _remember(self, choice: ModelChoice) -> None:
        if choice.model != SCRIPTED and not choice.server:
            self._window.remember("model", choice.model)
            self._window.remember("draft", choice.draft)
