"""What an empty window offers: three examples that fill prompt and tests, and a way to try without a model."""

import tomllib
from dataclasses import dataclass
from functools import cache

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.ui.theme import RESOURCES, Theme, em
from app.ui.words import tr
from app.widgets.controls import label


@dataclass(frozen=True)
class Example:
    title: str
    summary: str
    prompt: str
    tests: str


@cache
def examples() -> tuple[Example, ...]:
    """The files of resources/examples, by name."""
    files = sorted((RESOURCES / "examples").glob("*.toml"))
    return tuple(Example(**tomllib.loads(file.read_text("utf-8"))) for file in files)


class StartPage(QWidget):
    """``chosen`` gives an Example; ``demo_chosen`` asks for the recorded run."""

    chosen = Signal(object)
    demo_chosen = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None):
        super().__init__(parent)
        self.setAccessibleName(tr("Start"))
        column = QVBoxLayout(self)
        column.setContentsMargins(32, 24, 32, 24)
        column.setSpacing(6)
        column.addStretch(2)
        column.addWidget(label(tr("Several answers at once; your tests pick"), role="title", wrap=True))
        column.addWidget(
            label(
                tr(
                    "Type what the code should do, and tests that it must pass. Generate writes candidates side by "
                    "side; the first one that finishes can be used while the others still run."
                ),
                tone="muted",
                wrap=True,
            )
        )
        column.addSpacing(14)
        grid = QGridLayout()
        grid.setSpacing(12)
        for place, example in enumerate(examples()):
            card = Card(example.title, example.summary)
            card.clicked.connect(lambda _=False, chosen=example: self.chosen.emit(chosen))
            grid.addWidget(card, place // 2, place % 2)
        demo = Card(
            tr("Try it without a model"), tr("Plays a recorded run: streaming, tests, saving. Nothing to download.")
        )
        demo.clicked.connect(self.demo_chosen)
        grid.addWidget(demo, len(examples()) // 2, len(examples()) % 2)
        column.addLayout(grid)
        column.addStretch(3)


class Card(QPushButton):
    """A button with a title and a line below it."""

    def __init__(self, title: str, summary: str, parent: QWidget | None = None):
        super().__init__(parent)
        self.setProperty("kind", "card")
        self.setAutoDefault(False)
        self.setAccessibleName(title)
        self.setAccessibleDescription(summary)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._heading, self._summary = label(title, role="heading"), label(summary, tone="muted", wrap=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        column.setSpacing(4)
        for part in (self._heading, self._summary):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            column.addWidget(part)
        column.addStretch(1)

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(18 * em(), self._height(2))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        return QSize(12 * em(), self._height(2))

    def _height(self, lines: int) -> int:
        return _line(self._heading) + lines * _line(self._summary) + 4 + 24 + 4


def _line(text: QLabel) -> int:
    return text.fontMetrics().lineSpacing()
