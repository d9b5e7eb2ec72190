"""Plain values: what crosses by value. Each comes out as *exactly* the type it was, whatever the sender says.

On the wire a value is a JSON scalar (None, bool, str, float, an int of 64 bits) or a list that begins with a tag.
"""

import base64
import collections
import dataclasses
import datetime
import decimal
import fractions
import functools
import importlib
import pathlib
import re
import sys
import types
import uuid
import zoneinfo
from collections.abc import Callable, Sequence
from typing import Any

DEEPEST = 100  # tuples in tuples; lists and dicts may be nested at will
_INT64 = range(-(2**63), 2**63)

# Where a class is looked up that came by its name. Modules with an exception that ends or skips a test are not here.
_MODULES = """
argparse array ast asyncio.exceptions binascii builtins calendar collections collections.abc configparser contextlib
copy csv dataclasses datetime decimal email.errors enum fractions functools getopt graphlib http io ipaddress itertools
json json.decoder math multiprocessing numbers operator pathlib pickle queue random re shutil socket sqlite3 ssl
statistics string struct subprocess tarfile tomllib types typing urllib.error uuid xml.etree.ElementTree zipfile zlib
zoneinfo
""".split()  # noqa: SIM905


class CannotCross(Exception):
    """A value that has no form on the wire; the text says which and why."""


class Garbled(Exception):
    """Something that an honest box cannot send."""


@dataclasses.dataclass(frozen=True)
class Plain:
    """How one immutable type crosses: taken apart into values, and built from them."""

    tag: str
    parts: Callable[[Any], Sequence[Any]]
    build: Callable[..., Any]


def pack(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def unpack(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _fields(*names: str) -> Callable[[Any], Sequence[Any]]:
    return lambda value: [getattr(value, name) for name in names]


def _text(value: Any) -> Sequence[Any]:
    return (str(value),)


def _clock(kind: type) -> Callable[..., Any]:
    return lambda *parts: kind(*parts[:-1], fold=parts[-1])


_DAY, _TIME = ("year", "month", "day"), ("hour", "minute", "second", "microsecond", "tzinfo", "fold")

PLAIN: dict[type, Plain] = {
    tuple: Plain("tuple", lambda v: v, lambda *parts: parts),
    bytes: Plain("bytes", lambda v: (pack(v),), unpack),
    complex: Plain("complex", _fields("real", "imag"), complex),
    frozenset: Plain("frozenset", tuple, lambda *parts: frozenset(parts)),
    range: Plain("range", _fields("start", "stop", "step"), range),
    slice: Plain("slice", _fields("start", "stop", "step"), slice),
    types.EllipsisType: Plain("ellipsis", lambda v: (), lambda: ...),
    types.NotImplementedType: Plain("not-implemented", lambda v: (), lambda: NotImplemented),
    decimal.Decimal: Plain("decimal", _text, decimal.Decimal),
    fractions.Fraction: Plain("fraction", _fields("numerator", "denominator"), fractions.Fraction),
    datetime.date: Plain("date", _fields(*_DAY), datetime.date),
    datetime.time: Plain("time", _fields(*_TIME), _clock(datetime.time)),
    datetime.datetime: Plain("datetime", _fields(*_DAY, *_TIME), _clock(datetime.datetime)),
    datetime.timedelta: Plain("timedelta", _fields("days", "seconds", "microseconds"), datetime.timedelta),
    datetime.timezone: Plain("timezone", lambda v: v.__getinitargs__(), datetime.timezone),
    zoneinfo.ZoneInfo: Plain("zone", _fields("key"), zoneinfo.ZoneInfo),
    uuid.UUID: Plain("uuid", _text, uuid.UUID),
    pathlib.PosixPath: Plain("path", _text, pathlib.PosixPath),
    pathlib.PurePosixPath: Plain("pure-path", _text, pathlib.PurePosixPath),
    re.Pattern: Plain("pattern", _fields("pattern", "flags"), re.compile),
}
_BY_TAG = {plain.tag: (kind, plain.build) for kind, plain in PLAIN.items()}

Convert = Callable[[Any, int], Any]  # a value and how deep it lies


def put(value: Any, other: Convert, depth: int = 0) -> Any:
    """``value`` for the wire; ``other`` does it for what is not plain. Raises CannotCross."""
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is float:
        return value
    if kind is int:
        return value if value in _INT64 else ["int", hex(value)]
    plain = PLAIN.get(kind)
    if plain is None:
        scalar = _put_numpy(value)
        return other(value, depth) if scalar is None else scalar
    if depth > DEEPEST:
        raise CannotCross(f"a value is nested more than {DEEPEST} deep")
    return [plain.tag, *[put(part, other, depth + 1) for part in plain.parts(value)]]


def get(wire: Any, other: Convert, depth: int = 0) -> Any:
    """The value of ``wire``. Raises Garbled, whatever is wrong with it."""
    if not isinstance(wire, list):
        if isinstance(wire, dict):
            raise Garbled("an object where a value should be")
        return wire
    try:
        tag, *parts = wire
        if tag == "int":
            return int(parts[0], 16)
        if tag == "numpy":
            return _get_numpy(*parts)
        if tag not in _BY_TAG:
            return other(wire, depth)
        if depth > DEEPEST:
            raise Garbled("a value is nested too deep")
        kind, build = _BY_TAG[tag]
        value = build(*[get(part, other, depth + 1) for part in parts])
    except Garbled:
        raise
    except Exception as error:
        raise Garbled(f"a value that is none: {type(error).__name__}") from None
    if type(value) is not kind:
        raise Garbled("a value of another type than it says")
    return value


def _put_numpy(value: Any) -> list[Any] | None:
    """A numpy number, exactly; None for everything else."""
    if type(value).__module__ != "numpy" or not isinstance(value, sys.modules["numpy"].generic):
        return None
    if value.dtype.hasobject:
        raise CannotCross("a numpy value that holds objects")
    return ["numpy", dtype_name(value), pack(value.tobytes())]


def dtype_name(value: Any) -> str:
    """``value``'s dtype in a form that ``dtype_of`` reads."""
    if value.dtype.hasobject or value.dtype.names:
        raise CannotCross("a numpy array of objects or records")
    return str(value.dtype.str)


def dtype_of(name: str) -> Any:
    if re.fullmatch(r"[<>|=]?[biufcSUMm]\d*(\[\w+\])?", name) is None:
        raise Garbled("a numpy type that is none")
    return importlib.import_module("numpy").dtype(name)


def _get_numpy(name: str, data: str) -> Any:
    dtype = dtype_of(name)
    return importlib.import_module("numpy").frombuffer(unpack(data), dtype)[0]


def name_of_type(kind: type) -> list[str] | None:
    """Where to find a class of the standard library; None for every other."""
    if kind.__module__ not in _MODULES:
        return None
    path = [kind.__module__, kind.__qualname__]
    try:
        return path if type_named(*path) is kind else None
    except Garbled:
        return None


@functools.cache
def type_named(module: str, name: str) -> type:
    """The class of the standard library by that name. Raises Garbled when it is not one that may cross."""
    if module in _MODULES:
        found = functools.reduce(lambda at, part: getattr(at, part, None), name.split("."), _import(module))
        if isinstance(found, type):
            return found
    raise Garbled(f"a class that cannot be named: {module}.{name}"[:200])


def name_of_function(value: Any) -> list[str] | None:
    """Where to find a function of the standard library, such as ``len``, ``math.sqrt`` or ``str.lower``."""
    module = getattr(value, "__module__", None) or getattr(getattr(value, "__objclass__", None), "__module__", None)
    name = getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    if module.partition(".")[0] not in sys.stdlib_module_names and module != "builtins":
        return None
    try:
        return [module, name] if function_named(module, name) is value else None
    except (AttributeError, ImportError):
        return None


def function_named(module: str, name: str) -> Any:
    """For the candidate's side only: whoever names a function gets it."""
    return functools.reduce(getattr, name.split("."), _import(module))


def _import(module: str) -> Any:
    return sys.modules.get(module) or importlib.import_module(module)


IMMUTABLE: tuple[type, ...] = (int, float, complex, str, bytes, tuple, frozenset)  # a mirror may derive from these
CONTAINERS: tuple[type, ...] = (
    list,
    dict,
    set,
    bytearray,
    collections.deque,
    collections.OrderedDict,
    collections.defaultdict,
    collections.Counter,
)
