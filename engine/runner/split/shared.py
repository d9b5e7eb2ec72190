"""Lists, dicts, sets and the like: each side holds a copy, and every message carries the changes.

Only one side runs at a time, so both see the same container, however they reach it. Once one side has dropped a
container, the copies are no longer synchronized.
"""

import argparse
import array
import collections
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from engine.runner.split import arrays
from engine.runner.split.identity import same
from engine.runner.split.values import Garbled

_ONLY_HERE = 2  # references to a container that nobody but the table holds: the table's, and the question's own
_MANY = 64  # containers that are worth a look at all of them at once
_LONG = 256  # items of a list
_OFTEN, _SELDOM = 8, 1000  # how often settled containers are looked at for being let go of


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
    parts: list[Any] = [None] * (2 * len(value))
    parts[::2], parts[1::2] = list(dict.keys(value)), list(dict.values(value))
    return parts


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
    value[:] = parts[0]


def _fill_machine_array(value: "array.array[Any]", parts: list[Any]) -> None:
    if type(parts[0]) is not bytes:
        raise Garbled("an array without data")
    del value[:]
    value.frombytes(parts[0])


def _fill_namespace(value: Any, parts: list[Any]) -> None:
    if not all(type(name) is str for name in parts[::2]):
        raise Garbled("an attribute without a name")
    vars(value).clear()
    vars(value).update(zip(parts[::2], parts[1::2], strict=True))


def _namespace(tag: str, kind: type) -> Kind:
    return Kind(tag, lambda v: _read_dict(vars(v)), _fill_namespace, lambda extra: kind())


def _fill_data(value: Any, parts: list[Any]) -> None:
    value.data = parts[0]


def _fill_maps(value: "collections.ChainMap[Any, Any]", maps: list[Any]) -> None:
    value.maps[:] = maps


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
    bytearray: Kind("bytearray", lambda v: [bytes(v)], _fill_bytes, lambda extra: bytearray(), raw=True),
    array.array: Kind(
        "array", lambda v: [v.tobytes()], _fill_machine_array, array.array, lambda v: v.typecode, raw=True
    ),
    collections.ChainMap: Kind("chain-map", lambda v: list(v.maps), _fill_maps, lambda extra: collections.ChainMap()),
    collections.UserDict: Kind("user-dict", lambda v: [v.data], _fill_data, lambda extra: collections.UserDict()),
    collections.UserList: Kind("user-list", lambda v: [v.data], _fill_data, lambda extra: collections.UserList()),
    collections.UserString: Kind(
        "user-string", lambda v: [v.data], _fill_data, lambda extra: collections.UserString("")
    ),
    types.SimpleNamespace: _namespace("namespace", types.SimpleNamespace),
    argparse.Namespace: _namespace("arguments", argparse.Namespace),
}

_ARRAYS = (
    Kind("array-of-numbers", arrays.read, arrays.fill, arrays.make, arrays.describe, raw=True),
    Kind("masked-array", arrays.read_masked, arrays.fill_masked, arrays.make_masked, arrays.describe_masked, raw=True),
    Kind("object-array", arrays.read_objects, arrays.fill_objects, arrays.make_of_objects, lambda v: tuple(v.shape)),
)
_BY_TAG = {kind.tag: kind for kind in (*KINDS.values(), *_ARRAYS)}


def kind_of(value: Any) -> Kind | None:
    """How ``value`` is shared; None when it is no container."""
    kind = KINDS.get(type(value))
    if kind is not None:
        return kind
    tag = arrays.tag_of(value)
    return None if tag is None else _BY_TAG[tag]


def kind_named(tag: Any) -> Kind:
    if not isinstance(tag, str) or tag not in _BY_TAG:
        raise Garbled("a container of no known kind")
    return _BY_TAG[tag]


@dataclass
class SharedContainer:
    value: Any
    kind: Kind
    last: list[Any]  # its content when both sides last knew the same

    def changed(self) -> bool:
        now = self.value if type(self.value) is list else self.kind.read(self.value)
        return now != self.last if self.kind.raw else not same(now, self.last)


_FLAT: dict[type, Callable[[list[Any]], list[Any]]] = {
    list: lambda values: list(chain.from_iterable(values)),
    set: lambda values: list(chain.from_iterable(values)),
    dict: lambda values: list(chain(chain.from_iterable(values), chain.from_iterable(map(dict.values, values)))),
}


def _is_long(entry: SharedContainer) -> bool:
    """A long list is compared where it lies, without a copy."""
    return type(entry.value) is list and len(entry.value) > _LONG


class Settled:
    """Containers of one built-in type that have been quiet for a while: one look tells that none has changed."""

    def __init__(self, kind: type, values: list[Any]):
        self._values, self._flatten = values, _FLAT[kind]
        self._sizes, self._flat = list(map(len, values)), self._flatten(values)

    def unchanged(self) -> bool:
        return list(map(len, self._values)) == self._sizes and same(self._flatten(self._values), self._flat)

    def all_held(self) -> bool:
        """Whether somebody besides this and the table holds each of them."""
        return min(map(sys.getrefcount, self._values)) > _ONLY_SETTLED


_probe = [object()]
_ONLY_SETTLED = next(map(sys.getrefcount, _probe)) + 1  # the list's own, the question's own, and the table's


class Shared:
    """The containers that both sides hold now, by number. ``first``: this side gives even or odd numbers."""

    def __init__(self, first: int):
        self._next, self._theirs = 2 + first, 1 - first
        self._entries: dict[int, SharedContainer] = {}
        self._numbers: dict[int, int] = {}  # id(container) -> number; the entry keeps it alive
        self._young: set[int] = set()  # those that are not settled
        self._settled: list[Settled] = []
        self._looks = 0

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
        self._entries[number], self._numbers[id(value)] = SharedContainer(value, kind, []), number
        self._young.add(number)

    def entry(self, number: Any) -> SharedContainer:
        try:
            return self._entries[number]
        except (KeyError, TypeError):
            raise Garbled("a container that is not shared") from None

    def agreed(self, number: int, content: list[Any]) -> None:
        """Both sides know now that ``content`` is what the container holds."""
        entry = self._entries.get(number)
        if entry is None:
            return  # nobody here held it any more when the message was closed
        entry.last = content
        if number not in self._young:
            self._unsettle()

    def forget(self, number: Any) -> None:
        entry = self._entries.pop(number, None) if type(number) is int else None
        if entry is None:
            return
        del self._numbers[id(entry.value)]
        if number in self._young:
            self._young.remove(number)
        else:
            self._unsettle()

    def let_go(self) -> list[int]:
        """Takes out those that only the table still holds, and with them what only these held."""
        self._looks += 1
        often = self._looks < _OFTEN or self._looks % (1 + (len(self._entries) - len(self._young)) // _SELDOM) == 0
        if often and not all(settled.all_held() for settled in self._settled):
            self._unsettle()
        numbers = [n for n in self._young if sys.getrefcount(self._entries[n].value) <= _ONLY_HERE]
        taken = []
        while numbers:
            number = numbers.pop()
            if number not in self._entries or sys.getrefcount(self._entries[number].value) > _ONLY_HERE:
                continue
            inside = [self._numbers.get(id(part)) for part in self._entries[number].last]
            numbers += [n for n in inside if n is not None]
            self.forget(number)
            taken.append(number)
        return taken

    def changes(self) -> Iterator[tuple[int, SharedContainer, list[Any]]]:
        """Number, entry and new content of each that has changed since both sides knew the same."""
        if not all(settled.unchanged() for settled in self._settled):
            self._unsettle()
        quiet = True
        for number in sorted(self._young):
            entry = self._entries[number]
            if entry.changed():
                quiet = False
                yield number, entry, entry.kind.read(entry.value)
        if quiet and len(self._young) > max(_MANY, (len(self._entries) - len(self._young)) // 2):
            self._settle()

    def _settle(self) -> None:
        self._unsettle()
        for kind in _FLAT:
            numbers = [n for n, entry in self._entries.items() if type(entry.value) is kind and not _is_long(entry)]
            if numbers:
                self._settled.append(Settled(kind, [self._entries[n].value for n in numbers]))
                self._young.difference_update(numbers)
        self._looks = 0

    def _unsettle(self) -> None:
        self._settled.clear()
        self._young = set(self._entries)
