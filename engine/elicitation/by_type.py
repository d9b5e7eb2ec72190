"""Inputs where nobody wrote an example: from annotations, and from what parameters are called."""

import itertools
import re
from collections.abc import Iterator, Sequence

from engine.elicitation.inputs import TYPES, Call, Input, distinct
from engine.elicitation.target import Parameter

_INTS = ("3", "0", "1", "2", "10", "7", "-1")
_FLOATS = ("2.5", "0.0", "1.0", "-1.5", "10.0")
_TEXTS = ("'hello world'", "''", "'a'", "'Abba'", "'a1 b2'", "'racecar'", "'Hello, World!'")
_BOOLS = ("True", "False")
_INT_LISTS = ("[3, 1, 2]", "[]", "[1]", "[2, 2, 1]", "[-1, 5, 0, 5]", "[1, 2, 3, 4, 5]")
_TEXT_LISTS = ("['b', 'a', 'c']", "[]", "['a']", "['x', 'x', 'Y']")
_NESTED = ("[[1, 2], [3, 4]]", "[]", "[[1]]", "[[1, 4], [2, 3]]", "[[1, 3], [3, 5]]")
_DICTS = ("{'a': 1, 'b': 2}", "{}", "{'a': 0}", "{'b': 2, 'a': 2}")
_SETS = ("{1, 2, 3}", "set()", "{1}")
_PLAIN = {"int": _INTS, "float": _FLOATS, "complex": ("1j",), "str": _TEXTS, "bool": _BOOLS, "bytes": ("b'ab'", "b''")}
_NAMES = (
    (r"matrix|grid|board|intervals|pairs|edges|points|rows|nested", _NESTED),
    (r"words|names|strings|strs|lines|tokens|texts", _TEXT_LISTS),
    (r"nums?$|numbers|lst|list|arr(ay)?|values|items|seq|data|xs|l$|a$|elements", _INT_LISTS),
    (r"s\d?$|str|string|text|word|name|sentence|line|char|ch|pattern|prefix|path|expr|query|msg|message", _TEXTS),
    (r"d$|dict|mapping|counts|table", _DICTS),
    (r"ratio|rate|price|weight|height|radius|prob", _FLOATS),
    (r"is_|has_|flag|reverse|strict", _BOOLS),
    (r"n$|k$|m$|i$|j$|x$|y$|b$|num|count|size|index|limit|target|value|year|age|width|amount|key|id|len", _INTS),
)
_UNKNOWN = (_INTS, _TEXTS, _INT_LISTS)
_MOST_OF_ONE = 7


def by_type(name: str, parameters: Sequence[Parameter], most: int) -> list[Input]:
    """Calls of ``name`` with made-up arguments of what seem to be the right types."""
    return distinct((Input((Call(name, row),), origin=TYPES) for row in rows(parameters)), most)


def rows(parameters: Sequence[Parameter]) -> Iterator[tuple[str, ...]]:
    """Arguments for all that must be given. Each value of one is tried with the usual ones of the others first."""
    needed = [parameter for parameter in parameters if parameter.required] or list(parameters[:1])
    if not needed:
        yield ()
        return
    kinds = [pools(parameter) for parameter in needed]
    # An unknown type is the same for all: candidates that take ints are not called with an int and a text.
    for kind in range(max(map(len, kinds))):
        chosen = [pool[kind % len(pool)] for pool in kinds]
        for depth in range(_MOST_OF_ONE):
            yield tuple(values[depth % len(values)] for values in chosen)
            for at in range(len(chosen)):
                usual = [values[0] for values in chosen]
                usual[at] = chosen[at][depth % len(chosen[at])]
                yield tuple(usual)


def pools(parameter: Parameter) -> list[tuple[str, ...]]:
    """Values for one parameter; several pools where its type is anybody's guess."""
    if parameter.annotation and (found := of_annotation(parameter.annotation)):
        return [found]
    for pattern, values in _NAMES:
        if re.match(rf"(?:.*_)?(?:{pattern})", parameter.name.lower()):
            return [values]
    return list(_UNKNOWN)


def of_annotation(text: str) -> tuple[str, ...]:
    """Values for a type as it is written; empty where it is not understood."""
    text = re.sub(r"\b(?:typing|collections\.abc|t)\.", "", text.strip("'\" "))
    parts = [part.strip() for part in _split(text, "|")]
    optional = [part for part in parts if part != "None"]
    if len(parts) > 1:
        values = [value for part in optional for value in of_annotation(part)]
        return (*values[:_MOST_OF_ONE], *(("None",) if len(optional) < len(parts) else ()))
    if text in _PLAIN:
        return _PLAIN[text]
    outer, _, inner = text.partition("[")
    inside = [of_annotation(part) for part in _split(inner.removesuffix("]"), ",") if part.strip() not in ("", "...")]
    match outer.lower():
        case "optional":
            return (*(inside[0] if inside else _INTS), "None")
        case "union":
            return tuple(itertools.chain.from_iterable(values[:3] for values in inside))
        case "list" | "sequence" | "iterable" | "collection" | "deque":
            return _lists(inside[0], "[]") if inside and inside[0] else _INT_LISTS
        case "tuple":
            if "..." in inner or len(inside) < 2:
                return _lists(inside[0] if inside and inside[0] else _INTS, "()")
            return (
                tuple(f"({', '.join(values[at % len(values)] for values in inside)})" for at in range(4))
                if all(inside)
                else ()
            )
        case "set" | "frozenset":
            made = _lists(inside[0] if inside and inside[0] else _INTS, "[]")
            return tuple(f"set({values})" for values in made) if inside else _SETS
        case "dict" | "mapping" | "defaultdict" | "counter":
            if len(inside) == 2 and all(inside):
                keys, held = inside
                pairs = [f"{key}: {held[at % len(held)]}" for at, key in enumerate(keys[:3])]
                return (f"{{{', '.join(pairs)}}}", "{}", f"{{{pairs[0]}}}")
            return _DICTS
    return ()


def _lists(items: Sequence[str], brackets: str) -> tuple[str, ...]:
    a, b, c = (items[at % len(items)] for at in range(3))
    found: list[list[str]] = [[a, b, c], [], [a], [c, c, a], [*items[:5]]]
    comma = "," if brackets == "()" else ""
    return tuple(f"{brackets[0]}{', '.join(row)}{comma if len(row) == 1 else ''}{brackets[1]}" for row in found)


def _split(text: str, separator: str) -> list[str]:
    """At separators that stand in no bracket."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == separator and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found
