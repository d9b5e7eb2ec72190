"""Controls for one value each: a number that may be typed freely, a choice from a few."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QComboBox, QLineEdit, QWidget

from app.ui.theme import em
from app.ui.words import tr
from app.widgets.controls import set_tone
from engine.contract import BadRequest
from engine.contract.parameters import Parameter


class NumberField(QLineEdit):
    """A number between ``low`` and ``high``. Whatever is typed stays; what cannot be is marked and said, not changed.

    ``step`` 1 means whole numbers; up and down change the value by it. ``empty`` is what an empty field means, shown
    in its place as ``hint``; without a hint it may not be empty.
    """

    def __init__(
        self,
        name: str,
        tip: str,
        low: float,
        high: float,
        value: float | None,
        step: float = 1,
        width: int = 5,
        hint: str = "",
        parent: QWidget | None = None,
    ):
        super().__init__(parent)
        self._name, self._tip = name, tip
        self._low, self._high, self._step, self._hint = low, high, step, hint
        self.setAccessibleName(name)
        self.setPlaceholderText(hint)
        self.setFixedWidth(width * em())
        self.textChanged.connect(self._judge)
        self.set_value(value)
        self._judge()

    @property
    def complaint(self) -> str:
        """Why the text is no value, as a sentence; empty when it is one."""
        text = self.text().strip().replace(",", ".")
        if not text and self._hint:
            return ""
        kind = tr("a whole number") if self._step == 1 else tr("a number")
        words = tr("{name} must be {kind} from {low} to {high}, not “{text}”.")
        sentence = words.format(
            name=self._name, kind=kind, low=_plain(self._low), high=_plain(self._high), text=self.text()
        )
        try:
            value = int(text) if self._step == 1 else float(text)
        except ValueError:
            return sentence
        return "" if self._low <= value <= self._high else sentence

    def value(self) -> float | None:
        """None when it is empty and may be. Raises BadRequest, with a sentence, for what is no value."""
        if sentence := self.complaint:
            raise BadRequest(sentence)
        text = self.text().strip().replace(",", ".")
        if not text:
            return None
        return int(text) if self._step == 1 else float(text)

    def number(self) -> float:
        """The value of a field that may not be empty."""
        value = self.value()
        assert value is not None, "a field without a hint is never empty"
        return value

    def whole(self) -> int:
        return int(self.number())

    def bound(self, high: float, name: str, tip: str) -> None:
        """From now on values up to ``high`` may stand here, and mean something else."""
        self._high, self._name, self._tip = high, name, tip
        self.setAccessibleName(name)
        self._judge()

    def show_hint(self, hint: str) -> None:
        self._hint = hint
        self.setPlaceholderText(hint)

    def set_value(self, value: float | None) -> None:
        self.setText("" if value is None else _plain(value))
        self.setCursorPosition(0)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        direction = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}.get(Qt.Key(event.key()))
        if direction is None or self.complaint:
            super().keyPressEvent(event)
            return
        value = self.value()
        start = self._low - self._step if value is None else value
        moved = round(start + direction * self._step, 6)
        if self._low <= moved <= self._high:
            self.set_value(moved)

    def _judge(self) -> None:
        sentence = self.complaint
        set_tone(self, "error" if sentence else "")
        self.setToolTip(sentence or self._tip)
        self.setAccessibleDescription(sentence or self._tip)


def number_field(parameter: Parameter[Any], tip: str = "", width: int = 5) -> NumberField:
    """``tip``: in place of the parameter's own help."""
    assert parameter.range is not None
    unit = " " + tr("in {unit}").format(unit=tr(parameter.unit)) if parameter.unit else ""
    value = None if parameter.hint else parameter.default
    hint = tr(parameter.hint) if parameter.hint else ""
    name, (low, high) = tr(parameter.title) + unit, parameter.range.field
    return NumberField(name, tip or tip_of(parameter), low, high, value, parameter.range.step, width, hint)


def tip_of(parameter: Parameter[Any]) -> str:
    """What it does, and what the field's hint stands for."""
    words = tr(parameter.help)
    if not (parameter.hint and parameter.default_words):
        return words
    return f"{words}; {tr(parameter.hint)}: {tr(parameter.default_words)}"


def choice_box(name: str, tip: str, choices: Sequence[tuple[str, str]], width: int) -> QComboBox:
    """``choices``: what is shown, and what it stands for (``currentData``)."""
    box = QComboBox()
    for shown, value in choices:
        box.addItem(shown, value)
    box.setAccessibleName(name)
    box.setToolTip(tip)
    box.setFixedWidth(width * em())
    return box


def choose(box: QComboBox, value: str) -> None:
    """Show the choice that stands for ``value``; one that is not among them is added as it is."""
    index = box.findData(value)
    if index < 0:
        box.addItem(value, value)
        index = box.count() - 1
    box.setCurrentIndex(index)


def _plain(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"
