"""The candidates of a run as a list: one row each, in words, with an icon's name and a tone beside them.

The tab strip and, past ten, the list with its filter stand on the same rows.
"""

from enum import IntEnum
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.item_models.badge import Badge, badge, in_words
from app.item_models.rate import Rate, average
from app.item_models.standing import Standing, standing
from app.words import tr
from engine.session.run import Candidate, Run

Index = QModelIndex | QPersistentModelIndex


class Role(IntEnum):
    NUMBER = Qt.ItemDataRole.UserRole + 1
    WORD = Qt.ItemDataRole.UserRole + 2
    NOTE = Qt.ItemDataRole.UserRole + 3
    ICON = Qt.ItemDataRole.UserRole + 4
    TONE = Qt.ItemDataRole.UserRole + 5
    BEST = Qt.ItemDataRole.UserRole + 6


class CandidatesModel(QAbstractListModel):
    """Rows are candidates by number. ``show`` takes a run, ``touch`` says which of them changed."""

    def __init__(self, parent: QObject | None = None):
        super().__init__(parent)
        self._run: Run | None = None
        self._numbers: list[int] = []
        self._rates: dict[int, Rate] = {}
        self._touched: set[int] = set()
        self._badges: dict[int, Badge] = {}  # as the views know them
        self.standing = Standing()
        self._tests_changed = False

    @property
    def best(self) -> int:
        """The number of the best candidate so far; 0 while there is none."""
        return self.standing.number

    @property
    def run(self) -> Run | None:
        return self._run

    def show(self, run: Run | None) -> None:
        self.beginResetModel()
        self._run = run
        self._numbers = sorted(run.candidates) if run else []
        self._rates = {number: Rate() for number in self._numbers}
        self.standing = standing(run) if run else Standing()
        self._touched, self._badges = set(), {}
        self.endResetModel()

    def touch(self, number: int, at_s: float | None = None, tokens: int = 0) -> None:
        """Candidate ``number`` has changed; with a time, its tokens so far count towards its speed."""
        if self._run is None or number not in self._run.candidates:
            return
        if number not in self._rates:
            self._insert(number)
        if at_s is not None:
            self._rates[number].add(at_s, tokens)
        elif self._rank():
            self.touch_all()
            return
        self._touched.add(number)

    def flush(self) -> None:
        """Tell the views of every candidate that is new, or was touched and now looks different.

        Once per tick: painting costs.
        """
        for number in sorted(self._run.candidates.keys() - self._rates.keys()) if self._run else ():
            self._insert(number)
        touched, self._touched = self._touched, set()
        for number in sorted(touched & self._rates.keys()):
            row = self._numbers.index(number)
            shown = self.badge(row)
            if shown is not None and shown != self._badges.get(number):
                self._badges[number] = shown
                self.dataChanged.emit(self.index(row), self.index(row))

    def touch_all(self) -> None:
        """Any of them may have changed: verdicts came, or the run is over."""
        self._rank()
        self._touched, self._badges = set(), {}
        if self._numbers:
            self.dataChanged.emit(self.index(0), self.index(len(self._numbers) - 1))

    def mark_tests(self, changed: bool) -> None:
        """Whether the tests are others now than those that the verdicts are about."""
        if changed != self._tests_changed:
            self._tests_changed = changed
            self.touch_all()

    def row_of(self, number: int) -> int:
        """Its row, or -1."""
        return self._numbers.index(number) if number in self._numbers else -1

    def candidate(self, row: int) -> Candidate | None:
        if self._run is None or not 0 <= row < len(self._numbers):
            return None
        return self._run.candidates[self._numbers[row]]

    def badge(self, row: int) -> Badge | None:
        candidate = self.candidate(row)
        if candidate is None:
            return None
        outdated = self._outdated(candidate)
        return badge(candidate, self._speed(candidate), candidate.number == self.best, outdated)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008, N802
        return 0 if parent.isValid() else len(self._numbers)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        candidate = self.candidate(index.row()) if index.isValid() else None
        if candidate is None:
            return None
        if role == Role.NUMBER:
            return candidate.number
        if role == Role.BEST:
            return candidate.number == self.best
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            words = in_words(candidate, self._speed(candidate), self._outdated(candidate))
            best = tr("Best so far: {reason}").format(reason=self.standing.reason)
            return f"{words}. {best}" if candidate.number == self.best else words
        if role in (Role.WORD, Role.NOTE, Role.ICON, Role.TONE):
            shown = self.badge(index.row())
            assert shown is not None
            return {Role.WORD: shown.word, Role.NOTE: shown.note, Role.ICON: shown.icon}.get(Role(role), shown.tone)
        return None

    def _outdated(self, candidate: Candidate) -> bool:
        return self._tests_changed and candidate.report is not None

    def _rank(self) -> bool:
        """Look for the best anew; whether it is another one now."""
        before = self.standing.number
        self.standing = standing(self._run) if self._run else Standing()
        return self.standing.number != before

    def _speed(self, candidate: Candidate) -> float | None:
        if candidate.ended:
            return average(candidate.tokens, candidate.started_s, candidate.finished_s)
        return self._rates[candidate.number].per_second

    def _insert(self, number: int) -> None:
        row = sum(known < number for known in self._numbers)
        self.beginInsertRows(QModelIndex(), row, row)
        self._numbers.insert(row, number)
        self._rates[number] = Rate()
        self.endInsertRows()
