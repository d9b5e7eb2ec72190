"""What the next request asks: the prompt, the attached files, and the answer that it follows up."""

import secrets
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QFileDialog

from app.controllers.run_settings import RunSettings
from app.controllers.runs import RunController
from app.ui.words import tr
from app.widgets.main_window import MainWindow
from engine.contract import BasslineError, Ready, Request, Turn
from engine.session import turns
from engine.session.arms import BATCH
from engine.session.attachments import Attachment, attach, with_context


class PromptController(QObject):
    """Knows what a run is asked for besides its settings."""

    def __init__(self, window: MainWindow, running: RunController, parent: QObject | None = None):
        super().__init__(parent)
        self._window, self._running = window, running
        self._files: list[Attachment] = []
        self._turns: tuple[Turn, ...] = ()  # what was said before the prompt
        for id, do in (("attach", self.ask_for_files), ("follow_up", self.follow_up), ("fix_it", self.fix)):
            window.on(id, do)
        window.files_dropped.connect(self._take)
        window.context.removed.connect(self._remove)
        window.context.unfollowed.connect(self.start_over)

    @property
    def files(self) -> list[Attachment]:
        return list(self._files)

    def request(self, settings: RunSettings) -> Request:
        """What Generate asks for. Raises BadRequest, and what attaching raises."""
        prompt = self._window.prompt.text()
        request = settings.request(prompt, secrets.randbelow(2**31), has_tests=not self._window.tests.blank)
        if self._files:
            request = replace(request, prompt=with_context(prompt, self._files))
        return replace(request, turns=self._turns) if self._turns else request

    def follow_up(self) -> None:
        """From now on prompts go on from the candidate in view, until a user starts afresh."""
        run, number = self._running.run, self._window.page.number
        if run is not None and number in run.candidates:
            try:
                self._turns = turns.turns_until(run, number)
            except BasslineError as error:
                self._window.notice.say(str(error))
                return
            self._window.context.show_follow_up(tr("Follows candidate {n}").format(n=number))
            self._window.go_to_editor(self._window.prompt)
            self._window.prompt.selectAll()

    @Slot(object)
    def ask_again(self, request: Request) -> None:
        """The prompt of an earlier run is in the window again; what was said before it comes along."""
        self._turns = request.turns
        self._window.context.show_follow_up(tr("Follows an earlier answer") if request.turns else "")

    def start_over(self) -> None:
        self._turns = ()
        self._window.context.show_follow_up("")

    def fix(self) -> None:
        """New candidates that repair the one in view join it; tests and settings stay as they are."""
        number = self._window.page.number
        try:
            settings = self._window.bar.settings()
            count = BATCH if settings.until_pass else settings.candidates
            self._running.repair(number, count, secrets.randbelow(2**31), settings.choice)
        except BasslineError as error:
            self._window.notice.say(str(error))

    def ask_for_files(self) -> None:
        dialog = QFileDialog(self._window, tr("Attach files"), self._window.remembered("folder") or str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(self._take)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def length_in_words(self, ready: Ready | None) -> str:
        """In tokens where the engine has counted this very prompt, else in characters."""
        run, prompt = self._running.run, self._window.prompt
        if ready and run and run.prompt_tokens and not self._files and prompt.text() == run.request.prompt:
            words = tr("{n:,} of {context:,} tokens")
            return words.format(n=run.prompt_tokens, context=ready.context)
        characters = prompt.document().characterCount() - 1 + sum(len(file.text) for file in self._files)
        return tr("{n:,} characters").format(n=characters) if characters else ""

    @Slot(list)
    def _take(self, paths: Iterable[str]) -> None:
        """Files become context; a model, by its looks, is chosen as the model."""
        for path in map(Path, paths):
            if path.suffix == ".gguf" or (path / "config.json").is_file():
                self._window.bar.choose_model(str(path))
                self._window.bar.model_chosen.emit()
                continue
            try:
                self._files.append(attach(path, self._files))
            except BasslineError as error:
                self._window.notice.say(str(error), tone="warning")
        self._window.context.show_files(self._files)

    @Slot(int)
    def _remove(self, place: int) -> None:
        del self._files[place]
        self._window.context.show_files(self._files)
