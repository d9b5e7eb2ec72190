"""Candidates that are the same code, whatever their spelling."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.runner.report import Report
from engine.runner.verdicts import Verdict
from engine.selection.code_blocks import parse_python

_DISTANCES = ("same code", "same code but for spacing", "same AST")


@dataclass(frozen=True)
class Likeness:
    """This candidate says the same as candidate ``number``, an earlier one. ``exact``: byte for byte."""

    number: int
    reason: str
    exact: bool = False


@dataclass(frozen=True)
class Fingerprint:
    """One code at three distances: byte for byte, but for spacing, and as a syntax tree (empty if not Python)."""

    exact: str
    normalised: str
    tree: str

    @classmethod
    def of(cls, code: str, python: bool = True) -> "Fingerprint":
        parsed = parse_python(code) if python else None
        return cls(code, normalised(code), "" if parsed is None else _dump(parsed))

    def likeness(self, other: "Fingerprint") -> str:
        """Why the two are the same, in words; empty when they are not."""
        if self.exact == other.exact:
            return _DISTANCES[0]
        if self.normalised == other.normalised:
            return _DISTANCES[1]
        if self.tree and self.tree == other.tree:
            return _DISTANCES[2]
        return ""


def normalised(code: str) -> str:
    """The code without what no reader sees: line endings, trailing blanks, empty lines, a byte order mark."""
    lines = (line.rstrip() for line in re.split(r"\r\n|\r|\n", code.removeprefix("\ufeff")))
    return "\n".join(line for line in lines if line)


def first_alike(fingerprint: Fingerprint, earlier: Iterable[tuple[int, Fingerprint]]) -> Likeness | None:
    """The closest likeness to one of ``earlier``; of several, the first."""
    alike = [(_DISTANCES.index(reason), number) for number, other in earlier if (reason := fingerprint.likeness(other))]
    if not alike:
        return None
    distance, number = min(alike)
    return Likeness(number, _DISTANCES[distance], exact=distance == 0)


def groups(fingerprints: Mapping[int, Fingerprint]) -> dict[int, int]:
    """Candidate -> how many candidates say the same, itself included."""
    keys = {number: print_.tree or print_.normalised for number, print_ in fingerprints.items()}
    sizes: dict[str, int] = {}
    for key in keys.values():
        sizes[key] = sizes.get(key, 0) + 1
    return {number: sizes[key] for number, key in keys.items()}


def same_failure(report: Report, earlier: Iterable[tuple[int, Report]]) -> Likeness | None:
    """The first of ``earlier`` that fails the same tests, with the same values, as ``report`` does.

    Passing alike says little: all good candidates do. Failing alike is mostly one mistake made twice.
    """
    if report.verdict != Verdict.FAIL or not report.tests:
        return None
    mine = _failures(report)
    same = (number for number, other in earlier if other.verdict == Verdict.FAIL and _failures(other) == mine)
    number = next(same, None)
    return None if number is None else Likeness(number, "fails the same tests")


def _failures(report: Report) -> tuple[tuple[str, str, str], ...]:
    return tuple((test.id, test.outcome, test.why) for test in report.tests)


def behaviour(report: Report) -> tuple[tuple[str, str], ...]:
    """What the tests saw, for comparing candidates whose code differs."""
    return tuple((test.id, test.outcome) for test in report.tests)


def _dump(tree: ast.Module) -> str:
    try:
        return ast.dump(tree)
    except RecursionError:
        return ""
