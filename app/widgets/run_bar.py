"""Above everything: which model, how many, how they are drawn, and the three buttons."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from PySide6.QtCore import QRegularExpression, Qt, Signal
from PySide6.QtGui import QAction, QRegularExpressionValidator
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLineEdit,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.theme import Theme, em
from app.widgets.controls import ActionButton, label
from engine.contract import ModelChoice, Request, Sampling
from engine.contract.request import MAX_CANDIDATES, PRECISIONS

Spin = TypeVar("Spin", bound=QAbstractSpinBox)
QUICK = (1, 4, 8, 16, 32)
MAX_TOKENS = 131_072


@dataclass(frozen=True)
class Settings:
    """What the bar says. ``seed`` None: a new one for every run; ``time_budget_s`` None: no limit."""

    model: str = ModelChoice.model
    precision: str = ModelChoice.precision
    candidates: int = Request.candidates
    sampling: Sampling = field(default_factory=Sampling)
    time_budget_s: float | None = None
    seed: int | None = None

    @property
    def choice(self) -> ModelChoice:
        """Raises BadRequest when no model is named."""
        return ModelChoice(model=self.model, precision=self.precision)


class RunBar(QWidget):
    """``model_chosen`` is said when another model or precision was picked."""

    model_chosen = Signal()

    def __init__(
        self,
        theme: Theme,
        actions: Mapping[str, QAction],
        models: list[tuple[str, str]],
        parent: QWidget | None = None,
    ):
        """``models``: title and name of each, in order."""
        super().__init__(parent)
        self.setAccessibleName("Run settings")
        self._model = self._model_box(models)
        self._precision = QComboBox()
        self._precision.addItems(PRECISIONS)
        _name(self._precision, "Precision", "Numbers the weights are kept in")
        self._precision.currentIndexChanged.connect(lambda _: self.model_chosen.emit())
        self._candidates = _spin("Number of candidates", 1, MAX_CANDIDATES, Request.candidates, 5)
        self._quick = QButtonGroup(self)
        self._temperature = _decimal("Temperature", 0.0, 10.0, Sampling.temperature, 0.1, "0 is greedy: all alike")
        self._top_p = _decimal("Top-p", 0.01, 1.0, Sampling.top_p, 0.05, "Keep the likeliest tokens up to this share")
        self._max_tokens = _spin("Max tokens", 1, MAX_TOKENS, Sampling.max_tokens, 6)
        self._max_tokens.setToolTip("A candidate is cut after this many tokens")
        self._budget = _spin("Time budget in seconds", 0, 86_400, 0, 5)
        self._budget.setSpecialValueText("off")
        self._budget.setSuffix(" s")
        self._budget.setToolTip("What is not finished by then is cut")
        self._seed = QLineEdit()
        self._seed.setPlaceholderText("auto")
        self._seed.setValidator(QRegularExpressionValidator(QRegularExpression(r"\d{0,18}"), self))
        self._seed.setFixedWidth(7 * em())
        _name(self._seed, "Seed", "The same seed gives the same candidates; empty draws a new one for every run")

        top, below = QHBoxLayout(), QHBoxLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(top)
        column.addLayout(below)
        self._pair(top, "&Model", self._model)
        top.addSpacing(14)
        caption = label("Ca&ndidates")
        caption.setBuddy(self._candidates)
        top.addWidget(caption)
        top.addLayout(self._quick_row())
        top.addWidget(self._candidates)
        top.addStretch(1)
        for id, kind in (("generate", "primary"), ("stop", ""), ("run_tests", "")):
            icon = {"generate": "generate", "stop": "stop", "run_tests": "run-tests"}[id]
            top.addWidget(ActionButton(theme, actions[id], icon, kind))
        for text, control in (
            ("Temperat&ure", self._temperature),
            ("Top-&p", self._top_p),
            ("Ma&x tokens", self._max_tokens),
            ("Time &budget", self._budget),
            ("See&d", self._seed),
            ("Prec&ision", self._precision),
        ):
            self._pair(below, text, control)
            below.addSpacing(3)
        below.addStretch(1)
        below.addWidget(_check(actions["test_as_finished"]))

    def settings(self) -> Settings:
        """Raises BadRequest when a value cannot be."""
        return Settings(
            self.model,
            self._precision.currentText(),
            self._candidates.value(),
            Sampling(self._temperature.value(), self._top_p.value(), max_tokens=self._max_tokens.value()),
            self._budget.value() or None,
            int(self._seed.text()) if self._seed.text() else None,
        )

    def apply(self, settings: Settings) -> None:
        self.choose_model(settings.model)
        self._precision.setCurrentText(settings.precision)
        self._candidates.setValue(settings.candidates)
        self._temperature.setValue(settings.sampling.temperature)
        self._top_p.setValue(settings.sampling.top_p)
        self._max_tokens.setValue(settings.sampling.max_tokens)
        self._budget.setValue(round(settings.time_budget_s or 0))
        self._seed.setText("" if settings.seed is None else str(settings.seed))

    @property
    def model(self) -> str:
        """A catalog name, or whatever was typed: a folder, a file, a hub id."""
        text, index = self._model.currentText().strip(), self._model.currentIndex()
        return self._model.itemData(index) if index >= 0 and text == self._model.itemText(index) else text

    @property
    def model_title(self) -> str:
        return self._model.currentText().strip()

    def choose_model(self, name: str) -> None:
        index = self._model.findData(name)
        if index >= 0:
            self._model.setCurrentIndex(index)
        else:
            self._model.setCurrentIndex(-1)
            self._model.setEditText(name)

    def _model_box(self, models: list[tuple[str, str]]) -> QComboBox:
        box = QComboBox()
        box.setEditable(True)
        box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        for title, name in models:
            box.addItem(title, name)
        box.setFixedWidth(20 * em())
        _name(box, "Model", "Choose a model, or type a folder, a GGUF file or a hub name")
        edit = QLineEdit()
        box.setLineEdit(edit)
        edit.setAccessibleName("Model name")
        edit.editingFinished.connect(self.model_chosen)
        box.activated.connect(lambda _: self.model_chosen.emit())
        return box

    def _quick_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(3)
        for count in QUICK:
            button = QToolButton()
            button.setText(str(count))
            button.setCheckable(True)
            button.setProperty("kind", "segment")
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            _name(button, f"{count} candidates" if count > 1 else "1 candidate")
            self._quick.addButton(button, count)
            row.addWidget(button)
        self._quick.idClicked.connect(self._candidates.setValue)
        self._candidates.valueChanged.connect(self._mark_quick)
        self._mark_quick(self._candidates.value())
        return row

    def _mark_quick(self, count: int) -> None:
        self._quick.setExclusive(False)
        for button in self._quick.buttons():
            button.setChecked(self._quick.id(button) == count)
        self._quick.setExclusive(count in QUICK)

    def _pair(self, row: QHBoxLayout, text: str, control: QWidget) -> None:
        caption = label(text)
        caption.setBuddy(control)
        row.addWidget(caption)
        row.addWidget(control)


def _name(widget: QWidget, name: str, tip: str = "") -> None:
    widget.setAccessibleName(name)
    widget.setToolTip(tip or name)


def _spin(name: str, low: int, high: int, value: int, width: int) -> QSpinBox:
    box = QSpinBox()
    box.setRange(low, high)
    box.setValue(value)
    return _plain(box, name, width)


def _decimal(name: str, low: float, high: float, value: float, step: float, tip: str) -> QDoubleSpinBox:
    box = QDoubleSpinBox()
    box.setRange(low, high)
    box.setSingleStep(step)
    box.setDecimals(2)
    box.setValue(value)
    box = _plain(box, name, 5)
    box.setToolTip(tip)
    return box


def _plain(box: Spin, name: str, width: int) -> Spin:
    box.setFixedWidth(width * em())
    box.lineEdit().setTextMargins(5, 0, 5, 0)
    _name(box, name)
    return box


def _check(action: QAction) -> QCheckBox:
    box = QCheckBox(action.text())
    _name(box, action.text(), action.toolTip())
    box.setChecked(action.isChecked())
    box.toggled.connect(action.setChecked)
    action.toggled.connect(box.setChecked)
    return box
