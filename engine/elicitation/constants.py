"""Literals in the candidates' code, as a dictionary for inputs: limits, keys of tables, letters that are looked for."""

import ast
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence

from engine.elicitation.inputs import EDGE, TYPES, Call, Input, literals
from engine.selection.code_blocks import parse_python

_LONGEST = 12  # characters of a text that may be part of an input
_LARGEST = 10_000
_MOST = 24  # of each kind
_JOINED = 12  # texts that are put together of several


def constants(codes: Iterable[str]) -> tuple[list[str], list[int]]:
    """Short texts and small numbers, those of most candidates first."""
    texts, numbers = dict[str, int](), dict[int, int]()
    for code in codes:
        tree = parse_python(code)
        found = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} if tree is not None else set()
        for value in found:
            if type(value) is str and 0 < len(value) <= _LONGEST and value != "__main__":
                texts[value] = texts.get(value, 0) + 1
            elif type(value) is int and abs(value) <= _LARGEST:
                numbers[value] = numbers.get(value, 0) + 1
    by_count = sorted(texts, key=lambda text: (-texts[text], len(text), text))
    return by_count[:_MOST], sorted(numbers, key=lambda number: (-numbers[number], number))[:_MOST]


def with_constants(known: Sequence[Input], codes: Iterable[str]) -> Iterator[Input]:
    """``known`` calls with one argument that is a text or a number replaced by one that the code speaks of."""
    texts, numbers = constants(codes)
    words = [*texts, *_joined(texts)]
    near_limits = list(dict.fromkeys(itertools.chain.from_iterable((n, n + 1, n - 1) for n in numbers)))
    for at in range(max(len(words), len(near_limits))):
        for given in known[:1]:
            values = literals(given.calls[0].arguments) if len(given.calls) == 1 else None
            for place, value in enumerate(values or ()):
                pool: Sequence[object] = ()
                if type(value) is str:
                    pool = words
                elif type(value) is int:
                    pool = near_limits
                if at < len(pool):
                    arguments = list(given.calls[0].arguments)
                    arguments[place] = repr(pool[at])
                    origin = TYPES if given.origin == TYPES else EDGE
                    yield Input((Call(given.calls[0].name, tuple(arguments)),), origin=origin)


def _joined(texts: Sequence[str]) -> Iterator[str]:
    """Several short ones behind one another, drawn by a fixed seed: a numeral of its letters, say."""
    chance = random.Random(0)
    short = [text for text in texts if len(text) <= 3 and not text.isspace()]
    for _ in range(_JOINED if len(short) > 1 else 0):
        yield "".join(chance.choice(short) for _ in range(chance.randint(2, 4)))
