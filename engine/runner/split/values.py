"""Plain values: what crosses by value. Each comes out as *exactly* the type it was, whatever the sender says.

On the wire a value is a JSON scalar (None, bool, str, float, an int of 64 bits) or a list that begins with a tag.
"""

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import ipaddress
import pathlib
import re
import sys
import time
import types
import uuid
import zoneinfo
from collections.abc import Callable, Sequence
from typing import Any

DEEPEST = 100  # tuples in tuples; lists and dicts may be nested at will
_INT64 = range(-(2**63), 2**63)

# Where a class is looked up that came by its name. Modules with an exception that ends or skips a test are not here.
_MODULES = frozenset(
    """
argparse array ast asyncio.exceptions asyncio.queues binascii builtins calendar collections collections.abc
concurrent.futures._base configparser contextlib copy csv dataclasses datetime dbm decimal email.errors email.message
enum fractions ftplib functools getopt graphlib html.parser http http.client http.cookies imaplib io ipaddress itertools
json json.decoder json.encoder locale logging lzma mailbox math multiprocessing netrc numbers operator pathlib plistlib
pickle queue random re select shutil signal smtplib socket sqlite3 ssl statistics string struct subprocess tarfile
textwrap threading time tokenize tomllib types typing urllib.error urllib.parse uuid wave xml.dom xml.dom.minidom
xml.etree.ElementTree xml.parsers.expat xmlrpc.client zipfile zlib zoneinfo zoneinfo._common
""".split()  # noqa: SIM905
)

# Built-in types that have no name among the built-ins.
_UNNAMED = {
    getattr(types, f"{name}Type"): f"{name}Type"
    for name in ("None", "Ellipsis", "NotImplemented", "Function", "Method", "BuiltinFunction", "Generator")
}


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
    ipaddress.IPv4Address: Plain("ipv4-address", _text, ipaddress.IPv4Address),
    ipaddress.IPv6Address: Plain("ipv6-address", _text, ipaddress.IPv6Address),
    ipaddress.IPv4Network: Plain("ipv4-network", _text, ipaddress.IPv4Network),
    ipaddress.IPv6Network: Plain("ipv6-network", _text, ipaddress.IPv6Network),
    ipaddress.IPv4Interface: Plain("ipv4-interface", _text, ipaddress.IPv4Interface),
    ipaddress.IPv6Interface: Plain("ipv6-interface", _text, ipaddress.IPv6Interface),
    pathlib.PureWindowsPath: Plain("windows-path", _text, pathlib.PureWindowsPath),
    time.struct_time: Plain("struct-time", tuple, lambda *parts: time.struct_time(parts)),
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
        return other(value, depth)
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


def name_of_type(kind: type) -> list[str] | None:
    """Where to find a class of the standard library, or an exception of numpy's; None for every other."""
    if kind in _UNNAMED:
        return ["types", _UNNAMED[kind]]
    path = [str(kind.__module__), kind.__qualname__]
    if path[0] not in _MODULES and not _is_numpy_exception(kind):
        return None
    try:
        return path if type_named(*path) is kind else None
    except Garbled:
        return None


@functools.cache
def type_named(module: str, name: str) -> type:
    """The class by that name, from where it is defined. Raises Garbled when it is not one that may cross."""
    of_numpy = isinstance(module, str) and module.partition(".")[0] == "numpy" and module in sys.modules
    if module in _MODULES or of_numpy:
        found = functools.reduce(lambda at, part: getattr(at, part, None), name.split("."), _import(module))
        if module == "types" and name in _UNNAMED.values():
            unnamed: type = getattr(types, name)
            return unnamed
        if isinstance(found, type) and found.__module__ == module and (not of_numpy or _is_numpy_exception(found)):
            return found
    raise Garbled(f"a class that cannot be named: {module}.{name}"[:200])


def _is_numpy_exception(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] == "numpy" and issubclass(kind, Exception)


def put_member(value: Any, convert: Callable[[Any], Any]) -> list[Any] | None:
    """A member of an enum, or a named tuple, that the standard library defines, such as ``HTTPStatus.OK``."""
    kind = type(value)
    member = isinstance(kind, enum.EnumMeta)
    if not member and not (issubclass(kind, tuple) and hasattr(kind, "_make")):
        return None
    name = name_of_type(kind)
    if name is None:
        return None
    if member:
        return ["member", *name, convert(value.value)]
    return ["named-tuple", *name, convert(tuple(tuple.__iter__(value)))]


def get_member(tag: str, module: Any, name: Any, value: Any) -> Any:
    kind: Any = type_named(module, name)
    made: Any = None
    if tag == "member" and isinstance(kind, enum.EnumMeta):
        made = kind(value)
    elif tag == "named-tuple" and issubclass(kind, tuple) and hasattr(kind, "_make") and type(value) is tuple:
        made = kind._make(value)
    if type(made) is not kind:
        raise Garbled("a value of another type than it says")
    return made


def name_of_function(value: Any) -> list[str] | None:
    """Where to find a function of the standard library or numpy, such as ``len``, ``str.lower`` or ``np.sin``."""
    module = getattr(value, "__module__", None) or getattr(getattr(value, "__objclass__", None), "__module__", None)
    name = getattr(value, "__qualname__", None)
    if type(value).__name__ == "ufunc" and type(value).__module__ == "numpy":
        module, name = "numpy", value.__name__
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    if module.partition(".")[0] not in (*sys.stdlib_module_names, "builtins", "numpy"):
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
