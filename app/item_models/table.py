"""A read-only table of short texts: test results, details."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class Cell:
    """``icon`` and ``tone`` are names that the view looks up in the theme."""

    text: str
    icon: str = ""
    tone: str = ""


IconRole = Qt.ItemDataRole.UserRole + 1
ToneRole = Qt.ItemDataRole.UserRole + 2


class TableModel(QAbstractTableModel):
    """Rows of cells below ``headers``; every row has as many cells as there are headers."""

    def __init__(self, headers: Sequence[str], parent: QObject | None = None):
        super().__init__(parent)
        self._headers = tuple(headers)
        self._rows: list[tuple[Cell, ...]] = []

    def show(self, rows: Sequence[tuple[Cell, ...]]) -> bool:
        """Whether they are others than before; else the selection stays."""
        if list(rows) == self._rows:
            return False
        self.beginResetModel()
        self._rows = list(rows)
        self.endResetModel()
        return True

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008, N802
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008, N802
        return 0 if parent.isValid() else len(self._headers)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        cell = self._rows[index.row()][index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return cell.text
        return {IconRole: cell.icon, ToneRole: cell.tone}.get(role)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._headers[section]
        return None
