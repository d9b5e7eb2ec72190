"""Inputs for classes: an object is made, and a few of its methods are called; the last call's result counts."""

import random
from collections.abc import Iterator, Sequence

from engine.elicitation.by_type import rows
from engine.elicitation.inputs import EDGE, NEAR, TYPES, Call, Input, distinct, literals
from engine.elicitation.mutation import nearby
from engine.elicitation.target import Target

_LONGEST = 5  # calls of methods
_TRIES = 400


def of_class(target: Target, known: Sequence[Input], most: int) -> list[Input]:
    """Changes of ``known`` ones, and sequences that are drawn by a fixed seed; short ones first."""
    chance = random.Random(0)
    changed = list(_changed(target, known, chance))
    drawn = sorted(_drawn(target, known, chance), key=lambda given: len(given.calls))
    by_length: dict[int, list[Input]] = {}
    for given in distinct(drawn, _TRIES):
        by_length.setdefault(len(given.calls), []).append(given)
    spread = [group[at] for at in range(_TRIES) for group in by_length.values() if at < len(group)]
    half = max(most // 2, most - len(spread))
    return distinct([*changed[:half], *spread], most)


def _changed(target: Target, known: Sequence[Input], chance: random.Random) -> Iterator[Input]:
    """A call more at the end, one left out, or another argument."""
    for given in known:
        for method in target.methods:
            for call in _calls(target, method, known)[:1]:
                yield Input((*given.calls, call), origin=NEAR)
        for at in range(1, len(given.calls) - 1):
            yield Input((*given.calls[:at], *given.calls[at + 1 :]), origin=NEAR)
        for at, call in enumerate(given.calls):
            values = literals(call.arguments)
            if values:
                texts = tuple(repr(nearby(value, chance)) for value in values)
                yield Input((*given.calls[:at], Call(call.name, texts), *given.calls[at + 1 :]), origin=EDGE)


def _drawn(target: Target, known: Sequence[Input], chance: random.Random) -> Iterator[Input]:
    made = [given.calls[0] for given in known] or [Call(target.name, row) for row in list(rows(target.parameters))[:6]]
    calls = {method: _calls(target, method, known) for method in target.methods}
    names = list(target.methods)
    for method in names:
        yield from (Input((made[0], call), origin=TYPES) for call in calls[method][:2])
    for _ in range(_TRIES):
        length = chance.randint(2, _LONGEST)
        steps = [chance.choice(calls[chance.choice(names)]) for _ in range(length)]
        yield Input((chance.choice(made[:4]), *steps), origin=TYPES)


def _calls(target: Target, method: str, known: Sequence[Input]) -> list[Call]:
    """Calls of ``method``: as they are known, then made-up ones."""
    seen = [call for given in known for call in given.calls[1:] if call.name == method]
    made = [Call(method, row) for row in rows(target.methods[method])]
    return list(dict.fromkeys([*seen, *made]))[:5]
