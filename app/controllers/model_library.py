"""Looks after the models of this machine: lists, fetches, pauses, removes, and says which can draft for which."""

import threading
import time
from dataclasses import dataclass

from PySide6.QtCore import QObject, Slot

from app.controllers.model_load import ModelLoadController
from app.dialogs import question
from app.dialogs.models import ModelsDialog
from app.item_models.model_rows import size
from app.system.engines import SCRIPTED
from app.system.tasks import Task, main_thread_call
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.loading_strip import in_words
from app.widgets.main_window import MainWindow
from engine.contract import Loading
from engine.models.catalog import DEFAULT
from engine.models.library import ListedModel

_TELL_S = 0.1  # a download has thousands of news


@dataclass(frozen=True)
class ModelList:
    """What was found on the disk. ``drafting``: why a model cannot draft for the one in the bar."""

    models: list[ListedModel]
    drafting: dict[str, str]


@dataclass(frozen=True)
class RemovedModel:
    name: str
    freed: int


def list_models(target: str) -> ModelList:
    """Look at catalog and disk; a fraction of a second."""
    from engine.models import drafts, library  # they look at devices and files, and take a moment to import

    models = library.listed()
    return ModelList(models, drafts.reasons(target, [model.name for model in models]))


class ModelLibraryController(QObject):
    """The disk is looked at, and downloads run, on threads of their own; they go on when the dialog is closed."""

    def __init__(self, window: MainWindow, theme: Theme, loading: ModelLoadController, parent: QObject | None = None):
        super().__init__(parent)
        self._window, self._theme, self._loading = window, theme, loading
        self._dialog: ModelsDialog | None = None
        self._fetching = ""
        self._next: list[str] = []  # downloads that wait for this one
        self._paused = threading.Event()
        self._shown_at = 0.0
        self._looking, self._fetch_task, self._removing = Task(self), Task(self), Task(self)
        self._looking.done.connect(self._found)
        self._looking.failed.connect(self._complain)
        self._fetch_task.done.connect(self._fetched)
        self._fetch_task.failed.connect(self._not_fetched)
        self._removing.done.connect(self._removed)
        self._removing.failed.connect(self._complain)
        window.on("models", self.open)
        window.bar.model_chosen.connect(self.look)
        loading.ready_for.connect(self.look)

    def open(self) -> None:
        if self._dialog is None:
            self._dialog = dialog = ModelsDialog(self._window, self._theme)
            dialog.use_wanted.connect(self._use)
            dialog.draft_wanted.connect(self._use_as_draft)
            dialog.fetch_wanted.connect(self.fetch)
            dialog.pause_wanted.connect(self.pause)
            dialog.remove_wanted.connect(self._ask_to_remove)
            dialog.finished.connect(self._closed)
            if self._fetching:
                dialog.show_progress(self._fetching, None)
            dialog.show()
        else:
            self._dialog.raise_()
            self._dialog.activateWindow()
        self.look()

    def close(self) -> None:
        """The window closes: what is being fetched goes on at the next start."""
        self._paused.set()
        for task in (self._looking, self._fetch_task, self._removing):
            task.forget()
        if self._dialog is not None:
            self._dialog.close()

    @Slot()
    def look(self) -> None:
        """See what there is, and which of it can draft for the model in the bar."""
        target = self._window.bar.model
        if target == SCRIPTED and self._dialog is None:
            return  # nobody asks; a recorded run needs no look at the disk
        self._looking.run(lambda: list_models(DEFAULT if target == SCRIPTED else target))

    @Slot(str)
    def fetch(self, name: str) -> None:
        """Download and convert a model, so that it is ready later; after the one that is being downloaded now."""
        if self._fetching:
            if name != self._fetching and name not in self._next:
                self._next.append(name)
                self._tell(tr("{name} is downloaded next.").format(name=name))
            return
        self._fetching, self._paused = name, threading.Event()
        paused, door = self._paused, main_thread_call(self)

        def tell(stage: Loading) -> None:
            now = time.monotonic()
            if now - self._shown_at >= _TELL_S and not paused.is_set():
                self._shown_at = now
                door(lambda models: models.show_stage(name, stage))

        def work() -> str:
            from engine.models.preparation import prepare

            return prepare(name, progress=tell, cancelled=paused.is_set).name

        self._fetch_task.run(work)
        self._progress(None)

    @Slot()
    def pause(self) -> None:
        self._paused.set()
        if self._dialog is not None:
            self._dialog.say(tr("Pausing…"))

    # What came of it.

    @Slot(object)
    def _found(self, listing: ModelList) -> None:
        reasons = listing.drafting
        self._window.bar.advanced.offer_drafts([(m.title, m.name, reasons[m.name]) for m in listing.models])
        others = [(model.title, model.name) for model in listing.models if model.source != "Catalog"]
        self._window.bar.offer_found(others)
        if self._dialog is not None:
            self._dialog.show_models(listing.models, reasons, self._loaded_name(listing.models))

    def show_stage(self, name: str, stage: Loading) -> None:
        if name == self._fetching:
            self._progress(stage)

    @Slot(object)
    def _fetched(self, name: str) -> None:
        self._fetching = ""
        self._progress(None)
        self._tell(tr("{name} is ready to load.").format(name=name))
        if name != self._window.bar.model:
            words = tr("Use {title}").format(title=self._window.bar.title_of(name))
            self._window.status.offer(words, tr("Choose it for the next run"), lambda: self._use(name))
        self.look()
        self._fetch_next()

    @Slot(str)
    def _not_fetched(self, sentence: str) -> None:
        name, self._fetching = self._fetching, ""
        self._progress(None)
        if self._paused.is_set():
            self._tell(tr("{name} is paused; Download goes on where it stopped.").format(name=name))
        else:
            self._complain(sentence)
        self.look()
        self._fetch_next()

    def _fetch_next(self) -> None:
        if self._next:
            self.fetch(self._next.pop(0))

    @Slot(object)
    def _removed(self, removed: RemovedModel) -> None:
        self._tell(tr("{name} is removed; {size} are free again.").format(name=removed.name, size=size(removed.freed)))
        self.look()

    @Slot(str)
    def _complain(self, sentence: str) -> None:
        if self._dialog is not None:
            self._dialog.say(sentence, "error")
        else:
            self._window.notice.say(sentence)

    # What is asked for.

    @Slot(str)
    def _use(self, name: str) -> None:
        self._window.bar.choose_model(name)
        self._window.bar.model_chosen.emit()

    @Slot(str)
    def _use_as_draft(self, name: str) -> None:
        self._window.bar.choose_draft(name)
        self._window.bar.model_chosen.emit()

    @Slot(object)
    def _ask_to_remove(self, model: ListedModel) -> None:
        assert self._dialog is not None
        held = size(model.original_bytes + model.converted_bytes)
        dialog = question.removing(self._dialog, model.title, held)

        def work() -> RemovedModel:
            from engine.models.library import remove

            return RemovedModel(model.title, remove(model.name))

        dialog.accepted.connect(lambda: self._removing.run(work))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot()
    def _closed(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None

    def _progress(self, stage: Loading | None) -> None:
        words = f"{self._fetching}: {in_words(stage)}" if stage else tr("{name}: looking for a source")
        self._window.status.show_download(words.format(name=self._fetching) if self._fetching else "")
        if self._dialog is not None:
            self._dialog.show_progress(self._fetching, stage)

    def _tell(self, words: str) -> None:
        if self._dialog is not None:
            self._dialog.say(words)
        else:
            self._window.status.flash(words)

    def _loaded_name(self, models: list[ListedModel]) -> str:
        """The listed name of what is in memory now."""
        loaded = self._loading.loaded
        if loaded is None or loaded.server:
            return ""
        if loaded.model == "default":
            return next((model.name for model in models if model.default), "")
        return loaded.model
