"""What a candidate's call gave, as data: exact types by tag, and never by what an object says of itself.

Runs inside a candidate's box. On top of ``split/values``, whose tags stand for what crosses by value, are those of
containers, of numpy's arrays and of whatever has no value that could be written down; ``engine.elicitation.values``
reads them. The standard library only.
"""

import collections
import dataclasses
import enum
import itertools
import sys
import types
from typing import Any

from engine.runner.split import values

ITEMS = 20  # of an iterator that are looked at; it may be endless
_NODES = 4000  # values inside one result
_DEEPEST = 40
_TEXT = 20_000  # characters, or bytes, of one string
_SHOWN = 200  # characters of an object's repr
_VIEWS = tuple(type(getattr({}, name)()) for name in ("keys", "values", "items"))
_SEQUENCES: dict[type, str] = {list: "list", set: "set", collections.deque: "deque"}
_MAPPINGS: dict[type, str] = {
    dict: "dict",
    collections.OrderedDict: "OrderedDict",
    collections.defaultdict: "defaultdict",
    collections.Counter: "Counter",
}


class TooLarge(Exception):
    """More than is looked at; two such results cannot be compared."""


class Encoder:
    """Encodes one result. ``encode`` raises TooLarge; iterators run code of the candidate, which may raise anything."""

    def __init__(self) -> None:
        self._nodes = 0

    def encode(self, value: Any, depth: int = 0) -> Any:
        self._nodes += 1
        if self._nodes > _NODES or depth > _DEEPEST:
            raise TooLarge
        if type(value) in (str, bytes, bytearray) and len(value) > _TEXT:
            raise TooLarge
        if type(value) is int and value.bit_length() > _TEXT:
            raise TooLarge
        try:
            return values.put(value, self._other, depth)
        except values.CannotCross:
            raise TooLarge from None

    def _other(self, value: Any, depth: int) -> Any:
        kind: Any = type(value)
        self._nodes += 1
        if self._nodes > _NODES or depth > _DEEPEST:
            raise TooLarge
        if kind in _SEQUENCES:
            return [_SEQUENCES[kind], *(self.encode(item, depth + 1) for item in kind.__iter__(value))]
        if kind in _MAPPINGS:
            pairs = itertools.chain.from_iterable(dict.items(value))
            return [_MAPPINGS[kind], *(self.encode(part, depth + 1) for part in pairs)]
        if kind is bytearray:
            return ["bytearray", values.pack(bytes(value))]
        if kind in _VIEWS:
            return ["view", kind.__name__, *(self.encode(item, depth + 1) for item in value)]
        if issubclass(kind, enum.Enum):
            return ["member", kind.__qualname__, str(value._name_), self.encode(value._value_, depth + 1)]
        if issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
            parts = [self.encode(part, depth + 1) for part in tuple.__iter__(value)]
            return ["named", kind.__qualname__, list(map(str, kind._fields)), *parts]
        if str(kind.__module__).partition(".")[0] == "numpy":
            return self._of_numpy(value, depth)
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | types.MethodType):
            return ["opaque", kind.__name__, str(getattr(value, "__qualname__", ""))[:_SHOWN], []]
        if hasattr(kind, "__next__"):
            return self._iterator(value, depth)
        return self._object(value, depth)

    def _iterator(self, value: Any, depth: int) -> list[Any]:
        first = list(itertools.islice(value, ITEMS + 1))
        items = [self.encode(item, depth + 1) for item in first[:ITEMS]]
        return ["iterator", len(first) <= ITEMS, *items]

    def _of_numpy(self, value: Any, depth: int) -> list[Any]:
        numpy = sys.modules["numpy"]
        if isinstance(value, numpy.ndarray) and not value.dtype.hasobject and value.dtype.names is None:
            if value.size > _NODES:
                raise TooLarge
            return ["ndarray", str(value.dtype), self.encode(value.tolist(), depth + 1)]
        if isinstance(value, numpy.generic) and value.dtype.names is None and not value.dtype.hasobject:
            return ["numpy", str(value.dtype), self.encode(value.item(), depth + 1)]
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> list[Any]:
        """Of a class of its own: its repr, which is shown and decides nothing, and the fields of a data class."""
        kind = type(value)
        fields = []
        if dataclasses.is_dataclass(kind):
            state = getattr(value, "__dict__", {})
            named = [(f.name, state[f.name]) for f in dataclasses.fields(kind) if f.name in state]
            fields = [[str(name), self.encode(part, depth + 1)] for name, part in named]
        try:
            shown = str(repr(value))[:_SHOWN]
        except Exception as error:
            shown = f"<{kind.__name__}, whose repr raises {type(error).__name__}>"
        return ["opaque", kind.__qualname__, shown, fields]


def encode(value: Any) -> Any:
    """``value`` for one line of JSON."""
    try:
        wire = Encoder().encode(value)
        if not _is_small(wire):
            raise TooLarge
        return wire
    except TooLarge:
        return ["large", type(value).__qualname__]


def _is_small(wire: Any) -> bool:
    """``values.put`` counts nothing of what it takes apart by itself."""
    left, count = [wire], 0
    while left and count <= 2 * _NODES:
        part = left.pop()
        count += 1
        if type(part) is list:
            left += part
    return count <= 2 * _NODES
