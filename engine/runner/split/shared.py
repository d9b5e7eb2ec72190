"""Lists, dicts, sets and the like: each side holds its own, and whoever hands over the word tells what changed.

Only one side runs at a time, so both see one and the same container, in whatever way it is reached. A container that
one side has let go of is no longer kept alike.
"""

import collections
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import is_
from typing import Any

from engine.runner.split.values import Garbled, dtype_name, dtype_of, pack, unpack

_ONLY_HERE = 2  # references to a container that nobody but the table holds: the table's, and the question's own


@dataclass(frozen=True)
class Kind:
    """How one type of container is read, filled and made. ``extra`` is what it is made with besides its content."""

    tag: str
    read: Callable[[Any], list[Any]]
    fill: Callable[[Any, list[Any]], None]
    make: Callable[[Any], Any]
    extra: Callable[[Any], Any] = lambda value: None
    raw: bool = False  # its content is one piece of data, compared by what it says


def _fill_set(value: set[Any], items: list[Any]) -> None:
    value.clear()
    value.update(items)


def _read_dict(value: dict[Any, Any]) -> list[Any]:
    return [part for pair in dict.items(value) for part in pair]


def _fill_dict(value: dict[Any, Any], parts: list[Any]) -> None:
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    dict.clear(value)
    for key, item in pairs:
        value[key] = item


def _fill_deque(value: "collections.deque[Any]", items: list[Any]) -> None:
    value.clear()
    value.extend(items)


def _fill_list(value: list[Any], items: list[Any]) -> None:
    value[:] = items


def _fill_bytes(value: bytearray, parts: list[Any]) -> None:
    value[:] = unpack(parts[0])


def _dict_kind(tag: str, kind: type) -> Kind:
    return Kind(tag, _read_dict, _fill_dict, lambda extra: kind())


KINDS: dict[type, Kind] = {
    list: Kind("list", list, _fill_list, lambda extra: []),
    dict: _dict_kind("dict", dict),
    collections.OrderedDict: _dict_kind("ordered-dict", collections.OrderedDict),
    collections.Counter: _dict_kind("counter", collections.Counter),
    collections.defaultdict: Kind(
        "default-dict", _read_dict, _fill_dict, collections.defaultdict, lambda value: value.default_factory
    ),
    set: Kind("set", list, _fill_set, lambda extra: set()),
    collections.deque: Kind(
        "deque", list, _fill_deque, lambda extra: collections.deque(maxlen=extra), lambda value: value.maxlen
    ),
    bytearray: Kind("bytearray", lambda v: [pack(v)], _fill_bytes, lambda extra: bytearray(), raw=True),
}


def _read_array(value: Any) -> list[Any]:
    return [pack(value.tobytes()), tuple(value.shape), dtype_name(value)]


def _fill_array(value: Any, parts: list[Any]) -> None:
    data, shape, name = parts
    if dtype_of(name) != value.dtype:
        raise Garbled("an array changed its type")
    value[...] = importlib.import_module("numpy").frombuffer(unpack(data), value.dtype).reshape(shape)


def _make_array(extra: Any) -> Any:
    name, shape = extra
    return importlib.import_module("numpy").zeros(shape, dtype_of(name))


_ARRAY = Kind("ndarray", _read_array, _fill_array, _make_array, lambda v: (dtype_name(v), tuple(v.shape)), raw=True)
_BY_TAG = {kind.tag: kind for kind in (*KINDS.values(), _ARRAY)}


def kind_of(value: Any) -> Kind | None:
    """How ``value`` is shared; None when it is no container."""
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        return _ARRAY
    return KINDS.get(kind)


def kind_named(tag: Any) -> Kind:
    if not isinstance(tag, str) or tag not in _BY_TAG:
        raise Garbled("a container of no known kind")
    return _BY_TAG[tag]


@dataclass
class Entry:
    value: Any
    kind: Kind
    last: list[Any]  # its content when both sides last knew the same

    def changed(self) -> bool:
        if self.kind.raw:
            return self.kind.read(self.value) != self.last
        now = self.value if type(self.value) is list else self.kind.read(self.value)
        return len(now) != len(self.last) or not all(map(is_, now, self.last))


class Shared:
    """The containers that both sides hold now, by number. ``first``: this side gives even or odd numbers."""

    def __init__(self, first: int):
        self._next, self._theirs = 2 + first, 1 - first
        self._entries: dict[int, Entry] = {}
        self._numbers: dict[int, int] = {}  # id(container) -> number; the entry keeps it alive

    def __len__(self) -> int:
        return len(self._entries)

    def number(self, value: Any) -> int | None:
        return self._numbers.get(id(value))

    def add(self, value: Any, kind: Kind) -> int:
        number, self._next = self._next, self._next + 2
        self._enter(number, value, kind)
        return number

    def take(self, number: Any, kind: Kind, extra: Any) -> Any:
        """A new one of the other side's, empty."""
        if type(number) is not int or number % 2 != self._theirs or number in self._entries:
            raise Garbled("a container's number that cannot be")
        self._enter(number, kind.make(extra), kind)
        return self._entries[number].value

    def _enter(self, number: int, value: Any, kind: Kind) -> None:
        self._entries[number], self._numbers[id(value)] = Entry(value, kind, []), number

    def entry(self, number: Any) -> Entry:
        try:
            return self._entries[number]
        except (KeyError, TypeError):
            raise Garbled("a container that is not shared") from None

    def forget(self, number: Any) -> None:
        entry = self._entries.pop(number, None) if type(number) is int else None
        if entry is not None:
            del self._numbers[id(entry.value)]

    def let_go(self) -> list[int]:
        """Takes out those that only the table still holds, and with them what only these held."""
        numbers, taken = [n for n, entry in self._entries.items() if sys.getrefcount(entry.value) <= _ONLY_HERE], []
        while numbers:
            number = numbers.pop()
            if number not in self._entries or sys.getrefcount(self._entries[number].value) > _ONLY_HERE:
                continue
            numbers += filter(None, [self._numbers.get(id(part)) for part in self._entries[number].last])
            self.forget(number)
            taken.append(number)
        return taken

    def changes(self) -> Iterator[tuple[int, Entry, list[Any]]]:
        """Number, entry and new content of each that has changed since both sides knew the same."""
        for number, entry in list(self._entries.items()):
            if entry.changed():
                yield number, entry, entry.kind.read(entry.value)
