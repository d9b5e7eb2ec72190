"""One sentence about what went wrong, with what can be done about it."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QWidget

from app.dialogs.report import show_report
from app.ui.clipboard import copy_text
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.controls import BoundedLabel, label, set_tone

Choice = tuple[str, Callable[[], None]]  # what a button says and does


class Notice(QFrame):
    """Hidden until ``say``. ``tone``: error or warning; told by a sign and a word as well as by the border."""

    announced = Signal(str)
    left = Signal()  # it has gone, or another message took its place: none of its choices was taken

    def __init__(self, theme: Theme, parent: QWidget | None = None):
        super().__init__(parent)
        self._theme, self._details, self._tone = theme, "", "error"
        self.setProperty("kind", "notice")
        self.setAccessibleName(tr("Message"))
        self._sign = label()
        self._sentence = BoundedLabel()
        self._sentence.shortened.connect(self._offer_whole)
        self._choices: list[QPushButton] = []
        self._show_details = self._button(tr("Details"), self._open_details)
        self._copy = self._button(tr("Copy report"), self._copy_report)
        self._dismiss = QToolButton()
        self._dismiss.setAccessibleName(tr("Dismiss message"))
        self._dismiss.setToolTip(tr("Dismiss"))
        self._dismiss.setAutoRaise(True)
        self._dismiss.clicked.connect(self.leave)
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(10, 1, 6, 1)
        row.setSpacing(8)
        row.addWidget(self._sign)
        row.addWidget(self._sentence, 1)
        for button in (self._show_details, self._copy, self._dismiss):
            row.addWidget(button)
        theme.changed.connect(self._paint)
        self._paint()
        self.hide()

    @property
    def sentence(self) -> str:
        return self._sentence.text()

    def say(self, sentence: str, details: str = "", tone: str = "error", choices: Sequence[Choice] = ()) -> None:
        """``choices``: ways out, as buttons; each of them also takes the message away."""
        if not self.isHidden():
            self.left.emit()
        self._details, self._tone = details, tone
        word = tr("Error") if tone == "error" else tr("Warning")
        self._sentence.setAccessibleName(f"{word}: {sentence}")
        self._offer(choices)
        self._show_details.setVisible(bool(details))
        self._copy.setVisible(tone == "error" and not choices)
        set_tone(self, tone)
        self._sign.setAccessibleName(word)
        self._paint()
        self._sentence.setText("")
        self.show()
        self._row.activate()  # so that the sentence knows its room
        self._sentence.setText(sentence)
        self.announced.emit(f"{word}: {sentence}")

    def leave(self) -> None:
        """Take the message away, if there is one, and none of its choices."""
        if not self.isHidden():
            self.hide()
            self.left.emit()

    def _offer_whole(self) -> None:
        """What does not fit into the message is in its details."""
        self._show_details.show()

    def _offer(self, choices: Sequence[Choice]) -> None:
        for button in self._choices:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._choices = [self._button(text, self.hide) for text, _ in choices]
        for place, (button, (_, do)) in enumerate(zip(self._choices, choices, strict=True), start=2):
            button.clicked.connect(do)  # after hide: what it says next stays
            self._row.insertWidget(place, button)

    def _button(self, text: str, do: Callable[[], None]) -> QPushButton:
        button = QPushButton(text)
        button.setProperty("kind", "link")
        button.setAutoDefault(False)
        button.setAccessibleName(text)
        button.clicked.connect(do)
        return button

    def _open_details(self) -> None:
        show_report(self.window(), self.sentence, self._details)

    def _copy_report(self) -> None:
        copy_text(f"{self.sentence}\n\n{self._details}".rstrip() + "\n")

    def _paint(self) -> None:
        tone = {"error": "failed", "warning": "warning"}[self._tone]
        self._sign.setPixmap(self._theme.pixmap("failed", tone, 16, self.devicePixelRatio()))
        self._dismiss.setIcon(self._theme.icon("close", "muted"))
