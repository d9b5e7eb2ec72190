"""The tests' side: a module that stands for the candidate, and the little that the candidate may ask of the tests.

Nothing that comes from over there is believed beyond its data. A comparison that an object of the candidate decides
by itself is noted; so is a process that ends or talks nonsense, whatever a test makes of it.
"""

import contextlib
import functools
import io
import random
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from unittest import mock

from engine.runner.split.chance import Generators
from engine.runner.split.crossing import LinkBroken, Transfer
from engine.runner.split.link import ROOT, Link, duplicate, operate
from engine.runner.split.mirrors import OPERATORS, Mirror, MirrorClass
from engine.runner.split.values import CannotCross, Garbled

MODULES = ("tests", "__main__")  # where the tests' own classes say that they are defined
_CALLABLE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)
# Objects of the standard library that tests hand over and that lead nowhere from there.
_HARMLESS: tuple[type, ...] = (
    *(io.StringIO, io.BytesIO, random.Random, re.Match, functools.partial, type(functools.lru_cache(len))),
    *(contextlib.nullcontext, contextlib.suppress, contextlib.closing, type(contextlib.contextmanager(iter)(()))),
)
_OF_NUMPY = ("Generator", "RandomState", "vectorize", "poly1d", "Polynomial")  # the same, by name
_OF_GENERATORS = frozenset(("send", "throw", "close"))
_OF_MOCKS = ("assert", "mock_", "call", "configure", "reset", "attach", "side_effect", "return_value", "method_calls")


class TestsLink(Link):
    """``soft``: a comparison was decided over there; ``ended``, ``forged``: why there is nobody to talk to any more.

    ``uncrossable``: why the tests cannot be kept apart, found when they wanted to hand over what cannot cross.
    """

    names_functions = True

    def __init__(self, source: int, sink: int):
        super().__init__(source, sink, first=0)
        self.soft = False
        self.ended = False
        self.forged = self.uncrossable = ""
        self.generators = Generators()
        self.beat: Callable[[], None] = lambda: None  # after each question

    def ask(self, operation: str, *arguments: Any) -> Any:
        if self.ended:
            raise LinkBroken("the candidate's process has ended")
        self.beat()
        return super().ask(operation, *arguments)

    def severed(self, why: str) -> NoReturn:
        self.ended, self.forged = True, self.forged or why
        raise LinkBroken(why or "the candidate's process has ended")

    def decided(self, operator: str) -> None:
        self.soft = True

    def may_cross(self, value: Any) -> None:
        kind = type(value)
        if issubclass(kind, _HARMLESS + _CALLABLE + (BaseException, mock.NonCallableMock)):
            return
        if _is_the_tests_own(value) or hasattr(kind, "__next__") or kind.__module__ in MODULES:
            return
        if kind.__name__ in _OF_NUMPY and str(kind.__module__).partition(".")[0] == "numpy":
            return
        if issubclass(kind, type) and issubclass(value, (*_HARMLESS, mock.NonCallableMock, BaseException)):
            return
        name = f"the module {value.__name__}" if isinstance(value, types.ModuleType) else _with_article(kind)
        self.refuse(f"they hand over {name}, which cannot leave their process")
        raise CannotCross(f"the tests hand over {name}, which has no form that could leave their process")

    def refuse(self, reason: str) -> None:
        """Notes why these tests cannot be kept apart from the candidate; the first reason counts."""
        self.uncrossable = self.uncrossable or reason

    def derived(self, name: str) -> None:
        self.refuse(f"they derive a class from the candidate's (class {name})")

    def put(self, value: Any, transfer: Transfer, depth: int = 0) -> Any:
        try:
            return super().put(value, transfer, depth)
        except CannotCross as why:
            self.refuse(f"they hand over something that cannot leave their process: {why}")
            raise

    def _line(self, message: dict[str, Any]) -> bytes:
        try:
            return super()._line(message)
        except CannotCross as why:
            self.refuse(f"they hand over {why}, which is too much to leave their process at once")
            raise

    def serve(self, operation: str, arguments: tuple[Any, ...]) -> Any:
        match operation, arguments:
            case "get", [target, str(name)]:
                return getattr(target, self._readable(target, name))
            case "set", [target, str(name), value]:
                return setattr(target, self._writable(target, name), value)
            case "del", [target, str(name)]:
                return delattr(target, self._writable(target, name))
            case "operator", [str(name), target, tuple(given), tuple(keywords)]:
                if not self.handed_over(target) or name not in OPERATORS:
                    raise Garbled("an operator of something that was not handed over")
                return operate(target, name, given, keywords)
            case "content", [target] if self.handed_over(target) and isinstance(target, dict):
                return dict(dict.items(target))
            case "content", [target] if self.handed_over(target):
                return list(target)
            case "copy" | "deepcopy", [target] if self.handed_over(target):
                return duplicate(target, operation == "deepcopy")
        raise Garbled(f"a question that is none: {operation}"[:100])

    def _readable(self, target: Any, name: str) -> str:
        if name in ("__name__", "__doc__", "__qualname__"):
            return name
        refused = name.startswith("_") or not self.handed_over(target)
        if isinstance(target, types.GeneratorType):
            refused = name not in _OF_GENERATORS
        elif isinstance(target, mock.NonCallableMock):
            refused = refused or name.startswith(_OF_MOCKS)
        if refused:
            raise AttributeError(f"{type(target).__name__!r} object of the tests does not show {name!r}")
        return name

    def _writable(self, target: Any, name: str) -> str:
        """Data may be set on the tests' own objects; what the tests have defined on the class stays theirs."""
        own = type(target).__module__ in MODULES and not isinstance(target, type)
        if not (own or isinstance(target, types.SimpleNamespace)) or callable(getattr(type(target), name, None)):
            raise AttributeError(f"{name!r} of the tests' {type(target).__name__!r} object cannot be set from here")
        return self._readable(target, name)

    def news(self, transfer: Transfer) -> dict[str, Any]:
        changed = self.generators.changes()
        return {"chance": {name: self.put(state, transfer) for name, state in changed.items()}} if changed else {}

    def _take_back(self, transfer: Transfer) -> None:
        super()._take_back(transfer)
        self.generators.repeat()

    def take_extras(self, message: dict[str, Any]) -> None:
        for stream, text in message.get("printed", ()):
            (sys.stderr if stream == "stderr" else sys.stdout).write(str(text))
        for category, text, line in message.get("warned", ()):
            kind = self.get(category)
            if isinstance(kind, type) and issubclass(kind, Warning):
                warnings.warn_explicit(str(text), kind, "solution.py", int(line), "solution", {})


def _with_article(kind: type) -> str:
    return f"{'an' if kind.__qualname__[0] in 'AEIOUaeiou' else 'a'} {kind.__qualname__}"


def _is_the_tests_own(value: Any) -> bool:
    return isinstance(value, type) and value.__module__ in MODULES and type(value) is not MirrorClass


class SolutionModule(types.ModuleType):
    """What ``import solution`` gives to the tests: every name is asked for when it is used."""

    _bassline_link: TestsLink
    _bassline_number = ROOT

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__doc__", "__all__", "__version__", "__author__", "__annotations__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self._bassline_link.ask("get", _ROOT, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            self._bassline_link.ask("set", _ROOT, name, value)

    def __delattr__(self, name: str) -> None:
        self._bassline_link.ask("del", _ROOT, name)

    def __dir__(self) -> Iterator[str]:
        return iter(self._bassline_link.ask("dir", _ROOT))


_ROOT = object.__new__(Mirror)
object.__setattr__(_ROOT, "_bassline_number", ROOT)


def solution_module(link: TestsLink, name: str) -> SolutionModule:
    module = SolutionModule(name)
    vars(module)["_bassline_link"] = link
    del vars(module)["__doc__"]  # the candidate's own is asked for
    sys.modules[name] = module
    return module
