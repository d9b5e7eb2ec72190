"""One question about what candidates do, and the answers to choose from: it lies over the page and moves nothing."""

from functools import partial

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.controls import ElidedLabel, label
from app.widgets.flow import FlowLayout
from engine.elicitation.questions import Question

_MARGIN = 6  # to the edges of what it lies over
_LONGEST = 36  # characters of a choice on its button


class QuestionStrip(QFrame):
    """Hidden until ``ask``. While it has the focus, 1 to 4 choose, 0 says that it does not matter, Esc takes it away.

    It never takes the focus by itself. ``over``: the widget along whose lower edge it lies.
    """

    chosen = Signal(int)  # the place of a choice
    written = Signal(str)  # what is right instead
    indifferent = Signal()
    dismissed = Signal()

    def __init__(self, theme: Theme, over: QWidget):
        super().__init__(over)
        self._theme = theme
        self.setProperty("kind", "notice")
        self.setProperty("tone", "warning")
        self.setAutoFillBackground(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._sentence = ElidedLabel()
        self._choices: list[QPushButton] = []
        self._other = QLineEdit()
        self._other.setPlaceholderText(tr("something else"))
        self._other.setAccessibleName(tr("Something else is right"))
        self._other.returnPressed.connect(lambda: self.written.emit(self._other.text()))
        self._indifferent = self._button(tr("0  does not matter"))
        self._indifferent.clicked.connect(self.indifferent)
        self._dismiss = QToolButton()
        self._dismiss.setAccessibleName(tr("Dismiss the question"))
        self._dismiss.setToolTip(tr("Dismiss"))
        self._dismiss.setAutoRaise(True)
        self._dismiss.clicked.connect(self.dismissed)
        self._wrong = label(tone="failed", wrap=True)
        self._wrong.hide()
        self._lay_out()
        theme.changed.connect(self._paint)
        self._paint()
        over.installEventFilter(self)
        self.hide()

    @property
    def sentence(self) -> str:
        return self._sentence.full_text

    @property
    def choices(self) -> list[str]:
        return [button.toolTip() for button in self._choices]

    def ask(self, question: Question) -> None:
        """Shows it, where the focus is stays as it was."""
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
        self.show()
        self.place()
        self.raise_()

    def refuse(self, sentence: str) -> None:
        """What was written is no answer, and why."""
        self._wrong.setText(sentence)
        self._wrong.show()
        self.place()

    def place(self) -> None:
        """Along the lower edge, as high as its words need."""
        over = self.parentWidget()
        if over is None:
            return
        width = over.width() - 2 * _MARGIN
        height = self._column.heightForWidth(width) if self._column.hasHeightForWidth() else self.sizeHint().height()
        self.setGeometry(_MARGIN, over.height() - height - _MARGIN, width, height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        if event.type() == QEvent.Type.Resize and not self.isHidden():
            self.place()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        text = event.text()
        if event.key() == Qt.Key.Key_Escape:
            self.dismissed.emit()
        elif text == "0":
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
        first.addWidget(self._dismiss)
        self._row = FlowLayout()
        self._other.setMinimumWidth(150)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(10, 5, 6, 5)
        column.setSpacing(4)
        column.addLayout(first)
        column.addLayout(self._row)
        column.addWidget(self._wrong)

    def _paint(self) -> None:
        self._dismiss.setIcon(self._theme.icon("close", "muted"))
