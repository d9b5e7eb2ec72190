"""What to do when memory or the disk is short: buttons beside the sentence, each of them one step that helps."""

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject

from app.controllers.run_settings import RunSettings
from app.ui.words import tr
from app.widgets.main_window import MainWindow
from app.widgets.notice import Choice
from engine.contract import BasslineError, LoadFailed, RunFinished

FEW = 4


class OutOfMemoryController(QObject):
    """``generate`` starts again after a step was taken."""

    def __init__(self, window: MainWindow, generate: Callable[[], None], parent: QObject | None = None):
        super().__init__(parent)
        self._window, self._generate = window, generate

    def say(self, event: RunFinished | LoadFailed) -> None:
        """The event's reason, with buttons where its kind has any."""
        choices: list[Choice] = []
        if event.kind == "out-of-memory":
            choices = self._out_of_memory(running=isinstance(event, RunFinished))
        elif event.kind == "disk-full":  # the models are what takes room, and can be removed there
            choices = [(tr("Models"), self._window.actions_by_id["models"].trigger)]
        self._window.notice.say(event.reason, event.details, choices=choices)

    def _out_of_memory(self, running: bool) -> list[Choice]:
        bar = self._window.bar
        try:
            settings = bar.settings()
        except BasslineError:
            return []
        tokens, draft = settings.sampling.max_tokens, settings.draft
        choices: list[Choice] = []
        if running and settings.candidates > FEW:
            fewer = replace(settings, candidates=FEW)
            choices.append((tr("{n} candidates").format(n=FEW), lambda: self._again(fewer)))
        if running and tokens > 128:
            shorter = replace(settings, sampling=replace(settings.sampling, max_tokens=tokens // 2))
            choices.append((tr("{n} tokens").format(n=tokens // 2), lambda: self._again(shorter)))
        if draft:
            alone = replace(settings, draft="")
            choices.append((tr("No draft model"), lambda: self._again(alone)))
        if not running and not settings.ignore_fit:
            choices.append((tr("Load anyway"), self._insist))
        choices.append((tr("Smaller model"), bar.open_models))
        return choices

    def _insist(self) -> None:
        self._window.bar.insist()
        self._generate()

    def _again(self, settings: RunSettings) -> None:
        self._window.bar.apply(settings)
        self._generate()
