"""Whether the chosen models fit into the memory that is free now, shown beside the model box before they are loaded."""

from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Slot

from app.controllers.model_load import ModelLoadController
from app.item_models.model_rows import size
from app.system.engines import SCRIPTED
from app.system.tasks import Task
from app.ui.words import tr
from app.widgets.main_window import MainWindow
from engine.contract import BasslineError, ModelChoice

REST_MS = 300  # after the last change; also keeps it away from the window's first moments


@dataclass(frozen=True)
class MemoryFit:
    """``words`` empty: nothing is known without fetching the model. What is to be fetched comes first in them."""

    words: str = ""
    fits: bool = True


def memory_fit(choice: ModelChoice, candidates: int) -> MemoryFit:
    """By the memory plan. Raises BasslineError when there is no such model or its files cannot be read."""
    from engine.models.library import listed  # these look at devices and files, and take a moment to import
    from engine.models.names import resolve
    from engine.models.preparation import plan, shape_of

    parts = [resolve(name, precision=choice.precision) for name in (choice.model, choice.draft) if name]
    shapes = [shape_of(named) for named in parts]
    if shapes[0] is None:
        return MemoryFit()
    draft = (parts[1], shapes[1]) if len(parts) > 1 and shapes[1] is not None else None
    memory = plan(parts[0], shapes[0], draft)
    words = memory.sentence(candidates)
    wanted = {named.entry.name for named in parts if named.entry is not None}
    fetched = sum(row.download_bytes for row in listed(precision=choice.precision) if row.name in wanted)
    if fetched:
        words = tr("{size} to fetch; {fit}").format(size=size(fetched), fit=words)
    return MemoryFit(words[:1].upper() + words[1:], memory.largest_width(most=1) > 0)


class MemoryFitController(QObject):
    """Looks on a thread of its own, a moment after model, draft or number of candidates have changed."""

    def __init__(self, window: MainWindow, loading: ModelLoadController, parent: QObject | None = None):
        super().__init__(parent)
        self._window, self._loading = window, loading
        self._task = Task(self)
        self._task.done.connect(self._show)
        self._task.failed.connect(self._clear)
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self._look)
        window.bar.model_chosen.connect(self.look_soon)
        window.bar.count_changed.connect(self.look_soon)
        loading.changed.connect(self.look_soon)

    @Slot()
    def look_soon(self) -> None:
        self._rest.start()

    def close(self) -> None:
        self._rest.stop()
        self._task.forget()

    def _look(self) -> None:
        """What is loaded already is not asked: its own memory is no longer free."""
        self._task.forget()
        try:
            settings = self._window.bar.settings()
            choice = settings.choice
        except BasslineError:
            self._clear()
            return
        if choice.server or choice.model == SCRIPTED or self._loading.has(choice) or self._loading.preloading:
            self._clear()
        else:
            self._task.run(lambda: memory_fit(choice, settings.candidates))

    @Slot(object)
    def _show(self, fit: MemoryFit) -> None:
        self._window.bar.show_fit(fit.words, fit.fits)

    @Slot()
    def _clear(self) -> None:
        self._window.bar.show_fit("")
