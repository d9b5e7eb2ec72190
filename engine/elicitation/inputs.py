"""What a candidate is called with: one call, an object and calls of its methods, or the standard input of a program."""

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

# Where an input comes from, the most trustworthy first: the user's tests, the prompt, a small change of one of these,
# the model, a change to an extreme (empty, large), one to zero or below where all known numbers are above, and values
# made up from types alone.
TESTS, PROMPT, NEAR, MODEL, EDGE, FAR, TYPES = ORIGINS = ("tests", "prompt", "near", "model", "edge", "far", "types")
LONGEST = 300  # characters of an input; a longer one is no question that somebody would read


@dataclass(frozen=True)
class Call:
    """``name(arguments)``; each argument is Python text, with its name before it where it is given by name."""

    name: str
    arguments: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"


@dataclass(frozen=True)
class Input:
    """``calls``: one, or the making of an object and then its methods, of which the last one's result counts.

    ``given``: what a program reads, where there are no calls. ``origin``: one of ORIGINS.
    """

    calls: tuple[Call, ...] = ()
    given: str = ""
    origin: str = field(default=EDGE, compare=False)

    @classmethod
    def of_call(cls, name: str, arguments: Iterable[str], origin: str = EDGE) -> "Input":
        return cls((Call(name, tuple(arguments)),), origin=origin)

    @classmethod
    def of_wire(cls, text: str, origin: str = EDGE) -> "Input":
        """The input that ``wire`` was of."""
        parts = json.loads(text)
        calls = tuple(Call(name, tuple(arguments)) for name, arguments in parts.get("calls", ()))
        return cls(calls, parts.get("given", ""), origin)

    @property
    def is_program(self) -> bool:
        return not self.calls

    @property
    def text(self) -> str:
        """As a question shows it."""
        if self.is_program:
            return f"input {self.given.rstrip()!r}"
        return "; ".join((self.calls[0].text, *(f".{call.text}" for call in self.calls[1:])))

    @property
    def wire(self) -> str:
        """As ``runner.protocol.Observe`` has it."""
        if self.is_program:
            return json.dumps({"given": self.given})
        return json.dumps({"calls": [[call.name, list(call.arguments)] for call in self.calls]})

    def from_(self, origin: str) -> "Input":
        return replace(self, origin=origin)


def literals(arguments: Iterable[str]) -> tuple[Any, ...] | None:
    """The values of arguments that are literals, given by position; None where one is not."""
    found = []
    for text in arguments:
        try:
            found.append(ast.literal_eval(text))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None
    return tuple(found)


def distinct(inputs: Iterable[Input], most: int) -> list[Input]:
    """The first of each that are the same, short enough to be read, ``most`` of them at most."""
    found = dict[Input, Input]()
    for given in inputs:
        if len(found) >= most:
            break
        if len(given.text) <= LONGEST:
            found.setdefault(given, given)
    return list(found.values())
