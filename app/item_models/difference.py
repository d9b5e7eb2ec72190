"""What differs between two texts, line by line and, in lines that are nearly the same, within them. No Qt."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

SAME, ADDED, REMOVED, CHANGED, FILLER = " ", "+", "-", "~", ""
CLOSE = 0.5  # two lines that share this much of their characters are one line that was changed
Range = tuple[int, int]  # characters, from and to


@dataclass(frozen=True)
class DifferenceLine:
    """``mark``: one of SAME, ADDED, REMOVED, CHANGED, FILLER; ``parts``: which characters of it differ."""

    text: str
    mark: str = SAME
    parts: tuple[Range, ...] = ()


@dataclass(frozen=True)
class Difference:
    """Both texts as rows of equal number, with fillers where one has nothing, and the two in one column."""

    left: tuple[DifferenceLine, ...]
    right: tuple[DifferenceLine, ...]
    unified: tuple[DifferenceLine, ...]

    @property
    def differing(self) -> int:
        """Rows that are not the same on both sides."""
        return sum(line.mark != SAME for line in self.left)


def changed_ranges(lines: Sequence[DifferenceLine]) -> list[int]:
    """The rows at which a stretch of differing lines begins."""
    marks = [line.mark != SAME for line in lines]
    return [row for row, mark in enumerate(marks) if mark and (row == 0 or not marks[row - 1])]


def difference(left: str, right: str) -> Difference:
    """How ``right`` differs from ``left``. Line ends are not compared; copying gives the texts as they are."""
    one, other = left.split("\n"), right.split("\n")
    # Above some thousand lines the exact search takes seconds; common lines then no longer anchor it.
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=len(one) + len(other) > 4000)
    lefts, rights, unified = list[DifferenceLine](), list[DifferenceLine](), list[DifferenceLine]()
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            same = [DifferenceLine(text) for text in one[i1:i2]]
            lefts += same
            rights += same
            unified += same
            continue
        rows = list(_rows(one[i1:i2], other[j1:j2]))
        lefts += [line for line, _ in rows]
        rights += [line for _, line in rows]
        unified += [DifferenceLine(line.text, REMOVED, line.parts) for line, _ in rows if line.mark != FILLER]
        unified += [DifferenceLine(line.text, ADDED, line.parts) for _, line in rows if line.mark != FILLER]
    return Difference(tuple(lefts), tuple(rights), tuple(unified))


def _rows(removed: list[str], added: list[str]) -> Iterator[tuple[DifferenceLine, DifferenceLine]]:
    """Lines that took each other's place, side by side."""
    for old, new in zip_longest(removed, added):
        if old is None:
            yield DifferenceLine("", FILLER), DifferenceLine(new, ADDED)
        elif new is None:
            yield DifferenceLine(old, REMOVED), DifferenceLine("", FILLER)
        else:
            yield _changed(old, new)


def _changed(old: str, new: str) -> tuple[DifferenceLine, DifferenceLine]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False) if len(old) + len(new) < 2000 else None
    if matcher is None or matcher.ratio() < CLOSE:
        return DifferenceLine(old, REMOVED), DifferenceLine(new, ADDED)
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        DifferenceLine(old, CHANGED, tuple((i1, i2) for _, i1, i2, _, _ in changes if i2 > i1)),
        DifferenceLine(new, CHANGED, tuple((j1, j2) for _, _, _, j1, j2 in changes if j2 > j1)),
    )
