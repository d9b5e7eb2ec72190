"""Whether two lists hold the very same objects, in the time of a memory comparison.

Asked at every question for every container that both sides share, so it is worth CPython's layout of a list where that
is as expected; a trial at import decides, and any other interpreter compares object by object.
"""

import ctypes
import struct
from collections.abc import Callable
from operator import is_
from typing import Any

_SHORT = 256  # below, object by object is as fast
_ITEMS = struct.calcsize("nPn")  # where a list keeps the address of its items: behind count, type and length
_POINTER = struct.calcsize("P")

Same = Callable[[list[Any], list[Any]], bool]


def _one_by_one(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))


def _by_memory() -> Same | None:
    """The fast way; None where lists are laid out in another way."""
    try:
        compare = ctypes.CDLL(None).memcmp
        compare.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
        address = ctypes.c_void_p.from_address
        sample = [object() for _ in range(3)]
        start = address(id(sample) + _ITEMS).value
        # The size first: with another layout ``start`` may be no address at all.
        if list.__basicsize__ != _ITEMS + 2 * _POINTER or not start:
            return None
        if ctypes.string_at(start, 3 * _POINTER) != struct.pack("3P", *map(id, sample)):
            return None
    except (OSError, AttributeError, ValueError):
        return None

    def same(left: list[Any], right: list[Any]) -> bool:
        size = len(left)
        if size != len(right):
            return False
        if size < _SHORT:
            return all(map(is_, left, right))
        at = address(id(left) + _ITEMS).value, address(id(right) + _ITEMS).value
        return not compare(*at, size * _POINTER)

    return same


same: Same = _by_memory() or _one_by_one
