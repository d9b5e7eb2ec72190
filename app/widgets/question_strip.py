"""One question about what candidates do, and the answers to choose from: it lies over the page and moves nothing."""

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QWidget

from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.controls import ElidedLabel, label
from app.widgets.flow import FlowLayout
from app.widgets.overlay import Overlay
from engine.elicitation.questions import Question

_LONGEST = 36  # characters of a choice on its button


class QuestionStrip(Overlay):
    """Hidden until ``ask``. While it has the focus, 1 to 4 choose, 0 says that it does not matter, Esc dismisses it."""

    chosen = Signal(int)  # the place of a choice
    written = Signal(str)  # what is right instead
    indifferent = Signal()

    def __init__(self, theme: Theme, over: QWidget):
        super().__init__(theme, over, tr("Dismiss the question"), tone="warning")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._sentence = ElidedLabel()
        self._choices: list[QPushButton] = []
        self._other = QLineEdit()
        self._other.setPlaceholderText(tr("something else"))
        self._other.setAccessibleName(tr("Something else is right"))
        self._other.returnPressed.connect(lambda: self.written.emit(self._other.text()))
        self._indifferent = self._button(tr("0  does not matter"))
        self._indifferent.clicked.connect(self.indifferent)
        self._wrong = label(tone="failed", wrap=True)
        self._wrong.hide()
        self._lay_out()

    @property
    def sentence(self) -> str:
        return self._sentence.full_text

    @property
    def choices(self) -> list[str]:
        return [button.toolTip() for button in self._choices]

    def ask(self, question: Question) -> None:
        """Shows it; where the focus is stays as it was."""
        self._wrong.hide()
        self._other.clear()
        words = tr("{question} (F9, then a number)").format(question=question.sentence)
        self._sentence.set_full_text(words)
        self.setAccessibleName(words)
        for button in self._choices:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._choices = []
        for place, choice in enumerate(question.choices):
            text = choice.text if len(choice.text) <= _LONGEST else f"{choice.text[: _LONGEST - 1]}…"
            button = self._button(f"{place + 1}  {text}")
            button.setToolTip(choice.text)
            button.clicked.connect(partial(self.chosen.emit, place))
            self._choices.append(button)
        for kept in (self._indifferent, self._other):
            self._row.removeWidget(kept)
        parts: list[QWidget] = [*self._choices, self._indifferent, self._other]
        for part in parts:
            self._row.addWidget(part)
            part.show()
        self.appear()

    def refuse(self, sentence: str) -> None:
        """What was written is no answer, and why."""
        self._wrong.setText(sentence)
        self._wrong.show()
        self.place()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        text = event.text()
        if text == "0":
            self.indifferent.emit()
        elif text.isdigit() and 1 <= int(text) <= len(self._choices):
            self.chosen.emit(int(text) - 1)
        else:
            super().keyPressEvent(event)

    def _button(self, text: str) -> QPushButton:
        button = QPushButton(text.replace("&", "&&"))
        button.setProperty("kind", "link")
        button.setAutoDefault(False)
        button.setAccessibleName(text)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button

    def _lay_out(self) -> None:
        first = QHBoxLayout()
        first.setSpacing(8)
        first.addWidget(self._sentence, 1)
        first.addWidget(self.dismiss)
        self._row = FlowLayout()
        self._other.setMinimumWidth(150)
        self.column.addLayout(first)
        self.column.addLayout(self._row)
        self.column.addWidget(self._wrong)
