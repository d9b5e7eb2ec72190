"""Which candidates wait, and how many may be decoded at a time."""

from collections.abc import Iterable, Sequence

from engine.sampler.row import Row
from engine.sampler.width import Widths


class Admission:
    """Candidates in the order of their numbers; those that were sent back come first.

    ``most``: rows that the memory holds at a time, once it has turned out not to hold all.
    """

    def __init__(self, candidates: Iterable[int], widths: Widths, most: int | None = None):
        self.waiting = list(candidates)
        self._widths, self.most = widths, most
        self._first_wave: frozenset[int] = frozenset()

    def admit(self, active: Sequence[Row]) -> list[int]:
        """Those that may join the active rows now."""
        free = self._free(active)
        joining, self.waiting = self.waiting[:free], self.waiting[free:]
        self._first_wave = self._first_wave or frozenset(joining)
        return joining

    @property
    def together(self) -> int:
        """Rows that are ever decoded at a time, of those that wait."""
        width = min(max(self._widths.first, self._widths.then), len(self.waiting))
        return width if self.most is None else min(width, self.most)

    def narrow(self, most: int) -> None:
        """The memory holds no more than ``most`` at a time."""
        self.most = most

    def would_admit(self, active: Sequence[Row]) -> bool:
        return bool(self.waiting) and self._free(active) > 0

    def add(self, candidates: Iterable[int], widths: Widths) -> None:
        """More were asked for, and ``widths`` chosen again. What the memory does not hold, it holds no better now."""
        self.waiting += candidates
        self._widths = widths

    def drop(self, candidate: int) -> bool:
        """Forget one that waits; False if it does not."""
        if candidate not in self.waiting:
            return False
        self.waiting.remove(candidate)
        return True

    def send_back(self, rows: Sequence[Row], most: int) -> None:
        """The memory does not hold these rows together: no more than ``most`` at a time from now on."""
        self.waiting = [row.candidate for row in rows] + self.waiting
        self.narrow(most)

    def _free(self, active: Sequence[Row]) -> int:
        return max(0, self._width(active) - len(active))

    def _width(self, active: Sequence[Row]) -> int:
        alone = not self._first_wave or any(row.candidate in self._first_wave for row in active)
        width = self._widths.first if alone else self._widths.then
        return width if self.most is None else min(width, self.most)
