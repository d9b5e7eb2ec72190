"""The global generators of random numbers: what the tests set them to is what the candidate draws from, too.

From the first time on that the tests seed one, or read its state, every message to the candidate carries its state if
the tests have changed it since. Never the other way: a candidate must not choose what the tests draw.
"""

import functools
import importlib
import random
from collections.abc import Callable
from typing import Any


class Generators:
    """The tests' own, followed from when ``follow`` was called. States are tuples of plain values."""

    def __init__(self) -> None:
        self._read: dict[str, Callable[[], Any]] = {}
        self._sent: dict[str, Any] = {}  # what the candidate was told last; only those that the tests have touched

    def follow(self, numpy: bool) -> None:
        """``numpy``: also its old global generator. It is imported for that."""
        self._wrap("random", random, random.getstate, ("seed", "setstate", "getstate"))
        if numpy:
            try:
                at = importlib.import_module("numpy.random")
            except ImportError:
                return
            get_state = at.get_state
            self._wrap("numpy", at, lambda: _plain(get_state()), ("seed", "set_state", "get_state"))

    def _wrap(self, name: str, module: Any, read: Callable[[], Any], functions: tuple[str, ...]) -> None:
        self._read[name] = read
        for function in functions:
            setattr(module, function, self._telling(name, getattr(module, function)))

    def _telling(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def tell(*args: Any, **kwargs: Any) -> Any:
            done = function(*args, **kwargs)
            if function.__name__ == "seed" and (*args, *kwargs.values(), None)[0] is None:
                self._sent.pop(name, None)  # by the system's own chance, which nobody is to know
            else:
                self._sent[name] = None
            return done

        return tell

    def changes(self) -> dict[str, Any]:
        """The states that the candidate does not know yet; it does from now on."""
        changed = {}
        for name, sent in self._sent.items():
            now = self._read[name]()
            if now != sent:
                self._sent[name] = changed[name] = now
        return changed

    def repeat(self) -> None:
        """What was told last did not arrive."""
        self._sent = dict.fromkeys(self._sent)


def _plain(state: Any) -> Any:
    name, key, *rest = state
    return name, key.tobytes(), *map(_number, rest)


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, float) else int(value)


def take(name: str, state: Any) -> None:
    """On the candidate's side: sets the generator of that name."""
    if name == "random":
        random.setstate(state)
    elif name == "numpy":
        try:
            numpy = importlib.import_module("numpy")
        except ImportError:
            return
        kind, key, *rest = state
        numpy.random.set_state((kind, numpy.frombuffer(key, numpy.uint32), *rest))


def seed_quietly(value: int) -> None:
    """Seeds ``random`` without telling the candidate: it is not the tests that do."""
    getattr(random.seed, "__wrapped__", random.seed)(value)
