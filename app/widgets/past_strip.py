"""Says that the run in view is one from the history, and how to go on with it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QWidget

from app.ui.words import tr
from app.widgets.controls import BoundedLabel


class PastStrip(QFrame):
    """Hidden until ``show_run``. ``use_again``: prompt, tests and settings of that run are wanted once more."""

    use_again = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setProperty("kind", "notice")
        self.setAccessibleName(tr("Run from the history"))
        self._words = BoundedLabel()
        self._again = QPushButton(tr("Use again"))
        self._again.setAccessibleName(tr("Use again"))
        self._again.setAutoDefault(False)
        self._again.setToolTip(tr("Put its prompt, tests and settings into the window and go on with its candidates"))
        self._again.clicked.connect(self.use_again)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 1, 6, 1)
        row.setSpacing(12)
        row.addWidget(self._words, 1)
        row.addWidget(self._again)
        self.hide()

    def show_run(self, title: str, when: str) -> None:
        words = tr("From the history, {when}: “{title}”. It can be read, copied and saved.")
        self._words.setText(words.format(when=when, title=title))
        self.show()
