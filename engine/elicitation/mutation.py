"""Further inputs from known ones, changed by type: near ones of the same kind, and extremes.

After EvalPlus (Liu et al., 2023), for questions rather than for finding faults: a small change of an example is still
what the prompt is about, and short enough to be read.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from engine.elicitation.inputs import EDGE, FAR, NEAR, Input, distinct, literals

_LONGEST = 120  # characters of an argument that is made here
_CHANGES = 90  # tries of a small change, shared by all known inputs

Arguments = tuple[Any, ...]


def mutated(known: Sequence[Input], most: int) -> list[Input]:
    """Changes of ``known`` calls whose arguments are literals given by position; near ones and extremes in turn."""
    calls = [given for given in known if len(given.calls) == 1]
    rows = [
        (given.calls[0].name, values) for given in calls if (values := literals(given.calls[0].arguments)) is not None
    ]
    rows = [(name, values) for name, values in rows if values]
    if not rows:
        return []
    name, width = rows[0][0], len(rows[0][1])
    same_width = [values for _, values in rows if len(values) == width]
    chance = random.Random(0)
    near = (_input(name, values, NEAR) for values in _near(same_width, chance))
    edges = (_input(name, values, EDGE) for values in _edges(same_width))
    found = distinct((given for given in near if given is not None), 2 * most)
    extremes = distinct((given for given in edges if given is not None), most)
    seen = set(known)
    in_turn = [given for pair in _in_turn(found, extremes) for given in pair if given not in seen]
    return distinct(in_turn, most)


def outside_marked(inputs: Sequence[Input], known: Sequence[Input]) -> list[Input]:
    """``inputs``, of which those with a number at zero or below are FAR where all ``known`` numbers are above."""
    lowest = _lowest(known)
    return [
        given.from_(FAR) if given.origin in (NEAR, EDGE) and any(map(_sinks, _lowest([given]), lowest)) else given
        for given in inputs
    ]


def _sinks(number: float | None, known: float | None) -> bool:
    return number is not None and known is not None and number <= 0 < known


def _lowest(inputs: Sequence[Input]) -> list[float | None]:
    """The lowest number in each argument, over all inputs."""
    found: list[float | None] = []
    for given in inputs:
        for at, value in enumerate(literals(given.calls[0].arguments) or ()):
            numbers = [leaf for _, leaf in _leaves(value) if type(leaf) in (int, float)]
            found += [None] * (at + 1 - len(found))
            found[at] = min([*numbers, *(n for n in found[at : at + 1] if n is not None)], default=None)
    return found


def _in_turn(near: Sequence[Input], extremes: Sequence[Input]) -> Iterator[list[Input]]:
    """Two near ones for each extreme."""
    for at in range(max(len(near) // 2 + 1, len(extremes))):
        yield [*near[2 * at : 2 * at + 2], *extremes[at : at + 1]]


def _input(name: str, values: Arguments, origin: str) -> Input | None:
    texts = [repr(value) for value in values]
    if any(len(text) > _LONGEST for text in texts):
        return None
    return Input.of_call(name, texts, origin)


def _near(rows: Sequence[Arguments], chance: random.Random) -> Iterator[Arguments]:
    """One argument changed a little, round after round over all rows; then arguments of different rows together."""
    for turn in range(max(_CHANGES // len(rows), 2)):
        for row in rows:
            at = chance.randrange(len(row))
            pool = [other[at] for other in rows if type(other[at]) is type(row[at])]
            yield _replaced(row, at, nearby(row[at], chance, pool))
            yield _with_equal_leaves(row, chance)
        if turn % 2 and len(rows) > 1 and len(rows[0]) > 1:
            one, other = chance.sample(range(len(rows)), 2)
            at = chance.randrange(len(rows[0]))
            yield _replaced(rows[one], at, rows[other][at])


def _edges(rows: Sequence[Arguments]) -> Iterator[Arguments]:
    for row in rows:
        for at in range(len(row)):
            yield from (_replaced(row, at, value) for value in extremes_of(row[at]))


def _with_equal_leaves(row: Arguments, chance: random.Random) -> Arguments:
    """One number or text of the arguments becomes another one of them, or its neighbour, where limits often lie."""
    leaves = list(_leaves(row))
    path, value = chance.choice(leaves) if leaves else ((), None)
    others = [other for _, other in leaves if type(other) is type(value) and other != value]
    if not others:
        return row
    other = chance.choice(others)
    if isinstance(other, int) and not isinstance(other, bool):
        other += chance.choice((0, 0, 0, 1, -1)) if other > 0 else 0
    changed: Arguments = _with_leaf(row, path, other)
    return changed


def _leaves(value: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Numbers and texts in lists and tuples, and the way to each."""
    if isinstance(value, list | tuple):
        for at, part in enumerate(value):
            yield from _leaves(part, (*path, at))
    elif isinstance(value, int | float | str):
        yield path, value


def _with_leaf(value: Any, path: tuple[int, ...], leaf: Any) -> Any:
    if not path:
        return leaf
    parts = list(value)
    parts[path[0]] = _with_leaf(parts[path[0]], path[1:], leaf)
    return type(value)(parts)


def _replaced(row: Arguments, at: int, value: Any) -> Arguments:
    return (*row[:at], value, *row[at + 1 :])


def nearby(value: Any, chance: random.Random, pool: Sequence[Any] = ()) -> Any:
    """A value of the same type, changed a little. ``pool``: others of the same meaning."""
    if value is None or isinstance(value, bool):
        return value if value is None else not value
    if isinstance(value, int):
        changed = value + chance.choice((-2, -1, 1, 2, 3, 5))
        return abs(changed) if value >= 0 else changed
    if isinstance(value, float):
        return round(abs(value * chance.choice((0.5, 1.5, 2.0)) + chance.choice((0.0, 0.25))), 6)
    if isinstance(value, str):
        return _nearby_text(value, chance, pool)
    if isinstance(value, list | tuple):
        return type(value)(_nearby_items(list(value), chance, pool))
    if isinstance(value, set | frozenset):
        items = _nearby_items(sorted(value, key=repr), chance, pool)
        return type(value)(item for item in items if not isinstance(item, list | dict | set))
    if isinstance(value, dict) and value:
        key = chance.choice(list(value))
        if chance.random() < 0.3 and len(value) > 1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: nearby(value[key], chance, list(value.values()))}
    return value


def _nearby_text(text: str, chance: random.Random, pool: Sequence[Any]) -> str:
    letters = list(text) or ["a"]
    others = [letter for other in pool if isinstance(other, str) for letter in other] or letters
    at = chance.randrange(len(letters))
    match chance.randrange(6):
        case 0:
            letters[at] = chance.choice(others)
        case 1:
            letters.insert(at, chance.choice(others))
        case 2:
            del letters[at]
        case 3:
            letters[at] = letters[at].swapcase()
        case 4:
            letters.append(letters[at])
        case _:
            words = text.split(" ")
            letters = list(" ".join(words[::-1]) if len(words) > 1 else text[::-1])
    return "".join(letters)


def _nearby_items(items: list[Any], chance: random.Random, pool: Sequence[Any]) -> list[Any]:
    others = [item for other in pool if isinstance(other, list | tuple | set | frozenset) for item in other] or items
    if not items:
        return [chance.choice(others)] if others else items
    at = chance.randrange(len(items))
    match chance.randrange(6):
        case 0:
            items[at] = nearby(items[at], chance, [item for item in others if type(item) is type(items[at])])
        case 1:
            items.insert(at, chance.choice(others))
        case 2 if len(items) > 1:
            del items[at]
        case 3:
            items.append(items[at])
        case 4:
            items.reverse()
        case _:
            chance.shuffle(items)
            items[0] = nearby(items[0], chance, others)
    return items


def extremes_of(value: Any) -> list[Any]:
    """Values of the same type at its ends: empty, one item, all the same, zero, negative, large, nested."""
    match value:
        case None | bool():
            return []
        case int():
            return [0, 1, -1, -value, value * 10, 100]
        case float():
            return [0.0, 1.0, -value, value * 100]
        case str():
            return ["", value[:1], value * 2, value.upper(), value.lower(), f" {value} ", value.replace(" ", "  ")]
        case list() | tuple():
            kind = type(value)
            items = list(value)
            inner = [kind([x, *items[1:]]) for x in extremes_of(items[0])[:3]] if items else []
            return [kind(), kind(items[:1]), kind(items[:1] * 3), kind(items[::-1]), kind(items * 2), *inner]
        case set() | frozenset():
            return [type(value)(), type(value)(sorted(value, key=repr)[:1])]
        case dict():
            return [{}, dict(list(value.items())[:1])]
    return []
