"""The candidates of a run as a list: one row each, in words, with an icon's name and a tone beside them.

The tab strip and, past ten, the list with its filter stand on the same rows.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.item_models.rate import Rate, average
from app.item_models.standing import Standing, standing
from engine.session.run import Candidate, Run

Index = QModelIndex | QPersistentModelIndex


class Role(IntEnum):
    NUMBER = Qt.ItemDataRole.UserRole + 1
    WORD = Qt.ItemDataRole.UserRole + 2
    NOTE = Qt.ItemDataRole.UserRole + 3
    ICON = Qt.ItemDataRole.UserRole + 4
    TONE = Qt.ItemDataRole.UserRole + 5
    BEST = Qt.ItemDataRole.UserRole + 6


@dataclass(frozen=True)
class Badge:
    """``word`` is the state, ``note`` what else fits below it; ``icon`` tells the state by its shape."""

    word: str
    note: str
    icon: str
    tone: str


_STATES = {
    "queued": ("queued", "queued", "muted"),
    "running": ("running", "running", "running"),
    "done": ("finished", "done", "text"),
    "cut": ("cut off", "cut", "warning"),
    "stopped": ("stopped", "stopped", "muted"),
    "failed": ("failed", "failed", "failed"),
}
_TESTS = {
    "queued": ("waits for test", "tests-running", "muted"),
    "running": ("testing", "tests-running", "running"),
    "passed": ("passed", "passed", "passed"),
    "failed": ("failed", "tests-failed", "failed"),
    "timed out": ("timed out", "tests-error", "failed"),
    "killed": ("killed", "tests-error", "failed"),
    "tampered": ("tampered", "tests-error", "failed"),
    "needs consent": ("needs consent", "tests-error", "warning"),
    "error": ("test error", "tests-error", "warning"),
}


def badge(candidate: Candidate, per_second: float | None) -> Badge:
    """A candidate in two short lines: what became of it, and how fast or like which it is."""
    speed = f"{per_second:.0f} tok/s" if per_second is not None else ""
    if candidate.test_state in _TESTS:
        word, icon, tone = _TESTS[candidate.test_state]
        if candidate.report is not None and candidate.report.verdict == "pass-soft":
            word, icon, tone = "soft pass", "soft-pass", "warning"
        word = f"{word}{_count(candidate)}"
    else:
        word, icon, tone = _STATES[candidate.state]
    note = f"same as {candidate.group}" if candidate.same_as is not None else speed
    return Badge(word, note, icon, tone)


def _count(candidate: Candidate) -> str:
    """Briefly, since it stands in a tab: how many passed, or how many of all failed."""
    if candidate.test_state == "running" and candidate.tests_total:
        return f" {candidate.tests_done}/{candidate.tests_total}"
    report = candidate.report
    if report is None or not report.tests:
        return ""
    counts = {"passed": f" {report.passed}/{len(report.tests)}", "failed": f" {report.failed} of {len(report.tests)}"}
    return counts.get(candidate.test_state, "")


def in_words(candidate: Candidate, per_second: float | None) -> str:
    """The whole row as a sentence, for screen readers and tooltips."""
    parts = [f"Candidate {candidate.number}", _STATES[candidate.state][0], f"{candidate.tokens} tokens"]
    if per_second is not None:
        parts.append(f"{per_second:.0f} tokens per second")
    if candidate.test_state != "not run":
        parts.append(f"tests {candidate.tests_label}")
    if candidate.same_as is not None:
        parts.append(f"{candidate.same_as.reason} as candidate {candidate.same_as.number}")
    return ", ".join(parts)


class CandidatesModel(QAbstractListModel):
    """Rows are candidates by number. ``show`` takes a run, ``touch`` says which of them changed."""

    def __init__(self, parent: QObject | None = None):
        super().__init__(parent)
        self._run: Run | None = None
        self._numbers: list[int] = []
        self._rates: dict[int, Rate] = {}
        self.standing = Standing()

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
        index = self.index(self._numbers.index(number))
        self.dataChanged.emit(index, index)

    def touch_all(self) -> None:
        """Any of them may have changed: verdicts came, or the run is over."""
        self._rank()
        if self._numbers:
            self.dataChanged.emit(self.index(0), self.index(len(self._numbers) - 1))

    def row_of(self, number: int) -> int:
        """Its row, or -1."""
        return self._numbers.index(number) if number in self._numbers else -1

    def candidate(self, row: int) -> Candidate | None:
        if self._run is None or not 0 <= row < len(self._numbers):
            return None
        return self._run.candidates[self._numbers[row]]

    def badge(self, row: int) -> Badge | None:
        candidate = self.candidate(row)
        return badge(candidate, self._speed(candidate)) if candidate else None

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
            words = in_words(candidate, self._speed(candidate))
            return f"{words}. Best so far: {self.standing.reason}" if candidate.number == self.best else words
        if role in (Role.WORD, Role.NOTE, Role.ICON, Role.TONE):
            shown = badge(candidate, self._speed(candidate))
            return {Role.WORD: shown.word, Role.NOTE: shown.note, Role.ICON: shown.icon}.get(Role(role), shown.tone)
        return None

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
