"""Results as ``runner/encoding`` hands them over: which are the same, how they read, and how a test writes them.

A result stays the tagged data that it came as; no object is made of it. Two are the same where ``==`` would say so:
1, 1.0 and True are, a list and a tuple are not, sets and dicts have no order, floats may differ by TOLERANCE.
"""

import ast
import base64
import math
from collections.abc import Sequence
from typing import Any

TOLERANCE = 1e-6  # of floats: relative, and absolute near zero
_NEAR_ZERO = 1e-9
_MAPPINGS = ("dict", "OrderedDict", "defaultdict", "Counter")
_SAME_TAG = {"frozenset": "set", "bytearray": "bytes", "named": "tuple"} | dict.fromkeys(_MAPPINGS, "dict")
_OPAQUE = ("opaque", "large", "function")
_DEEPEST = 100
_MOST = 20_000  # parts of one value

Wire = Any  # None, bool, int, float, str, or a list that begins with a tag


class NoSource(Exception):
    """A value that no test can write down."""


def tag(wire: Wire) -> str:
    return str(wire[0]) if isinstance(wire, list) and wire else ""


def is_well_formed(wire: Wire) -> bool:
    """Whether it is what a box sends of a value: a candidate may have spoken in its box's place."""
    left, count = [(wire, 0)], 0
    while left:
        part, depth = left.pop()
        count += 1
        if count > _MOST or depth > _DEEPEST or not isinstance(part, list | str | int | float | None):
            return False
        if isinstance(part, list):
            left += [(inner, depth + 1) for inner in part]
    return True


def number(wire: Wire) -> int | float | None:
    """The number that ``wire`` is, also numpy's and large ones; None for everything else."""
    if isinstance(wire, bool | int | float):
        return wire
    if tag(wire) == "int":
        return int(str(wire[1]), 16)
    return number(wire[2]) if tag(wire) == "numpy" else None


def same(one: Wire, other: Wire) -> bool:
    """Whether ``==`` would say so, floats by TOLERANCE. What cannot be compared is the same as nothing."""
    try:
        return _same(one, other)
    except (IndexError, TypeError, ValueError, RecursionError):
        return False  # garbled by a candidate


def _same(one: Wire, other: Wire) -> bool:
    a, b = number(one), number(other)
    if a is not None or b is not None:
        return a is not None and b is not None and _same_number(a, b)
    if not isinstance(one, list) or not isinstance(other, list):
        return type(one) is type(other) and one == other
    kind = _SAME_TAG.get(tag(one), tag(one))
    if kind in _OPAQUE or kind != _SAME_TAG.get(tag(other), tag(other)):
        return False
    mine, theirs = _parts(one), _parts(other)
    if kind in ("set", "dict"):
        return len(mine) == len(theirs) and _same_unordered(mine, theirs)
    return len(mine) == len(theirs) and all(map(_same, mine, theirs))


def _same_number(a: float, b: float) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        if a != a or b != b:
            return a != a and b != b
        try:
            return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=_NEAR_ZERO)
        except OverflowError:  # an int that no float can hold
            return False
    return a == b


def _same_unordered(mine: list[Wire], theirs: list[Wire]) -> bool:
    left = list(theirs)
    for part in mine:
        at = next((i for i, other in enumerate(left) if _same(part, other)), None)
        if at is None:
            return False
        del left[at]
    return True


def _parts(wire: list[Wire]) -> list[Wire]:
    """What is compared; pairs of a mapping, the bytes of bytes."""
    match wire:
        case [kind, *parts] if kind in _MAPPINGS:
            return [["tuple", *pair] for pair in zip(parts[::2], parts[1::2], strict=True)]
        case ["named", _, _, *parts]:
            return parts
        case ["numpy" | "ndarray", _, value]:
            return [value]
        case ["set" | "frozenset", *parts]:
            return list(parts)
    return wire[1:]


def decides(wire: Wire) -> bool:
    """Whether it can be compared at all: nothing in it is known by its repr alone."""
    if not isinstance(wire, list):
        return True
    return (
        tag(wire) not in _OPAQUE
        and not (tag(wire) == "iterator" and wire[1:2] != [True])
        and all(map(decides, wire[1:]))
    )


def has_float(wire: Wire) -> bool:
    if isinstance(wire, float):
        return True
    return isinstance(wire, list) and (tag(wire) == "complex" or any(map(has_float, wire[1:])))


def show(wire: Wire) -> str:
    """As Python would show it; of what has no such form, what it is."""
    try:
        return Writer(exact=False).text(wire)
    except (NoSource, IndexError, TypeError, ValueError, RecursionError):
        return "something that cannot be shown"


def source(wire: Wire) -> tuple[str, frozenset[str]]:
    """An expression that gives an equal value, and the modules that it needs. Raises NoSource."""
    writer = Writer(exact=True)
    try:
        text = writer.text(wire)
    except (IndexError, TypeError, ValueError, RecursionError):
        raise NoSource from None
    if not _is_plain(text):
        raise NoSource
    return text, frozenset(writer.modules)


def _is_plain(text: str) -> bool:
    """Whether nothing is called but what makes a value: it becomes a line of the user's tests."""
    try:
        tree = ast.parse(text, mode="eval")
        return all(isinstance(node, _PLAIN) and _named(node) in _NAMES for node in ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _named(node: ast.AST) -> str:
    """The name that a node looks up; empty for none."""
    if isinstance(node, ast.Attribute):
        return f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else "?"
    return node.id if isinstance(node, ast.Name) else ""


_CONSTRUCTORS = {
    "decimal": ("decimal", "Decimal"),
    "fraction": ("fractions", "Fraction"),
    "date": ("datetime", "date"),
    "timedelta": ("datetime", "timedelta"),
    "uuid": ("uuid", "UUID"),
    "path": ("pathlib", "Path"),
    "pure-path": ("pathlib", "PurePosixPath"),
    "windows-path": ("pathlib", "PureWindowsPath"),
    "zone": ("zoneinfo", "ZoneInfo"),
    **{
        f"ipv{version}-{kind}": ("ipaddress", f"IPv{version}{kind.title()}")
        for version in (4, 6)
        for kind in ("address", "network", "interface")
    },
}
_PLAIN = (
    *(ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.USub, ast.UAdd),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Load),
)
_NAMES = {
    *("", "set", "frozenset", "float", "bytearray", "range", "slice", "NotImplemented"),
    *(f"{module}.{name}" for module, name in _CONSTRUCTORS.values()),
    *("collections.OrderedDict", "collections.Counter", "collections.deque"),
    *("datetime.datetime", "datetime.time", "datetime.timezone", "numpy.array"),
    *("decimal", "fractions", "datetime", "uuid", "pathlib", "zoneinfo", "ipaddress", "collections", "numpy"),
}
_BRACKETS = {"list": "[]", "tuple": "()"}


class Writer:
    """Writes one value. ``exact``: as an expression for a test; else as a user reads it, with nothing left out."""

    def __init__(self, exact: bool):
        self.modules: set[str] = set()
        self._exact = exact

    def text(self, wire: Wire, depth: int = 0) -> str:
        if depth > _DEEPEST:
            raise NoSource
        if isinstance(wire, float) and self._exact and not math.isfinite(wire):
            return f'float("{wire}")'
        if not isinstance(wire, list):
            return repr(wire)
        match wire:
            case [("list" | "tuple") as kind, *parts]:
                inner = self._joined(parts, depth) + ("," if kind == "tuple" and len(parts) == 1 else "")
                return f"{_BRACKETS[kind][0]}{inner}{_BRACKETS[kind][1]}"
            case ["set", *parts]:
                return f"{{{self._sorted(parts, depth)}}}" if parts else "set()"
            case ["frozenset", *parts]:
                return f"frozenset({{{self._sorted(parts, depth)}}})" if parts else "frozenset()"
            case ["dict", *parts]:
                return self._mapping(parts, depth)
            case ["int", digits]:
                value = int(digits, 16)
                return str(value) if len(digits) < 3000 else hex(value)
            case ["bytes" | "bytearray" as kind, data]:
                shown = repr(base64.b64decode(data))
                return shown if kind == "bytes" else f"bytearray({shown})"
            case ["complex", float(real), float(imag)]:
                return (
                    repr(complex(real, imag)) if math.isfinite(real) and math.isfinite(imag) else self._none("complex")
                )
            case ["range", *parts]:
                return f"range({self._joined(parts if parts[2] != 1 else parts[:2], depth)})"
            case ["slice", *parts]:
                return f"slice({self._joined(parts, depth)})"
            case ["ellipsis"]:
                return "..."
            case ["not-implemented"]:
                return "NotImplemented"
        return self._of_library(wire, depth)

    def _of_library(self, wire: list[Wire], depth: int) -> str:
        match wire:
            case ["OrderedDict" | "Counter" | "defaultdict" as kind, *parts]:
                if kind == "defaultdict":  # equal to a dict, and its factory is not known here
                    return self._mapping(parts, depth)
                return f"{self._name('collections', kind)}({self._mapping(parts, depth)})"
            case ["deque", *parts]:
                return f"{self._name('collections', 'deque')}([{self._joined(parts, depth)}])"
            case ["datetime", *parts]:
                return self._clock("datetime", parts, 3, depth)
            case ["time", *parts]:
                return self._clock("time", parts, 0, depth)
            case ["timezone", *parts]:
                return f"{self._name('datetime', 'timezone')}({self._joined(parts, depth)})"
            case [kind, *parts] if kind in _CONSTRUCTORS:
                return f"{self._name(*_CONSTRUCTORS[kind])}({self._joined(parts, depth)})"
            case ["ndarray", dtype, value]:
                inner = self.text(value, depth + 1)
                return f"{self._name('numpy', 'array')}({inner}, dtype={dtype!r})" if self._exact else f"array({inner})"
            case ["numpy", _, value]:
                return self.text(value, depth + 1)
            case ["named", _, _, *parts] if self._exact:
                return self.text(["tuple", *parts], depth)
            case ["named", name, fields, *parts]:
                pairs = zip(fields, parts, strict=True)
                return f"{name}({', '.join(f'{field}={self.text(part, depth + 1)}' for field, part in pairs)})"
            case ["iterator", bool(whole), *parts]:
                return f"[{self._joined(parts, depth)}{'' if whole else ', ...'}]"
            case ["view", _, *parts]:
                return f"[{self._joined(parts, depth)}]"
            case ["member", name, member, _]:
                return self._none(f"{name}.{member}")
            case ["opaque", name, shown, *_]:
                return self._none(str(shown) or f"a {name}")
            case ["large", name]:
                return self._none(f"a very large {name}")
        return self._none(f"a {tag(wire)}")

    def _none(self, words: str) -> str:
        if self._exact:
            raise NoSource
        return words

    def _clock(self, name: str, parts: Sequence[Wire], least: int, depth: int) -> str:
        *plain, zone, fold = parts
        if not all(type(part) is int for part in (*plain, fold)):
            raise TypeError
        while len(plain) > max(least, 1) and plain[-1] == 0:
            plain.pop()
        named = [f"tzinfo={self.text(zone, depth + 1)}"] * (zone is not None) + [f"fold={fold}"] * bool(fold)
        return f"{self._name('datetime', name)}({', '.join([*map(str, plain), *named])})"

    def _name(self, module: str, name: str) -> str:
        self.modules.add(module)
        return f"{module}.{name}" if self._exact or module == "datetime" else name

    def _joined(self, parts: Sequence[Wire], depth: int) -> str:
        return ", ".join(self.text(part, depth + 1) for part in parts)

    def _sorted(self, parts: Sequence[Wire], depth: int) -> str:
        """Sets have no order, so they are shown in one."""
        return ", ".join(sorted((self.text(part, depth + 1) for part in parts), key=lambda text: (len(text), text)))

    def _mapping(self, parts: Sequence[Wire], depth: int) -> str:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return f"{{{', '.join(f'{self.text(k, depth + 1)}: {self.text(v, depth + 1)}' for k, v in pairs)}}}"
