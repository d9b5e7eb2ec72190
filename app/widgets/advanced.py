"""The panel of advanced settings, hidden until the user opens it."""

from collections.abc import Iterable
from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox, QFrame, QGridLayout, QLineEdit, QWidget

from app.controllers.run_settings import RunSettings
from app.ui.theme import em
from app.ui.words import tr
from app.widgets.controls import label
from app.widgets.fields import NumberField, choice_box, choose
from engine.contract import Sampling, Speculation
from engine.contract.request import MAX_CANDIDATES, PRECISIONS
from engine.sampler.names import DRAFTERS, POLICIES, RULES

WIDE = 14


class AdvancedPanel(QFrame):
    """``model_changed``: another draft model or precision, which is another load."""

    model_changed = Signal()

    def __init__(self, models: list[tuple[str, str]], parent: QWidget | None = None):
        """``models``: title and name of what can be a draft model."""
        super().__init__(parent)
        self.setProperty("kind", "notice")
        self.setAccessibleName(tr("Advanced settings"))
        default, none = Sampling(), tr("off")
        self._top_p = NumberField(
            tr("Top-p"), tr("Keep the likeliest tokens up to this share"), 0.01, 1, default.top_p, 0.05
        )
        self._top_k = NumberField(
            tr("Top-k"), tr("Keep this many of the likeliest tokens"), 0, 1_000_000, None, 1, hint=none
        )
        self._min_p = NumberField(
            tr("Min-p"),
            tr("Drop tokens below this share of the likeliest one's probability"),
            0,
            1,
            None,
            0.05,
            hint=none,
        )
        self._repetition = NumberField(
            tr("Repetition penalty"), tr("Above 1 makes tokens that were seen less likely"), 0.01, 10, 1, 0.05
        )
        self._presence = NumberField(
            tr("Presence penalty"), tr("Taken off every token that the answer has used"), -2, 2, 0, 0.1
        )
        self._frequency = NumberField(
            tr("Frequency penalty"), tr("Taken off a token once per time that the answer has used it"), -2, 2, 0, 0.1
        )
        self._code_stop = choice_box(
            tr("Stop at"),
            tr("Where a candidate may stop before the model ends it"),
            (
                (tr("the model's end"), ""),
                (tr("first code block"), "block"),
                (tr("first function"), "function"),
            ),
            WIDE,
        )
        self._draft = self._draft_box(models)
        self._drafter = choice_box(
            tr("Drafter"),
            tr("What drafts tokens ahead. The text stays the same; only the speed changes"),
            _titled(
                DRAFTERS.forms,
                {
                    "auto": tr("automatic"),
                    "suffix": tr("suffix: repeats earlier text"),
                    "speculator": tr("speculator: predicts from the model's hidden states"),
                    "draft-model": tr("the draft model"),
                    "hybrid": tr("both: suffix, then draft model"),
                    "none": tr("none: regular decoding"),
                },
            ),
            WIDE,
        )
        self._policy = choice_box(
            tr("Draft length"),
            tr("How many tokens to guess ahead"),
            (
                *_titled(
                    (form for form in POLICIES.forms if form != "fixed:N"),
                    {
                        "auto": tr("automatic"),
                        "goodput": tr("goodput: by measured cost"),
                        "bass": tr("BASS: by acceptance"),
                    },
                ),
                *((tr("always {n}").format(n=n), f"fixed:{n}") for n in (2, 4, 8)),
            ),
            WIDE,
        )
        self._acceptance = choice_box(
            tr("Acceptance"),
            tr("Coupled: a seed gives the same text whatever the drafter. Rejection: the classic rule"),
            [(rule, rule) for rule in RULES.forms],
            WIDE,
        )
        self._precision = choice_box(
            tr("Weight precision"), tr("Number format of the weights"), [(each, each) for each in PRECISIONS], WIDE
        )
        self._goal = choice_box(
            tr("Optimize for"),
            tr("Decides how many candidates are decoded at a time. Automatic: the first right one if there are tests"),
            ((tr("automatic"), ""), (tr("all candidates"), "all"), (tr("the first right one"), "first")),
            WIDE,
        )
        self._width = NumberField(
            tr("Batch size"),
            tr("Candidates decoded together; empty: chosen by measured cost"),
            1,
            MAX_CANDIDATES,
            None,
            hint=tr("auto"),
        )
        self._system = QLineEdit()
        self._system.setAccessibleName(tr("System prompt"))
        self._system.setToolTip(tr("Instructions to a chat model before the prompt; empty: the model's own"))
        self._system.setPlaceholderText(tr("the model's own"))
        self._lay_out()
        for box in (self._draft, self._precision):
            box.activated.connect(lambda _: self.model_changed.emit())
        self.apply(RunSettings())

    def complete(self, settings: RunSettings) -> RunSettings:
        """``settings`` with what is chosen here. Raises BadRequest."""
        sampling = replace(
            settings.sampling,
            top_p=self._top_p.number(),
            top_k=int(self._top_k.value() or 0),
            min_p=self._min_p.value() or 0.0,
            repetition_penalty=self._repetition.number(),
            presence_penalty=self._presence.number(),
            frequency_penalty=self._frequency.number(),
            code_stop=self._code_stop.currentData(),
        )
        return replace(
            settings,
            draft=self.draft,
            precision=self._precision.currentData(),
            sampling=sampling,
            speculation=Speculation(
                self._drafter.currentData(), self._policy.currentData(), self._acceptance.currentData()
            ),
            goal=self._goal.currentData(),
            width=int(self._width.value() or 0),
            system=self._system.text(),
        )

    def apply(self, settings: RunSettings) -> None:
        sampling, speculation = settings.sampling, settings.speculation
        self._top_p.set_value(sampling.top_p)
        self._top_k.set_value(sampling.top_k or None)
        self._min_p.set_value(sampling.min_p or None)
        self._repetition.set_value(sampling.repetition_penalty)
        self._presence.set_value(sampling.presence_penalty)
        self._frequency.set_value(sampling.frequency_penalty)
        for box, value in (
            (self._code_stop, sampling.code_stop),
            (self._drafter, speculation.drafter),
            (self._policy, speculation.policy),
            (self._acceptance, speculation.acceptance),
            (self._precision, settings.precision),
            (self._goal, settings.goal),
            (self._draft, settings.draft),
        ):
            choose(box, value)
        self._width.set_value(settings.width or None)
        self._system.setText(settings.system)
        self._system.setCursorPosition(0)

    @property
    def draft(self) -> str:
        """A name, or what was typed; empty for none."""
        text, index = self._draft.currentText().strip(), self._draft.currentIndex()
        return self._draft.itemData(index) if index >= 0 and text == self._draft.itemText(index) else text

    def without_drafts(self) -> None:
        """Regular decoding from the next run on."""
        choose(self._drafter, "none")

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

    def _draft_box(self, models: list[tuple[str, str]]) -> QComboBox:
        box = choice_box(
            tr("Draft model"),
            tr("A small model with the same vocabulary that guesses ahead; name, folder, GGUF file or hub name"),
            [(tr("none"), ""), *models],
            WIDE,
        )
        box.setEditable(True)
        box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        edit = QLineEdit()
        box.setLineEdit(edit)
        edit.setAccessibleName(tr("Draft model's name"))
        edit.editingFinished.connect(self.model_changed)
        return box

    def _lay_out(self) -> None:
        rows: tuple[tuple[tuple[str, QWidget], ...], ...] = (
            (
                (tr("Top-p"), self._top_p),
                (tr("Repetition penalty"), self._repetition),
                (tr("Draft model"), self._draft),
                (tr("Weight precision"), self._precision),
            ),
            (
                (tr("Top-k"), self._top_k),
                (tr("Presence penalty"), self._presence),
                (tr("Drafter"), self._drafter),
                (tr("Acceptance"), self._acceptance),
            ),
            (
                (tr("Min-p"), self._min_p),
                (tr("Frequency penalty"), self._frequency),
                (tr("Draft length"), self._policy),
                (tr("Optimize for"), self._goal),
            ),
            ((tr("Batch size"), self._width), (tr("System prompt"), self._system), (tr("Stop at"), self._code_stop)),
        )
        grid = QGridLayout(self)
        grid.setContentsMargins(12, 8, 12, 8)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(6)
        for row, pairs in enumerate(rows):
            for column, (text, field) in enumerate(pairs):
                caption = label(text, tone="muted")
                caption.setBuddy(field)
                if field is self._code_stop:  # behind the system prompt, which takes two places
                    column += 1
                grid.addWidget(caption, row, 3 * column)
                grid.addWidget(field, row, 3 * column + 1, 1, 4 if field is self._system else 1)
                grid.setColumnMinimumWidth(3 * column + 2, em() // 2)
        grid.setColumnStretch(12, 1)


def _titled(names: Iterable[str], titles: dict[str, str]) -> list[tuple[str, str]]:
    """What each name is called here, and the name; one without a title is its own."""
    return [(titles.get(name, name), name) for name in names]
