"""The progress of loading a model: the stage in words, a bar, the numbers, and Cancel."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QPushButton, QWidget

from app.ui.words import tr
from app.widgets.controls import label
from engine.contract import Loading

_STAGES = {
    "download": "Downloading",
    "stalled": "Waiting for the server",
    "convert": "Converting once for this machine",
    "weights": "Loading weights",
    "check": "Checking the model",
    "kernels": "Compiling and trying the GPU's kernels",
    "warm-up": "Warming up",
}
SPACING = 12
SHORTEST_BAR = 40


class LoadingStrip(QFrame):
    """Hidden until ``begin``. ``meanwhile``: what was offered instead of waiting is wanted."""

    cancelled = Signal()
    meanwhile = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setProperty("kind", "notice")
        self.setAccessibleName(tr("Loading"))
        self._stage = label()
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(tr("Loading progress"))
        self._numbers = label(tone="muted")
        self._cancel = QPushButton(tr("Cancel"))
        self._cancel.setAccessibleName(tr("Cancel loading"))
        self._cancel.setAutoDefault(False)
        self._cancel.clicked.connect(self._give_up)
        self._meanwhile = QPushButton()
        self._meanwhile.setAccessibleName(tr("Use another model meanwhile"))
        self._meanwhile.setAutoDefault(False)
        self._meanwhile.clicked.connect(self.meanwhile)
        self._meanwhile.hide()
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 1, 6, 1)
        row.setSpacing(SPACING)
        row.addWidget(self._stage)
        row.addWidget(self._bar, 1)
        row.addWidget(self._numbers)
        row.addWidget(self._meanwhile)
        row.addWidget(self._cancel)
        self.hide()

    def begin(self, model: str) -> None:
        self._stage.setText(tr("Loading {model}").format(model=model))
        self._numbers.setText("")
        self._bar.setRange(0, 0)
        self._cancel.setEnabled(True)
        self._cancel.setToolTip(tr("Stop loading"))
        self.show()

    def show_stage(self, event: Loading) -> None:
        """A length that is not known is a bar that moves without saying how far."""
        self._stage.setText(tr(_STAGES.get(event.stage, event.stage.capitalize())))
        self._bar.setRange(0, 1000 if event.total else 0)
        if event.total:
            self._bar.setValue(1000 * event.done // event.total)
        self._numbers.setText(in_numbers(event))
        self._fit()

    def offer_meanwhile(self, words: str = "", tip: str = "") -> None:
        """A button with ``words``; without any it goes away."""
        self._meanwhile.setText(words)
        self._meanwhile.setAccessibleName(words or tr("Use another model meanwhile"))
        self._meanwhile.setToolTip(tip)
        self._meanwhile.setVisible(bool(words))
        self._fit()

    def stopping(self) -> None:
        self._stage.setText(tr("Stopping…"))
        self._cancel.setEnabled(False)
        self._cancel.setToolTip(tr("Stopping…"))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Numbers give way before a button does; the bar's tooltip has them."""
        parts = [self._stage, self._numbers, *(b for b in (self._meanwhile, self._cancel) if not b.isHidden())]
        wanted = sum(part.sizeHint().width() + SPACING for part in parts) + 2 * SPACING + SHORTEST_BAR
        self._numbers.setVisible(wanted <= self.width())
        self._bar.setToolTip(self._numbers.text())

    def _give_up(self) -> None:
        self.stopping()
        self.cancelled.emit()


def in_numbers(event: Loading) -> str:
    """ "77 of 491 MB, 16 %"; other units than bytes by their name."""
    if not event.total:
        return f"{event.done / 1e6:,.0f} MB" if event.unit == "bytes" and event.done else ""
    percent = f"{100 * event.done // event.total} %"
    if event.unit == "bytes":
        return f"{event.done / 1e6:,.0f} of {event.total / 1e6:,.0f} MB, {percent}"
    return f"{event.done:,} of {event.total:,} {event.unit}, {percent}"


def in_words(event: Loading) -> str:
    """The stage and how far it is, briefly: "loading weights, 1 of 2 steps, 50 %"."""
    stage = tr(_STAGES.get(event.stage, event.stage.capitalize()))
    return ", ".join(part for part in (stage[:1].lower() + stage[1:], in_numbers(event)) if part)
