"""Every action by its name: type a few letters, press Enter."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QLineEdit, QVBoxLayout, QWidget

from app.item_models.table import Cell, TableModel
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.controls import label
from app.widgets.result_table import ResultTable

ROWS = 12
_MOVES = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: ROWS, Qt.Key.Key_PageUp: -ROWS}


@dataclass(frozen=True)
class Command:
    """``reason``: why it cannot be done now, or empty."""

    id: str
    text: str
    key: str
    tip: str
    reason: str = ""

    def matches(self, typed: str) -> bool:
        """Every word that was typed begins a word of the name or the tip."""
        words = f"{self.text} {self.tip}".casefold().replace(":", " ").split()
        return all(any(word.startswith(piece) for word in words) for piece in typed.casefold().split())


class PaletteDialog(QDialog):
    """``chosen`` gives the id of the command that was taken; those that cannot be done say why and stay."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, commands: Sequence[Command], parent: QWidget | None = None):
        super().__init__(parent)
        self.setWindowTitle(tr("Command palette"))
        self.setModal(True)
        self._commands = commands
        self._shown: list[Command] = []
        self._typed = QLineEdit()
        self._typed.setAccessibleName(tr("Find an action"))
        self._typed.setPlaceholderText(tr("Type what you want to do"))
        self._model = TableModel((tr("Action"), tr("Key"), tr("What it does")), self)
        self._table = ResultTable(theme, self._model, tr("Actions"))
        self._table.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._table.setWordWrap(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 14, 14, 12)
        column.setSpacing(8)
        column.addWidget(self._typed)
        column.addWidget(self._table, 1)
        column.addWidget(label(tr("Up and Down select, Enter runs, Escape closes."), tone="muted"))
        self._typed.textChanged.connect(self._find)
        self._typed.installEventFilter(self)
        self._table.doubleClicked.connect(lambda _: self._take())
        self.resize(720, 420)
        self._find("")

    @property
    def shown(self) -> list[str]:
        """Ids of the commands that match, in order."""
        return [command.id for command in self._shown]

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            key = Qt.Key(event.key())
            if key in _MOVES:
                self._select(self._table.currentIndex().row() + _MOVES[key])
                return True
            if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._take()
                return True
        return super().eventFilter(watched, event)

    def _find(self, typed: str) -> None:
        """Names that match before tips that do; what cannot be done now comes last."""
        found = [command for command in self._commands if command.matches(typed)]
        start = typed.casefold().strip()
        found.sort(key=lambda command: (bool(command.reason), not command.text.casefold().startswith(start)))
        self._shown = found
        self._model.show([self._row(command) for command in found])
        self._select(0)

    def _row(self, command: Command) -> tuple[Cell, ...]:
        tone = "muted" if command.reason else ""
        return (
            Cell(command.text.rstrip("…"), tone=tone),
            Cell(command.key, tone="muted"),
            Cell(command.reason or command.tip, tone="muted"),
        )

    def _select(self, row: int) -> None:
        if self._shown:
            row = max(0, min(row, len(self._shown) - 1))
            self._table.selectRow(row)
            self._typed.setAccessibleDescription(self._shown[row].text)

    def _take(self) -> None:
        row = self._table.currentIndex().row()
        if 0 <= row < len(self._shown) and not self._shown[row].reason:
            self.accept()
            self.chosen.emit(self._shown[row].id)
