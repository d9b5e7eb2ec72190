"""The bar at the top: which model, how many candidates, how they are sampled, and the three buttons."""

from collections.abc import Mapping

from PySide6.QtCore import QRegularExpression, Qt, Signal
from PySide6.QtGui import QAction, QRegularExpressionValidator
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.controllers.run_settings import RunSettings
from app.ui.theme import Theme, em
from app.ui.words import tr
from app.widgets.advanced import AdvancedPanel
from app.widgets.controls import ActionButton, ElidedLabel, label, set_tone
from app.widgets.fields import number_field, tip_of
from engine.contract import Request, Sampling
from engine.contract.parameters import CANDIDATES, MAX_CANDIDATES, MAX_TOKENS, SEED, TEMPERATURE, TIME_BUDGET
from engine.session.arms import Budget

QUICK = (1, 4, 8, 16, 32)
MOST_UNTIL_PASS = 1000


class RunBar(QWidget):
    """``model_chosen`` is emitted when another model, draft model or precision was picked."""

    model_chosen = Signal()
    count_changed = Signal()

    def __init__(
        self,
        theme: Theme,
        actions: Mapping[str, QAction],
        models: list[tuple[str, str]],
        parent: QWidget | None = None,
    ):
        """``models``: title and name of each, in order."""
        super().__init__(parent)
        self.setAccessibleName(tr("Run settings"))
        self._model = self._model_box(models)
        self._found: list[str] = []
        self._insisted = ""
        self._fit = ElidedLabel()
        self._fit.setAccessibleName(tr("Fit in memory"))
        self._candidates = number_field(CANDIDATES)
        self._quick = QButtonGroup(self)
        self._until_pass = actions["until_pass"]
        self._asked_once = Request.candidates  # how many, when it is not until one passes
        self._temperature = number_field(TEMPERATURE)
        self._max_tokens = number_field(MAX_TOKENS, width=6)
        self._budget = number_field(TIME_BUDGET)
        self._seed = QLineEdit()
        self._seed.setPlaceholderText(tr(SEED.hint))
        self._seed.setValidator(QRegularExpressionValidator(QRegularExpression(r"\d{0,18}"), self))
        self._seed.setFixedWidth(7 * em())
        self._seed.setAccessibleName(tr(SEED.title))
        self._seed.setToolTip(tip_of(SEED))
        self.advanced = AdvancedPanel([(title, name) for title, name in models if name not in ("default", "scripted")])
        self.advanced.model_changed.connect(self.model_chosen)
        self.advanced.hide()
        self._lay_out(theme, actions)

    def settings(self) -> RunSettings:
        """Raises BadRequest when a value cannot be."""
        budget = self._budget.value()
        return self.advanced.complete(
            RunSettings(
                self.model,
                candidates=self._candidates.whole(),
                sampling=Sampling(self._temperature.number(), max_tokens=self._max_tokens.whole()),
                time_budget_s=budget or None,
                seed=int(self._seed.text()) if self._seed.text() else None,
                ignore_fit=bool(self.model) and self.model == self._insisted,
                until_pass=self._until_pass.isChecked(),
            )
        )

    def apply(self, settings: RunSettings) -> None:
        self.choose_model(settings.model)
        self._until_pass.setChecked(settings.until_pass)
        self._candidates.set_value(settings.candidates)
        self._temperature.set_value(settings.sampling.temperature)
        self._max_tokens.set_value(settings.sampling.max_tokens)
        self._budget.set_value(settings.time_budget_s)
        self._seed.setText("" if settings.seed is None else str(settings.seed))
        self.advanced.apply(settings)

    @property
    def model(self) -> str:
        """A catalog name, or whatever was typed: a folder, a file, a hub id, a server's address."""
        text, index = self._model.currentText().strip(), self._model.currentIndex()
        return self._model.itemData(index) if index >= 0 and text == self._model.itemText(index) else text

    @property
    def model_title(self) -> str:
        return self._model.currentText().strip()

    def title_of(self, name: str) -> str:
        """What the model box calls it; the name itself if it is not among them."""
        index = self._model.findData(name)
        return self._model.itemText(index) if index >= 0 else name

    def choose_draft(self, name: str) -> None:
        self.advanced.choose_draft(name)

    def choose_model(self, name: str) -> None:
        index = self._model.findData(name)
        if index >= 0:
            self._model.setCurrentIndex(index)
        else:
            self._model.setCurrentIndex(-1)
            self._model.setEditText(name)
        if (edit := self._model.lineEdit()) is not None:
            edit.setCursorPosition(0)  # a long name is read from its beginning

    def offer_found(self, models: list[tuple[str, str]]) -> None:
        """Models on this disk that nobody told us of, title and name of each, in place of those found before.

        They stand before the last entry, the demo. What is chosen stays.
        """
        chosen = self.model
        for name in self._found:
            self._model.removeItem(self._model.findData(name))
        fresh = [(title, name) for title, name in models if self._model.findData(name) < 0]
        for title, name in fresh:
            self._model.insertItem(self._model.count() - 1, title, name)
        self._found = [name for _, name in fresh]
        self.choose_model(chosen)

    def insist(self) -> None:
        """The chosen model is to be loaded even if the memory plan says that it will not fit."""
        self._insisted = self.model

    def open_models(self) -> None:
        """Show what there is to choose from."""
        self._model.setFocus()
        self._model.showPopup()

    def show_fit(self, words: str, fits: bool = True) -> None:
        """Whether the model fits into memory, in a few words; the tooltip has them whole."""
        self._fit.set_full_text(words)
        set_tone(self._fit, "muted" if fits else "warning")

    def _model_box(self, models: list[tuple[str, str]]) -> QComboBox:
        box = QComboBox()
        box.setEditable(True)
        box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        for title, name in models:
            box.addItem(title, name)
        box.setFixedWidth(20 * em())
        box.setAccessibleName(tr("Model"))
        box.setToolTip(tr("Choose a model, or type a folder, a GGUF file, a hub name or a server's address"))
        edit = QLineEdit()
        box.setLineEdit(edit)
        edit.setAccessibleName(tr("Model name"))
        edit.editingFinished.connect(self.model_chosen)
        box.activated.connect(lambda _: self.model_chosen.emit())
        return box

    def _lay_out(self, theme: Theme, actions: Mapping[str, QAction]) -> None:
        top, below = QHBoxLayout(), QHBoxLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(top)
        column.addLayout(below)
        column.addWidget(self.advanced)
        _pair(top, tr("&Model"), self._model)
        top.addWidget(self._fit, 1)
        _pair(top, tr("Ca&ndidates"), self._candidates, before=self._quick_row())
        top.addSpacing(14)
        for id, icon, kind in (
            ("generate", "generate", "primary"),
            ("stop", "stop", ""),
            ("run_tests", "run-tests", ""),
        ):
            top.addWidget(ActionButton(theme, actions[id], icon, kind))
        for parameter, key, control in (
            (TEMPERATURE, "u", self._temperature),
            (MAX_TOKENS, "x", self._max_tokens),
            (TIME_BUDGET, "b", self._budget),
            (SEED, "d", self._seed),
        ):
            _pair(below, _with_key(tr(parameter.title), key), control)
            below.addSpacing(3)
        below.addWidget(_check(actions["advanced"]))
        below.addStretch(1)
        below.addWidget(_check(actions["stop_at_first_pass"]))
        below.addWidget(_check(actions["test_as_finished"]))
        actions["advanced"].toggled.connect(self.advanced.setVisible)

    def _quick_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(3)
        for count in QUICK:
            button = QToolButton()
            button.setText(str(count))
            button.setCheckable(True)
            button.setProperty("kind", "segment")
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            name = tr("{count} candidates").format(count=count) if count > 1 else tr("1 candidate")
            button.setAccessibleName(name)
            button.setToolTip(name)
            self._quick.addButton(button, count)
            row.addWidget(button)
        row.addWidget(self._until_pass_button())
        self._quick.idClicked.connect(self._choose_count)
        self._candidates.textChanged.connect(self._mark_quick)
        self._candidates.textChanged.connect(lambda _: self.count_changed.emit())
        self._mark_quick()
        return row

    def _until_pass_button(self) -> QToolButton:
        button = QToolButton()
        button.setDefaultAction(self._until_pass)
        button.setProperty("kind", "segment")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setAccessibleName(self._until_pass.text())
        self._until_pass.toggled.connect(self._until_pass_changed)
        return button

    def _choose_count(self, count: int) -> None:
        self._until_pass.setChecked(False)
        self._candidates.set_value(count)

    def _until_pass_changed(self, on: bool) -> None:
        """The box beside says how many at most, and goes back to what it was."""
        if on:
            self._asked_once = Request.candidates if self._candidates.complaint else self._candidates.whole()
            self._candidates.bound(MOST_UNTIL_PASS, tr("Most candidates"), tr("How many answers to generate at most"))
            self._candidates.set_value(Budget.candidates)
        else:
            self._candidates.bound(MAX_CANDIDATES, tr(CANDIDATES.title), tip_of(CANDIDATES))
            self._candidates.set_value(self._asked_once)
        self._budget.show_hint(tr("{n:g}").format(n=Budget.seconds) if on else tr(TIME_BUDGET.hint))
        self._mark_quick()

    def _mark_quick(self) -> None:
        wanted = not self._candidates.complaint and not self._until_pass.isChecked()
        count = self._candidates.whole() if wanted else 0
        self._quick.setExclusive(False)
        for button in self._quick.buttons():
            button.setChecked(self._quick.id(button) == count)
        self._quick.setExclusive(count in QUICK)


def _with_key(title: str, key: str) -> str:
    """``title`` with the letter marked that Alt goes with, if it is in there."""
    at = title.lower().find(key)
    return title if at < 0 else f"{title[:at]}&{title[at:]}"


def _pair(row: QHBoxLayout, text: str, control: QWidget, before: QHBoxLayout | None = None) -> None:
    caption = label(text)
    caption.setBuddy(control)
    row.addWidget(caption)
    if before is not None:
        row.addLayout(before)
    row.addWidget(control)


def _check(action: QAction) -> QCheckBox:
    box = QCheckBox(action.text())
    box.setAccessibleName(action.text())
    box.setToolTip(action.toolTip())
    box.setChecked(action.isChecked())
    box.toggled.connect(action.setChecked)
    action.toggled.connect(box.setChecked)
    return box
