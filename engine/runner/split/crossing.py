"""Encodes the values of a message, and keeps which number means which object on this side and on the other."""

import itertools
import types
import weakref
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from engine.runner.split import arrays, exceptions, library, values
from engine.runner.split.mirrors import MirrorClass, content_base, describe_class, is_mirror, make_class, make_instance
from engine.runner.split.shared import Shared, kind_of
from engine.runner.split.values import IMMUTABLE, Garbled


class LinkBroken(BaseException):
    """The other side is gone, or talks nonsense.

    Not an Exception, for a test must not take it for one of the candidate's.
    """


@dataclass
class Transfer:
    """A message in the making. What it registers counts once it was sent."""

    objects: list[list[Any]] = field(default_factory=list)
    new: list[list[Any]] = field(default_factory=list)
    contents: list[tuple[int, list[Any]]] = field(default_factory=list)  # number, content: known to both once sent
    exported: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # numbers of new containers whose content is not written yet


class Crossing(ABC):
    """Puts values on the wire and takes them off it. ``first``: 0 or 1, so that both sides number their own.

    A subclass asks and answers; ``names_functions`` and ``accepts_functions`` say whether a function of the standard
    library crosses by its name.
    """

    names_functions = False
    accepts_functions = False

    def __init__(self, first: int):
        self._objects = itertools.count(1)
        self._mine: dict[int, Any] = {}
        self._my_numbers: dict[int, int] = {}  # id(object) -> number; _mine keeps it alive
        self._only_named: set[int] = set()
        self._theirs: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._kept: dict[int, Any] = {}  # classes, and values such as named tuples, to which no weak reference can be
        self._described: dict[int, dict[str, Any]] = {}
        self._gone: list[int] = []  # mirrors that are no more, to be told
        self.shared = Shared(first)
        self.decoding = False

    @abstractmethod
    def ask(self, operation: str, *arguments: Any) -> Any:
        """Put a question to the other side; its answer."""

    def may_cross(self, value: Any) -> None:  # noqa: B027 - by default everything may
        """Raises CannotCross for an object that must not be reached from the other side."""

    def severed(self, why: str) -> NoReturn:
        raise LinkBroken(why)

    def decided(self, operator: str) -> None:  # noqa: B027 - only the tests' side takes note
        """An object of the other side is about to decide a comparison."""

    def derived(self, name: str) -> None:  # noqa: B027 - only the tests' side takes note
        """A class of this side is about to derive from one of the other side's."""

    def put(self, value: Any, transfer: Transfer, depth: int = 0) -> Any:
        return values.put(value, lambda other, deep: self._put(other, transfer, deep), depth)

    def get(self, wire: Any) -> Any:
        return values.get(wire, self._get)

    def _put(self, value: Any, transfer: Transfer, depth: int) -> Any:
        if is_mirror(value):
            return ["yours", vars(value)["_bassline_number"] if isinstance(value, type) else value._bassline_number]
        kind = kind_of(value)
        if kind is not None:
            number = self.shared.number(value)
            if number is None:
                number = self.shared.add(value, kind)
                transfer.waiting.append(number)
            return ["shared", number]
        return self._put_by_name(value, transfer, depth) or ["mine", self._export(value, transfer)]

    def _put_by_name(self, value: Any, transfer: Transfer, depth: int) -> list[Any] | None:
        """What need not stay behind: the other side can have one that is just like it."""

        def convert(part: Any) -> Any:
            return self.put(part, transfer, depth + 1)

        if issubclass(type(value), type):
            name = values.name_of_type(value)
            return ["type", *name] if name else arrays.put(value)
        if issubclass(type(value), BaseException):
            return exceptions.put(value, convert)
        if type(value) is types.TracebackType:
            return exceptions.put_traceback(value)
        made = values.put_member(value, convert) or arrays.put(value)
        made = made or library.put(value, convert, self.names_functions)
        if made is None and self.names_functions and callable(value) and (name := values.name_of_function(value)):
            return ["function", *name]
        return made

    def _export(self, value: Any, transfer: Transfer, handed_over: bool = True) -> int:
        """The number under which the other side knows an object of this one.

        ``handed_over`` False: a class that only says what something else is, and may not be used from over there.
        """
        number = self._my_numbers.get(id(value))
        if number is not None and (number not in self._only_named or not handed_over):
            return number
        if handed_over:
            self.may_cross(value)
        if number is not None:
            self._only_named.discard(number)
            return number
        number = next(self._objects)
        if not handed_over:
            self._only_named.add(number)
        self._mine[number], self._my_numbers[id(value)] = value, number
        transfer.exported.append(number)
        described = (
            self._describe_class(value, transfer) if issubclass(type(value), type) else self._describe(value, transfer)
        )
        transfer.objects.append([number, described])
        return number

    def _describe_class(self, cls: type, transfer: Transfer) -> dict[str, Any]:
        bases: list[Any] = []
        for base in cls.__bases__:
            name = values.name_of_type(base)
            bases.append(["type", *name] if name else ["mine", self._export(base, transfer, False)])
        return describe_class(cls) | {"bases": bases}

    def _describe(self, value: Any, transfer: Transfer) -> dict[str, Any]:
        cls = type(value)
        described: dict[str, Any] = {"class": self._export(cls, transfer, False)}
        if issubclass(cls, BaseException):
            described["content"] = self.put(exceptions.arguments_of(value), transfer)
            described["rest"] = exceptions.put_rest(value, lambda part: self.put(part, transfer), own=False)
        elif (base := content_base(cls)) in IMMUTABLE:
            described["content"] = self.put(_exactly(value, base), transfer)
        hashes: Any = cls.__hash__  # None in a class that has none
        if hashes not in (None, object.__hash__):
            try:
                described["hash"] = hash(value)
            except Exception:
                pass  # asked for again when it is needed
        return described

    def _get(self, wire: list[Any], depth: int) -> Any:
        tag, *parts = wire
        if tag == "shared":
            return self.shared.entry(parts[0]).value
        if tag == "mine":
            return self._mirror(parts[0])
        if tag == "yours":
            return self.own(parts[0])
        if tag == "type":
            return values.type_named(*parts)
        if tag == "exception":
            return exceptions.get(parts, self.get)
        if tag == "traceback":
            return exceptions.get_traceback(parts)
        if tag in ("member", "named-tuple"):
            return values.get_member(tag, parts[0], parts[1], self.get(parts[2]))
        if tag in ("numpy", "numpy-type", "dtype"):
            return arrays.get(tag, *parts)
        if tag == "function" and self.accepts_functions:
            return values.function_named(*parts)
        return library.get(tag, parts, self.get, self.accepts_functions)

    def handed_over(self, value: Any) -> bool:
        """Whether the other side may use this object of ours."""
        number = self._my_numbers.get(id(value))
        return number is not None and number not in self._only_named

    def own(self, number: Any) -> Any:
        """An object of this side that was handed over before."""
        try:
            return self._mine[number]
        except (KeyError, TypeError):
            raise Garbled("an object that was never handed over") from None

    def _mirror(self, number: Any) -> Any:
        known = self._theirs.get(number)
        if known is not None:
            return known
        if number in self._kept:
            return self._kept[number]
        if number not in self._described:
            raise Garbled("an object that was not introduced")
        described = self._described[number]
        if "bases" in described:
            self._kept[number] = self._mirror_class(number, described)
            return self._kept[number]
        cls = self._mirror(described["class"])
        if not isinstance(cls, MirrorClass):
            raise Garbled("an object whose class is none")
        content = self.get(described["content"]) if "content" in described else None
        made = make_instance(cls, number, content, described.get("hash"))
        if "rest" in described and isinstance(made, BaseException):
            exceptions.get_rest(made, described["rest"], self.get)
        if type(made).__weakrefoffset__:
            self._theirs[number] = made
            weakref.finalize(made, self._end, number).atexit = False
        else:
            self._kept[number] = made
        return made

    def _end(self, number: int) -> None:
        self._gone.append(number)

    def _mirror_class(self, number: int, described: dict[str, Any]) -> type:
        originals = [self.get(base) for base in described["bases"]]
        bases = tuple(filter(None, map(_base_here, originals)))
        try:
            made = make_class(self, described, bases, originals)
        except TypeError:  # they go together over there only
            made = make_class(self, described, next(((b,) for b in bases if issubclass(b, BaseException)), ()), ())
        type.__setattr__(made, "_bassline_number", number)
        for base in originals:
            if isinstance(base, ABCMeta) and base.__module__ in ("collections.abc", "numbers", "contextlib", "os"):
                base.register(made)  # so that isinstance(x, Mapping) holds here too
        return made

    def _take_back(self, transfer: Transfer) -> None:
        self._gone += transfer.ended
        for number in transfer.waiting:
            self.shared.forget(number)
        for number in transfer.exported:
            del self._my_numbers[id(self._mine.pop(number))]


def _exactly(value: Any, base: Any) -> Any:
    """The built-in value inside one of a derived class."""
    if base is tuple:
        return tuple(tuple.__iter__(value))
    if base is frozenset:
        return frozenset(frozenset.__iter__(value))
    read: dict[Any, Callable[[Any], Any]] = {
        int: int.__int__,
        float: float.__float__,
        complex: complex.__complex__,
        str: str.__str__,
        bytes: lambda v: bytes(memoryview(v)),
    }
    exact = read[base](value)
    return exact if type(exact) is base else base.__add__(exact, base())


def _base_here(base: Any) -> type | None:
    """What a mirror derives from in place of ``base``; None where that would be of no use on this side."""
    if (
        isinstance(base, MirrorClass)
        or base in IMMUTABLE
        or (isinstance(base, type) and issubclass(base, BaseException))
    ):
        taken: type = base
        return taken
    content = content_base(base) if isinstance(base, type) else None
    return content if content in IMMUTABLE else None
