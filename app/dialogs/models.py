"""The models of this machine: what there is, what fits, and fetching, choosing and removing them."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.item_models.model_rows import HEADERS, about, row
from app.item_models.table import TableModel
from app.ui.theme import Theme, em
from app.ui.words import tr
from app.widgets.controls import label, set_tone
from app.widgets.loading_strip import in_words
from app.widgets.result_table import ResultTable
from engine.contract import Loading
from engine.models.library import ListedModel


class ModelsDialog(QDialog):
    """Modeless. Its signals name a model; whoever answers calls the ``show`` methods."""

    use_wanted = Signal(str)
    draft_wanted = Signal(str)
    fetch_wanted = Signal(str)
    pause_wanted = Signal()
    remove_wanted = Signal(object)  # Listed

    def __init__(self, parent: QWidget, theme: Theme):
        super().__init__(parent)
        self.setWindowTitle(tr("Models"))
        self._models: list[ListedModel] = []
        self._drafting: dict[str, str] = {}  # name -> why it cannot draft for the model in the bar
        self._loaded = self._fetching = ""
        self._rows = TableModel([tr(header) for header in HEADERS], self)
        self._table = ResultTable(theme, self._rows, tr("Models"))
        self._about = label(tone="muted", wrap=True)
        self._other = QLineEdit()
        self._other.setAccessibleName(tr("Another model"))
        self._other.setPlaceholderText(tr("another model: owner/name on the hub, a folder, or a GGUF file"))
        self._browse = _button(tr("Choose a file…"), tr("A GGUF file on this computer"))
        self._use = _button(tr("Use"), "")
        self._draft = _button(tr("Use as draft"), "")
        self._fetch = _button(tr("Download"), "")
        self._pause = _button(tr("Pause"), "")
        self._remove = _button(tr("Remove…"), "")
        self._close = _button(tr("Close"), tr("Close; a download continues"))
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(tr("Download progress"))
        self._message = label(wrap=True)
        self._lay_out()
        self._connect()
        self._choose()

    # What is shown.

    def show_models(self, models: Sequence[ListedModel], drafting: dict[str, str], loaded: str) -> None:
        """``drafting``: for each name why it cannot draft, or an empty sentence; ``loaded``: the one in memory."""
        name = self._name()
        self._models, self._drafting, self._loaded = list(models), drafting, loaded
        self._rows.show([row(model, model.name == loaded) for model in models])
        names = [model.name for model in models]
        self._table.selectRow(names.index(name) if name in names else 0)
        self._choose()

    def show_progress(self, name: str, stage: Loading | None) -> None:
        """How far the download of ``name`` has come; an empty name: there is none."""
        self._fetching = name
        self._bar.setVisible(bool(name))
        if stage is not None:
            self._bar.setRange(0, 1000 if stage.total else 0)
            self._bar.setValue(1000 * stage.done // stage.total if stage.total else 0)
            self.say(f"{name}: {in_words(stage)}")
        elif name:
            self._bar.setRange(0, 0)
            self.say(tr("{name}: looking for a source…").format(name=name))
        self._choose()

    def say(self, words: str, tone: str = "muted") -> None:
        self._message.setText(words)
        set_tone(self._message, tone)

    # How it is built.

    def _lay_out(self) -> None:
        column, other, doing, below = QVBoxLayout(self), QHBoxLayout(), QHBoxLayout(), QHBoxLayout()
        column.setContentsMargins(16, 16, 16, 14)
        column.setSpacing(8)
        column.addWidget(self._table, 1)
        column.addWidget(self._about)
        other.addWidget(self._other, 1)
        other.addWidget(self._browse)
        column.addLayout(other)
        for button in (self._use, self._draft, self._fetch, self._pause, self._remove):
            doing.addWidget(button)
        doing.addStretch(1)
        column.addLayout(doing)
        column.addWidget(self._bar)
        below.addWidget(self._message, 1)
        below.addWidget(self._close)
        column.addLayout(below)
        self._bar.hide()
        self.resize(94 * em(), 48 * em())

    def _connect(self) -> None:
        self._table.selectionModel().currentChanged.connect(lambda *_: self._choose())
        self._table.doubleClicked.connect(lambda _: self._use.click())
        self._other.textChanged.connect(lambda _: self._choose())
        self._browse.clicked.connect(self._ask_file)
        self._use.clicked.connect(lambda: self.use_wanted.emit(self._name()))
        self._draft.clicked.connect(lambda: self.draft_wanted.emit(self._name()))
        self._fetch.clicked.connect(lambda: self.fetch_wanted.emit(self._name()))
        self._pause.clicked.connect(self.pause_wanted)
        self._remove.clicked.connect(self._remove_this)
        self._close.clicked.connect(self.accept)

    # What can be done.

    def _name(self) -> str:
        """What was typed, else the model in the chosen row, else nothing."""
        model = self._model()
        return self._other.text().strip() or (model.name if model else "")

    def _model(self) -> ListedModel | None:
        place = self._table.currentIndex().row()
        typed = bool(self._other.text().strip())
        return self._models[place] if not typed and 0 <= place < len(self._models) else None

    def _choose(self) -> None:
        """Grey what makes no sense for the model that is chosen; the tooltip says why."""
        name, model = self._name(), self._model()
        nothing = "" if name else tr("Choose a model first.")
        here = tr("It is on this computer already.") if model and model.here else ""
        busy = tr("{name} is being downloaded.").format(name=self._fetching) if self._fetching else ""
        kept = "" if model and model.removable else tr("There are no files of it to remove.")
        loaded = tr("It is loaded now; choose another model first.") if name and name == self._loaded else ""
        for button, tip, why in (
            (self._use, tr("Use it for the next run; it is downloaded first if needed"), nothing),
            (self._draft, tr("Use it to draft tokens for the model"), nothing or self._drafting.get(name, "")),
            (self._fetch, tr("Download it now, or resume a paused download"), nothing or busy or here),
            (
                self._pause,
                tr("Stop the download; what has arrived is kept"),
                "" if busy else tr("Nothing is being downloaded."),
            ),
            (self._remove, tr("Delete its files from this computer"), nothing or kept or loaded or busy),
        ):
            button.setEnabled(not why)
            button.setToolTip(why or tip)
        reason = self._drafting.get(name, "")
        words = about(model) if model else tr("Its size and fit are shown beside the model box once it is used.")
        self._about.setText(words + (f"\n{tr('Not as a draft:')} {reason}" if reason else ""))

    def _remove_this(self) -> None:
        if (model := self._model()) is not None:
            self.remove_wanted.emit(model)

    def _ask_file(self) -> None:
        dialog = QFileDialog(self, tr("Choose a model"), "", tr("GGUF files (*.gguf);;All files (*)"))
        dialog.fileSelected.connect(self._other.setText)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()


def _button(text: str, tip: str) -> QPushButton:
    button = QPushButton(text)
    button.setAccessibleName(text.rstrip("…"))
    button.setToolTip(tip)
    button.setAutoDefault(False)
    return button
