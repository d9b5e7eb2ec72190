"""Inputs for programs that read standard input: samples, with their numbers and words changed."""

import random
import re
from collections.abc import Iterator, Sequence

from engine.elicitation.inputs import EDGE, NEAR, TYPES, Input, distinct

_TOKEN = re.compile(r"-?\d+(?:\.\d+)?|[A-Za-z]+")
_MADE_UP = ("5\n", "0\n", "1\n", "3 4\n", "hello\n", "3\n1 2 3\n", "2\n3 4\n", "hello world\n", "10\n", "-1\n")


def of_program(known: Sequence[Input], most: int) -> list[Input]:
    """The first number of a sample often counts what follows, so it is changed last."""
    if not known:
        return [Input(given=text, origin=TYPES) for text in _MADE_UP[:most]]
    chance = random.Random(0)
    return distinct((given for given in _changed(known, chance) if given not in known), most)


def _changed(known: Sequence[Input], chance: random.Random) -> Iterator[Input]:
    for _ in range(6):
        for given in known:
            tokens = list(_TOKEN.finditer(given.given))
            if tokens:
                token = chance.choice(tokens[1:] or tokens)
                yield _with(given.given, token, _other(token[0], chance), NEAR)
    for given in known:
        for token in reversed(list(_TOKEN.finditer(given.given))):
            for text in ("0", "-1", "100") if token[0].lstrip("-").isdigit() else (token[0].upper(), token[0][:1]):
                yield _with(given.given, token, text, EDGE)


def _with(text: str, token: re.Match[str], other: str, origin: str) -> Input:
    return Input(given=text[: token.start()] + other + text[token.end() :], origin=origin)


def _other(token: str, chance: random.Random) -> str:
    if "." in token:
        return str(round(float(token) + chance.choice((-0.5, 0.5, 1.0)), 3))
    if token.lstrip("-").isdigit():
        number = int(token)
        changed = number + chance.choice((-2, -1, 1, 2, 5))
        return str(abs(changed) if number >= 0 else changed)
    letters = list(token)
    at = chance.randrange(len(letters))
    letters[at] = chance.choice((letters[at].swapcase(), chance.choice(letters)))
    return "".join(letters)
