"""While a model downloads, another one can be used: the download goes on in the background."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Slot

from app.controllers.model_library import ModelLibraryController
from app.controllers.model_load import ModelLoadController
from app.item_models.model_rows import size
from app.system.engines import SCRIPTED
from app.system.tasks import Task
from app.ui.words import tr
from app.widgets.main_window import MainWindow
from engine.contract import Loading, ModelChoice
from engine.models.library import ListedModel

_DOWNLOADS = ("download", "stalled")


class MeanwhileController(QObject):
    """Offers a smaller model beside the progress of a download, and keeps the download going when it is taken, or when
    the user generates with another model. ``generate`` starts a run with the model that is chosen then."""

    def __init__(
        self,
        window: MainWindow,
        loading: ModelLoadController,
        models: ModelLibraryController,
        generate: Callable[[], None],
        parent: QObject | None = None,
    ):
        super().__init__(parent)
        self._window, self._loading, self._models, self._generate = window, loading, models, generate
        self._looked_for: ModelChoice | None = None  # a stand-in, during its load
        self._offered: ListedModel | None = None
        self._put_off = ""  # a model whose download goes on when nothing is loaded
        self._task = Task(self)
        self._task.done.connect(self._offer)
        loading.staged.connect(self._staged)
        loading.changed.connect(self._changed)
        window.loading.meanwhile.connect(self.take)

    def take(self) -> None:
        """Generate with the smaller model."""
        if self._offered is not None:
            self._window.bar.choose_model(self._offered.name)
            self._window.bar.choose_draft("")
            self._window.bar.model_chosen.emit()
            self._generate()

    def keep(self, chosen: ModelChoice) -> None:
        """A run with ``chosen`` begins: a download of another model that it takes the place of is not given up."""
        wanted, stage = self._loading.wanted, self._loading.stage
        downloads = stage is not None and stage.stage in _DOWNLOADS
        if wanted is not None and downloads and self._loading.loads_other(chosen):
            self._put_off = _name(wanted.model)

    def close(self) -> None:
        self._task.forget()

    @Slot(object)
    def _staged(self, stage: Loading) -> None:
        choice = self._loading.wanted
        if stage.stage in _DOWNLOADS and choice is not None and choice != self._looked_for and not choice.server:
            self._looked_for = choice
            self._task.run(lambda: _stand_in(choice))
        elif stage.stage not in _DOWNLOADS:
            self._forget()

    @Slot()
    def _changed(self) -> None:
        if self._loading.wanted != self._looked_for:
            self._forget()
        if self._put_off and not self._loading.busy:
            name, self._put_off = self._put_off, ""
            if self._loading.loaded is not None:  # what took its place is there; else all was cancelled
                self._models.fetch(name)

    def _forget(self) -> None:
        self._task.forget()
        self._looked_for = self._offered = None
        self._window.loading.offer_meanwhile()

    @Slot(object)
    def _offer(self, model: ListedModel | None) -> None:
        self._offered = model
        if model is not None:
            here = tr("It is on this computer; the download goes on in the background.")
            soon = tr("It is downloaded first, which is {size}; the larger one then goes on in the background.")
            tip = here if model.here else soon.format(size=size(model.download_bytes))
            self._window.loading.offer_meanwhile(tr("Use {title} meanwhile").format(title=model.title), tip)


def _name(model: str) -> str:
    from engine.models.names import find_entry  # looks at the machine for what is the default on it

    entry = find_entry(model)
    return entry.name if entry is not None else model


def _stand_in(choice: ModelChoice) -> ListedModel | None:
    from engine.session.ladder import stand_in  # looks at the disk, and takes a moment to import

    return None if choice.model == SCRIPTED else stand_in(choice)
