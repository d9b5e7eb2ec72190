"""Two or four candidates at once, as they come."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.item_models.badge import Badge
from app.item_models.candidates import CandidatesModel
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.answer_view import AnswerView
from app.widgets.controls import label, set_tone
from app.widgets.fields import choice_box
from engine.session.candidate import Candidate

COUNTS = (2, 4)


class TileView(QWidget):
    """The candidate in view and its neighbours. ``picked`` names the one whose head was pressed."""

    picked = Signal(int)

    def __init__(self, theme: Theme, model: CandidatesModel, parent: QWidget | None = None):
        super().__init__(parent)
        self._model = model
        self._count = choice_box(
            tr("Tiles"),
            tr("How many candidates are shown at once"),
            [(tr("{n} tiles").format(n=n), str(n)) for n in COUNTS],
            width=8,
        )
        self._tiles = [Tile(theme, place) for place in range(max(COUNTS))]
        grid = QGridLayout()
        grid.setSpacing(8)
        for place, tile in enumerate(self._tiles):
            grid.addWidget(tile, place // 2, place % 2)
            tile.picked.connect(self.picked)
        row = QHBoxLayout()
        row.addWidget(self._count)
        row.addWidget(label(tr("Ctrl+PgDown shows the next ones."), tone="muted"))
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(row)
        column.addLayout(grid, 1)
        self._current: Candidate | None = None
        self._count.activated.connect(lambda _: self._fill())
        self.setFocusProxy(self._tiles[0].code)

    @property
    def count(self) -> int:
        return int(self._count.currentData())

    def show_count(self, count: int) -> None:
        """2 or 4."""
        self._count.setCurrentIndex(COUNTS.index(count))
        self._fill()

    def show_candidate(self, candidate: Candidate) -> None:
        self._current = candidate
        self._fill()

    def shown(self) -> list[int]:
        """Numbers of the candidates in the tiles, in order."""
        return [tile.number for tile in self._tiles if not tile.isHidden()]

    def _fill(self) -> None:
        if self._current is None:
            return
        row = self._model.row_of(self._current.number)
        first = row - row % self.count
        for place, tile in enumerate(self._tiles):
            candidate = self._model.candidate(first + place) if place < self.count else None
            tile.setVisible(candidate is not None)
            if candidate is not None:
                shown, words = self._model.badge(first + place), self._model.index(first + place).data()
                assert shown is not None
                tile.show_candidate(candidate, shown, words, candidate is self._current)


class Tile(QFrame):
    """A head in words and the code below it."""

    picked = Signal(int)

    def __init__(self, theme: Theme, place: int, parent: QWidget | None = None):
        super().__init__(parent)
        self._theme, self.number = theme, 0
        self._head_shown: tuple[Badge, str, bool] | None = None
        self._head = QPushButton()
        self._head.setProperty("kind", "tile")
        self._head.setAutoDefault(False)
        self._head.setAccessibleName(tr("Candidate in tile {n}").format(n=place + 1))
        self._head.clicked.connect(lambda: self.picked.emit(self.number))
        theme.changed.connect(self._paint_icon)
        self.code = AnswerView(theme, tr("Code in tile {n}").format(n=place + 1))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self._head)
        column.addWidget(self.code, 1)

    def show_candidate(self, candidate: Candidate, shown: Badge, words: str, current: bool) -> None:
        self.number = candidate.number
        if (shown, words, current) != self._head_shown:
            self._head_shown = shown, words, current
            self._head.setText("   ".join(part for part in (str(candidate.number), shown.word, shown.note) if part))
            self._head.setToolTip(words)
            self._head.setAccessibleName(words)
            set_tone(self._head, "current" if current else "")
            self._paint_icon()
        self.code.follow(candidate)

    def _paint_icon(self) -> None:
        if self._head_shown is not None:
            self._head.setIcon(self._theme.icon(self._head_shown[0].icon, self._head_shown[0].tone))
