"""Tests that a model wrote: which are offered, and how far candidates and tests agree with each other.

After CodeT (Chen et al., 2022): a test on which candidates of several behaviours agree is likely right, and so is a
candidate that agrees with such tests. They order, and never make a mark green, until the user has accepted them.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.elicitation import values
from engine.elicitation.answers import Answer
from engine.elicitation.expressions import UNKNOWN, as_input, literal
from engine.elicitation.inputs import MODEL, Input
from engine.elicitation.outcomes import Outcome
from engine.elicitation.target import Target
from engine.selection.code_blocks import parse_python

MOST = 40


@dataclass(frozen=True)
class Suggestion:
    """``expected``: the wire form of what should come out on ``given``."""

    given: Input
    expected: Any

    @property
    def outcome(self) -> Outcome:
        return Outcome("value", self.expected)

    def agrees(self, outcome: Outcome) -> bool:
        if outcome.unstable or outcome.kind != "value":
            return False
        return values.same(outcome.value, self.expected) or _same_items(outcome.value, self.expected)


@dataclass(frozen=True)
class Ranked:
    """A suggestion that is offered. ``members``: the candidates that agree; ``behaviours``: of how many groups;
    ``score``: for the order; ``answer``: what it says, as the test would say it that all of these pass."""

    suggestion: Suggestion
    members: tuple[int, ...]
    behaviours: int
    score: float
    answer: Answer


def read(texts: Iterable[str], target: Target) -> list[Suggestion]:
    """The asserts in ``texts`` that parse, call the target with literals, and say which literal comes out."""
    found: dict[tuple[Input, str], Suggestion] = {}
    for text in texts:
        for line in _asserts(text):
            suggestion = _read(line, target)
            if suggestion is not None:
                found.setdefault((suggestion.given, values.show(suggestion.expected)), suggestion)
    return list(found.values())


def calls(texts: Iterable[str], target: Target) -> list[Input]:
    """The calls of the target in ``texts`` whose arguments are literals; what they are compared with is passed over."""
    found: dict[Input, Input] = {}
    for text in texts:
        for line in _statements(text):
            for node in ast.walk(line):
                given = as_input(node, target, {}, frozenset()) if isinstance(node, ast.Call) else None
                if given is not None and _literal(given):
                    found.setdefault(given, given.from_(MODEL))
    return list(found.values())


def _literal(given: Input) -> bool:
    """Whether every argument is one: what a model wrote is evaluated nowhere else."""
    arguments = (argument for call in given.calls for argument in call.arguments)
    return all(
        literal(argument.split("=", 1)[-1] if _by_name(argument) else argument) is not UNKNOWN for argument in arguments
    )


def _by_name(argument: str) -> bool:
    name, sign, value = argument.partition("=")
    return bool(sign) and name.isidentifier() and not value.startswith("=")


def _asserts(text: str) -> Iterator[ast.Assert]:
    for statement in _statements(text):
        yield from (node for node in ast.walk(statement) if isinstance(node, ast.Assert))


def _statements(text: str) -> Iterator[ast.stmt]:
    """Of the whole, or line by line where it does not parse: an answer may be prose, or cut short."""
    tree = parse_python(text)
    if tree is not None:
        yield from tree.body
        return
    for line in text.splitlines():
        part = parse_python(line.strip())
        if part is not None:
            yield from part.body


def _read(node: ast.Assert, target: Target) -> Suggestion | None:
    test, expected = node.test, UNKNOWN
    call: ast.expr = test
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            call, expected = left, literal(right)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            call, expected = operand, False
        case ast.Call(func=ast.Name(id="isclose") | ast.Attribute(attr="isclose"), args=[left, right, *_]):
            call, expected = left, literal(right)
        case ast.Call():
            expected = True
    given = as_input(call, target, {}, frozenset())
    if given is None or expected is UNKNOWN or not _literal(given):
        return None
    return Suggestion(given.from_(MODEL), expected)


def _same_items(value: Any, expected: Any) -> bool:
    """An iterator that ends is what its items are."""
    return values.tag(value) == "iterator" and value[1] is True and values.same(["list", *value[2:]], expected)


def ranked(
    suggestions: Sequence[Suggestion], outcomes: Mapping[int, Sequence[Outcome]], groups: Sequence[Sequence[int]]
) -> list[Ranked]:
    """Those that some candidate passes, the best first; of several about one input, only the best.

    ``outcomes``: of each candidate, on the input of each suggestion; ``groups``: candidates that behave alike.
    """
    passing = {
        number: frozenset(at for at, s in enumerate(suggestions) if s.agrees(seen[at]))
        for number, seen in outcomes.items()
    }
    by_set: dict[frozenset[int], int] = {}
    for passed in passing.values():
        by_set[passed] = by_set.get(passed, 0) + 1
    found = []
    for at, suggestion in enumerate(suggestions):
        members = tuple(number for number, passed in passing.items() if at in passed)
        if members:
            behaviours = sum(any(number in members for number in group) for group in groups)
            best = max(len(passed) * count for passed, count in by_set.items() if at in passed)
            score = len(members) + best / max(len(suggestions), 1)
            answer = _answer(suggestion, [outcomes[number][at] for number in members])
            found.append(Ranked(suggestion, members, behaviours, score, answer))
    found.sort(key=lambda ranked: (-ranked.score, -ranked.behaviours))
    first: dict[Input, Ranked] = {}
    for entry in found:
        first.setdefault(entry.suggestion.given, entry)
    return list(first.values())[:MOST]


def _answer(suggestion: Suggestion, agreed: Sequence[Outcome]) -> Answer:
    """Where a candidate gives an iterator, its items are what a test can look at."""
    iterators = (outcome for outcome in agreed if values.tag(outcome.value) == "iterator")
    return Answer(suggestion.given, next(iterators, suggestion.outcome))


def agreeing(offered: Sequence[Ranked]) -> dict[int, int]:
    """With how many of the offered tests each candidate agrees."""
    counts: dict[int, int] = {}
    for entry in offered:
        for number in entry.members:
            counts[number] = counts.get(number, 0) + 1
    return counts
