"""One sentence about what went wrong, with what can be done about it."""

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QWidget

from app.clipboard import copy_text
from app.dialogs.report import show_report
from app.theme import Theme
from app.widgets.controls import label, set_tone


class Notice(QFrame):
    """Hidden until ``say``. ``tone``: error or warning; told by a sign and a word as well as by the border."""

    def __init__(self, theme: Theme, parent: QWidget | None = None):
        super().__init__(parent)
        self._theme, self._details, self._tone = theme, "", "error"
        self._do: Callable[[], None] | None = None
        self.setProperty("kind", "notice")
        self.setAccessibleName("Message")
        self._sign = label()
        self._sentence = label(wrap=True)
        self._action = self._button("Do", self._act)
        self._show_details = self._button("Details", self._open_details)
        self._copy = self._button("Copy report", self._copy_report)
        self._dismiss = QToolButton()
        self._dismiss.setAccessibleName("Dismiss message")
        self._dismiss.setToolTip("Dismiss")
        self._dismiss.setAutoRaise(True)
        self._dismiss.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 5, 6, 5)
        row.setSpacing(8)
        row.addWidget(self._sign)
        row.addWidget(self._sentence, 1)
        for button in (self._action, self._show_details, self._copy, self._dismiss):
            row.addWidget(button)
        theme.changed.connect(self._paint)
        self._paint()
        self.hide()

    @property
    def sentence(self) -> str:
        return self._sentence.text()

    def say(
        self,
        sentence: str,
        details: str = "",
        tone: str = "error",
        action: str = "",
        do: Callable[[], None] | None = None,
    ) -> None:
        self._details, self._tone, self._do = details, tone, do
        self._sentence.setText(sentence)
        self._sentence.setAccessibleName(f"{tone.capitalize()}: {sentence}")
        self._action.setText(action)
        self._action.setAccessibleName(action)
        self._action.setVisible(bool(action))
        self._show_details.setVisible(bool(details))
        self._copy.setVisible(tone == "error")
        set_tone(self, tone)
        self._paint()
        self.show()

    def _button(self, text: str, do: Callable[[], None]) -> QPushButton:
        button = QPushButton(text)
        button.setProperty("kind", "link")
        button.setAutoDefault(False)
        button.setAccessibleName(text)
        button.clicked.connect(do)
        return button

    def _act(self) -> None:
        self.hide()
        if self._do is not None:
            self._do()

    def _open_details(self) -> None:
        show_report(self.window(), self.sentence, self._details)

    def _copy_report(self) -> None:
        copy_text(f"{self.sentence}\n\n{self._details}".rstrip() + "\n")

    def _paint(self) -> None:
        tone = {"error": "failed", "warning": "warning"}[self._tone]
        self._sign.setPixmap(self._theme.pixmap("failed", tone, 16, self.devicePixelRatio()))
        self._sign.setAccessibleName(self._tone.capitalize())
        self._dismiss.setIcon(self._theme.icon("close", "muted"))
