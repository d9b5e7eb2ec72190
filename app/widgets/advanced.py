"""What most people never change: closed until it is asked for. A field for every parameter that the table puts here."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox, QFrame, QGridLayout, QLineEdit, QWidget

from app.controllers.run_settings import RunSettings
from app.ui.theme import em
from app.ui.words import tr
from app.widgets.controls import label
from app.widgets.fields import NumberField, choice_box, choose, number_field, tip_of
from engine.contract.parameters import DRAFT, DRAFTER, PRECISION, SAMPLING, SPECULATION, Parameter, advanced
from engine.sampler.names import REGISTRIES

WIDE = 14
COLUMNS = 4
# Where each of them stands; one that is not named here comes after these.
ROWS = (
    ("top_p", "repetition_penalty", "draft", "precision"),
    ("top_k", "presence_penalty", "drafter", "acceptance"),
    ("min_p", "frequency_penalty", "policy", "goal"),
    ("width", "system", "code_stop"),
)
_PLACES = {"system": 2}  # columns that a text takes
_TITLES = {  # of names that are registered; one without a title is its own
    "drafter": {
        "auto": "automatic",
        "suffix": "suffix: repeats earlier text",
        "speculator": "speculator: predicts from the model's hidden states",
        "draft-model": "the draft model",
        "hybrid": "both: suffix, then draft model",
        "none": "none: regular decoding",
    },
    "policy": {"auto": "automatic", "goodput": "goodput: by measured cost", "bass": "BASS: by acceptance"},
}
_LENGTHS = (2, 4, 8)  # of fixed:N


class AdvancedPanel(QFrame):
    """``model_changed``: another draft model or precision, which is another load."""

    model_changed = Signal()

    def __init__(self, models: list[tuple[str, str]], parent: QWidget | None = None):
        """``models``: title and name of what can be a draft model."""
        super().__init__(parent)
        self.setProperty("kind", "notice")
        self.setAccessibleName(tr("Advanced settings"))
        self._draft = self._draft_box(models)
        self._parameters = advanced()
        self.fields = {parameter.name: self._field(parameter) for parameter in self._parameters}
        self._lay_out()
        for name in (DRAFT.name, PRECISION.name):
            self._box(name).activated.connect(lambda _: self.model_changed.emit())
        self.apply(RunSettings())

    def complete(self, settings: RunSettings) -> RunSettings:
        """``settings`` with what is chosen here. Raises BadRequest."""
        parts: dict[str, dict[str, Any]] = {}
        for parameter in self._parameters:
            parts.setdefault(parameter.part, {})[parameter.name] = self._value(parameter)
        sampling = replace(settings.sampling, **parts.pop(SAMPLING, {}))
        speculation = replace(settings.speculation, **parts.pop(SPECULATION, {}))
        rest = {name: value for values in parts.values() for name, value in values.items()}
        return replace(settings, sampling=sampling, speculation=speculation, **rest)

    def apply(self, settings: RunSettings) -> None:
        carriers = {SAMPLING: settings.sampling, SPECULATION: settings.speculation}
        for parameter in self._parameters:
            value = getattr(carriers.get(parameter.part, settings), parameter.name)
            match self.fields[parameter.name]:
                case NumberField() as field:
                    field.set_value(None if parameter.hint and value == parameter.default else value)
                case QComboBox() as box:
                    choose(box, value)
                case QLineEdit() as line:
                    line.setText(value)
                    line.setCursorPosition(0)

    @property
    def draft(self) -> str:
        """A name, or what was typed; empty for none."""
        text, index = self._draft.currentText().strip(), self._draft.currentIndex()
        return self._draft.itemData(index) if index >= 0 and text == self._draft.itemText(index) else text

    def without_drafts(self) -> None:
        """Regular decoding from the next run on."""
        choose(self._box(DRAFTER.name), "none")

    def offer_drafts(self, models: list[tuple[str, str, str]]) -> None:
        """Title and name of each, and why it cannot draft: then it is greyed, with that sentence. What is chosen stays.

        An empty sentence: it can, as far as anybody knows.
        """
        chosen, rows = self.draft, self._draft.model()
        assert isinstance(rows, QStandardItemModel)
        self._draft.clear()
        self._draft.addItem(tr("none"), "")
        for title, name, why in models:
            self._draft.addItem(title, name)
            rows.item(rows.rowCount() - 1).setEnabled(not why)
            rows.item(rows.rowCount() - 1).setToolTip(why)
        self._draft.view().setMinimumWidth(self._draft.view().sizeHintForColumn(0) + em())
        choose(self._draft, chosen)

    def choose_draft(self, name: str) -> None:
        choose(self._draft, name)

    def _field(self, parameter: Parameter[Any]) -> QWidget:
        if parameter.name == DRAFT.name:
            return self._draft
        if parameter.range is not None:
            return number_field(parameter)
        if choices := list(_choices(parameter)):
            return choice_box(tr(parameter.title), tip_of(parameter), choices, WIDE)
        line = QLineEdit()
        line.setAccessibleName(tr(parameter.title))
        line.setToolTip(tr(parameter.help))
        line.setPlaceholderText(tr(parameter.hint) if parameter.hint else "")
        return line

    def _value(self, parameter: Parameter[Any]) -> Any:
        match self.fields[parameter.name]:
            case NumberField() as field:
                value = field.value()
                return parameter.default if value is None else value
            case QComboBox() as box:
                return self.draft if box is self._draft else box.currentData()
            case QLineEdit() as line:
                return line.text()

    def _box(self, name: str) -> QComboBox:
        box = self.fields[name]
        assert isinstance(box, QComboBox)
        return box

    def _draft_box(self, models: list[tuple[str, str]]) -> QComboBox:
        box = choice_box(tr(DRAFT.title), tr(DRAFT.help), [(tr("none"), ""), *models], WIDE)
        box.setEditable(True)
        box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        edit = QLineEdit()
        box.setLineEdit(edit)
        edit.setAccessibleName(tr("Draft model's name"))
        edit.editingFinished.connect(self.model_changed)
        return box

    def _lay_out(self) -> None:
        titles = {parameter.name: parameter.title for parameter in self._parameters}
        placed = [name for row in ROWS for name in row]
        more = [name for name in titles if name not in placed]
        grid = QGridLayout(self)
        grid.setContentsMargins(12, 8, 12, 8)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(6)
        for row, names in enumerate((*ROWS, *(more[at : at + COLUMNS] for at in range(0, len(more), COLUMNS)))):
            column = 0
            for name in names:
                field, places = self.fields[name], _PLACES.get(name, 1)
                caption = label(tr(titles[name]), tone="muted")
                caption.setBuddy(field)
                grid.addWidget(caption, row, 3 * column)
                grid.addWidget(field, row, 3 * column + 1, 1, 3 * places - 2)
                grid.setColumnMinimumWidth(3 * column + 2, em() // 2)
                column += places
        grid.setColumnStretch(3 * COLUMNS, 1)


def _choices(parameter: Parameter[Any]) -> Iterator[tuple[str, str]]:
    """What is shown, and what it stands for; none where anything may be typed."""
    if parameter.choices and parameter.hint:
        yield tr(parameter.hint), ""
    for value, title in parameter.choices:
        yield tr(title), value
    registry, titles = REGISTRIES.get(parameter.name), _TITLES.get(parameter.name, {})
    for form in registry.forms if registry is not None else ():
        if form == "fixed:N":
            yield from ((tr("always {n}").format(n=n), f"fixed:{n}") for n in _LENGTHS)
        else:
            yield (tr(titles[form]) if form in titles else form), form
