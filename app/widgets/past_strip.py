"""Says that the run in view is one from the history, and how to go on with it."""

from PySide6.QtCore import Signal, SignalInstance
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QWidget

from app.ui.words import tr
from app.widgets.controls import BoundedLabel


class PastStrip(QFrame):
    """Hidden until ``show_run``. ``use_again``: prompt, tests and settings of that run are wanted once more; ``go_on``:
    the run itself is to go on."""

    use_again = Signal()
    go_on = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setProperty("kind", "notice")
        self.setAccessibleName(tr("Run from the history"))
        self._words = BoundedLabel()
        self._again = self._button(
            tr("Use again"),
            tr("Put its prompt, tests and settings into the window; it can then be changed"),
            self.use_again,
        )
        self._on = self._button(
            tr("Go on"),
            tr("Finish what was cut off, with the same seeds; then go on until one passes if it was to"),
            self.go_on,
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 1, 6, 1)
        row.setSpacing(12)
        row.addWidget(self._words, 1)
        row.addWidget(self._on)
        row.addWidget(self._again)
        self.hide()

    def show_run(self, title: str, when: str, can_go_on: bool = False) -> None:
        words = tr("From the history, {when}: “{title}”. It can be read, copied and saved.")
        self._words.setText(words.format(when=when, title=title.rstrip(".")))
        self._on.setVisible(can_go_on)
        self.show()

    def _button(self, text: str, tip: str, do: SignalInstance) -> QPushButton:
        button = QPushButton(text)
        button.setAccessibleName(text)
        button.setAutoDefault(False)
        button.setToolTip(tip)
        button.clicked.connect(lambda _=False: do.emit())
        return button
