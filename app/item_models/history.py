"""Earlier runs as a list: one row each, newest first."""

from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.ui.words import tr
from engine.session.journal import HistoryEntry

Index = QModelIndex | QPersistentModelIndex


class HistoryRole(IntEnum):
    ID = Qt.ItemDataRole.UserRole + 1
    NOTE = Qt.ItemDataRole.UserRole + 2


def note(entry: HistoryEntry, now: datetime) -> str:
    """When, and what came of it: "14:03, 2 of 8 pass"; earlier days with their date."""
    began, now = entry.began.astimezone(), now.astimezone()
    when = f"{began:%H:%M}" if began.date() == now.date() else f"{began:%Y-%m-%d %H:%M}"
    if entry.tested:
        result = tr("{passed} of {n} pass").format(passed=entry.passed, n=entry.candidates)
    else:
        result = tr("{finished} of {n} finished").format(finished=entry.finished, n=entry.candidates)
    return f"{when}, {result}"


class HistoryModel(QAbstractListModel):
    """``show`` takes what the journal lists; rows that stay keep their place in the view."""

    def __init__(self, parent: QObject | None = None):
        super().__init__(parent)
        self._entries: list[HistoryEntry] = []

    def show(self, entries: Sequence[HistoryEntry]) -> None:
        if [entry.id for entry in entries] == [entry.id for entry in self._entries]:
            changed = [row for row, entry in enumerate(entries) if entry != self._entries[row]]
            self._entries = list(entries)
            for row in changed:
                self.dataChanged.emit(self.index(row), self.index(row))
            return
        self.beginResetModel()
        self._entries = list(entries)
        self.endResetModel()

    def entry(self, row: int) -> HistoryEntry | None:
        return self._entries[row] if 0 <= row < len(self._entries) else None

    def row_of(self, id: int) -> int:
        """Its row, or -1."""
        return next((row for row, entry in enumerate(self._entries) if entry.id == id), -1)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008, N802
        return 0 if parent.isValid() else len(self._entries)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        entry = self.entry(index.row()) if index.isValid() else None
        if entry is None:
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return entry.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{entry.title}, {note(entry, datetime.now())}"
        if role == HistoryRole.NOTE:
            return note(entry, datetime.now())
        return entry.id if role == HistoryRole.ID else None
