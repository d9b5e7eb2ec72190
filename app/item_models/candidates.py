"""The candidates of a run as a list: one row each, in words, with an icon's name and a tone beside them.

The tab strip and, past ten, the list with its filter stand on the same rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.item_models.badge import Badge, badge, in_words
from app.item_models.best_reason import BestReason, best_reason
from app.item_models.rate import Rate, average
from app.ui.words import tr
from engine.session.candidate import Candidate
from engine.session.run import Run

Index = QModelIndex | QPersistentModelIndex


class CandidateRole(IntEnum):
    NUMBER = Qt.ItemDataRole.UserRole + 1
    WORD = Qt.ItemDataRole.UserRole + 2
    NOTE = Qt.ItemDataRole.UserRole + 3
    ICON = Qt.ItemDataRole.UserRole + 4
    TONE = Qt.ItemDataRole.UserRole + 5
    BEST = Qt.ItemDataRole.UserRole + 6


@dataclass(frozen=True)
class Appearance:
    """What there is to see of a candidate outside its page, and the same in a sentence."""

    badge: Badge
    words: str


class CandidatesModel(QAbstractListModel):
    """Rows are candidates by number. ``show`` takes a run, ``touch`` says which of them changed, ``flush`` tells the
    views.
    """

    def __init__(self, parent: QObject | None = None):
        super().__init__(parent)
        self._run: Run | None = None
        self._numbers: list[int] = []
        self._rates: dict[int, Rate] = {}  # of those that have begun
        self._touched: set[int] = set()
        self._looks: dict[int, Appearance] = {}  # as the views know them
        self.best_reason = BestReason()
        self._tests_changed = False

    @property
    def best(self) -> int:
        """The number of the best candidate so far; 0 while there is none."""
        return self.best_reason.number

    @property
    def run(self) -> Run | None:
        return self._run

    def show(self, run: Run | None) -> None:
        self.beginResetModel()
        self._run = run
        self._numbers = sorted(run.candidates) if run else []
        self._rates = {}
        self.best_reason = best_reason(run) if run else BestReason()
        self._touched = set()
        self._looks = {number: self._look(number) for number in self._numbers}
        self.endResetModel()

    def touch(self, number: int) -> None:
        """Candidate ``number`` has changed."""
        if self._rank():
            self.touch_all()
        self._touched.add(number)

    def begin(self, number: int, at_s: float, tokens: int) -> None:
        """Text of candidate ``number`` has come; only its first counts."""
        if number not in self._rates:
            self._rates[number] = Rate()
            self._rates[number].add(at_s, tokens)
            self._touched.add(number)

    def take_speeds(self, at_s: float) -> None:
        """Every candidate that runs has come this far by now."""
        for number, rate in self._rates.items():
            candidate = self._run.candidates.get(number) if self._run else None
            if candidate is not None and not candidate.ended:
                rate.add(at_s, candidate.tokens)
                self._touched.add(number)

    def flush(self) -> None:
        """Tell the views of every candidate that is new, or was touched and now looks different: painting costs."""
        for number in sorted(self._run.candidates.keys() - self._looks.keys()) if self._run else ():
            self._insert(number)
        there = self._run.candidates.keys() if self._run else ()  # one that never began is away for a moment
        looks = {number: self._look(number) for number in self._touched & self._looks.keys() if number in there}
        changed = sorted(self._numbers.index(number) for number, look in looks.items() if look != self._looks[number])
        self._looks |= looks
        self._touched.clear()
        for first, last in _row_ranges(changed):
            self.dataChanged.emit(self.index(first), self.index(last))

    def touch_all(self) -> None:
        """Any of them may have changed: verdicts came, or the run is over."""
        self._rank()
        self._touched.update(self._numbers)

    def mark_tests(self, changed: bool) -> None:
        """Whether the tests are others now than those that the verdicts are about."""
        if changed != self._tests_changed:
            self._tests_changed = changed
            self.touch_all()

    def is_outdated(self, candidate: Candidate) -> bool:
        """Its verdict is about other tests than those there are now."""
        return self._tests_changed and candidate.report is not None

    def row_of(self, number: int) -> int:
        """Its row, or -1."""
        return self._numbers.index(number) if number in self._numbers else -1

    def candidate(self, row: int) -> Candidate | None:
        if self._run is None or not 0 <= row < len(self._numbers):
            return None
        return self._run.candidates.get(self._numbers[row])

    def badge(self, row: int) -> Badge | None:
        return self._looks[self._numbers[row]].badge if 0 <= row < len(self._numbers) else None

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008, N802
        return 0 if parent.isValid() else len(self._numbers)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        candidate = self.candidate(index.row()) if index.isValid() else None
        if candidate is None:
            return None
        if role == CandidateRole.NUMBER:
            return candidate.number
        if role == CandidateRole.BEST:
            return candidate.number == self.best
        look = self._looks[candidate.number]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            return look.words
        shown = look.badge
        parts = {
            CandidateRole.WORD: shown.word,
            CandidateRole.NOTE: shown.note,
            CandidateRole.ICON: shown.icon,
            CandidateRole.TONE: shown.tone,
        }
        return parts.get(role)  # type: ignore[call-overload]

    def _look(self, number: int) -> Appearance:
        assert self._run is not None
        candidate, best = self._run.candidates[number], number == self.best
        outdated, speed = self.is_outdated(candidate), self._speed(candidate)
        words = in_words(candidate, speed, outdated)
        if best:
            words += ". " + tr("Best so far: {reason}").format(reason=self.best_reason.reason)
        return Appearance(badge(candidate, speed, best, outdated), words)

    def _rank(self) -> bool:
        """Look for the best again; whether it is another one now."""
        before = self.best_reason.number
        self.best_reason = best_reason(self._run) if self._run else BestReason()
        return self.best_reason.number != before

    def _speed(self, candidate: Candidate) -> float | None:
        if candidate.ended:
            return average(candidate.tokens, candidate.started_s, candidate.finished_s)
        rate = self._rates.get(candidate.number)
        return rate.per_second if rate else None

    def _insert(self, number: int) -> None:
        row = sum(known < number for known in self._numbers)
        self.beginInsertRows(QModelIndex(), row, row)
        self._numbers.insert(row, number)
        self._looks[number] = self._look(number)
        self.endInsertRows()


def _row_ranges(rows: list[int]) -> Iterator[tuple[int, int]]:
    """First and last of rows that follow each other; ``rows`` are in order."""
    for _, rows_of_range in groupby(enumerate(rows), key=lambda pair: pair[1] - pair[0]):
        together = [row for _, row in rows_of_range]
        yield together[0], together[-1]
