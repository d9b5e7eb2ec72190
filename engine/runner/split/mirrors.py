"""Mirrors: what stands on this side for an object of the other side. Every question to one is asked over there.

A class of the other side is a real class here, with mirrors of its bases, so that ``isinstance``, ``pytest.raises`` and
``type(x) is C`` mean what they say. It has exactly those operators that the original has.
"""

import io
import types
from abc import ABC
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol

from engine.runner.split.values import CONTAINERS, IMMUTABLE, PLAIN, CannotCross, Garbled, type_named

_ARITHMETIC = (
    "add",
    "sub",
    "mul",
    "matmul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "xor",
    "or",
)
_OTHERS = """
abs array bool bytes call ceil class_getitem complex delitem dir enter exit float floor format fspath getitem hash index
int invert iter len length_hint neg next pos repr reversed round setitem str trunc
"""
_ATTRIBUTES = "annotations defaults dict doc kwdefaults match_args members name qualname slots wrapped"
_IN_PLACE = frozenset(f"__i{name}__" for name in _ARITHMETIC)
# Operators that are shown the other operand: one that knows what it is compared with can say yes to everything.
DECIDING = _IN_PLACE | frozenset(
    ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"]
    + [f"__{way}{name}__" for name in (*_ARITHMETIC, "divmod") for way in ("", "r")]
)
OPERATORS = DECIDING | frozenset(f"__{name}__" for name in _OTHERS.split())
SHOWN = ("__repr__", "__str__", "__format__", "__dir__")  # every object has them, and its own side knows best
# Attributes with two underscores that may be read; all others belong to the mirror.
READABLE = frozenset(f"__{name}__" for name in _ATTRIBUTES.split())
_SEEN_AS: tuple[type, ...] = (
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.GeneratorType, types.CoroutineType),
    *(map, filter, zip, enumerate, reversed, types.MappingProxyType, type({}.keys()), type({}.values())),
    *(type({}.items()), type(iter([])), type(iter(())), memoryview, io.StringIO, io.BytesIO),
)
_CLASSES_SEEN_AS = {(kind.__module__, kind.__qualname__): kind for kind in _SEEN_AS}
_BY_VALUE = (*PLAIN, *CONTAINERS)  # what claims to be one of these and comes as a mirror is none
_NOTHING_TO_SEE = (ABC, Generic, Protocol)


class Caller(Protocol):
    """The link, as a mirror needs it."""

    decoding: bool

    def ask(self, operation: str, *values: Any) -> Any: ...

    def decided(self, operator: str) -> None: ...

    def derived(self, name: str) -> None: ...


def operators_of(cls: type) -> list[tuple[str, type]]:
    """The operators that ``cls`` has, each with the class that defines it; those that it blocks are left out."""
    found = []
    for name in sorted(OPERATORS):
        provider = next((base for base in cls.__mro__ if name in base.__dict__), object)
        if provider is not object and provider.__dict__[name] is not None:
            found.append((name, provider))
    return found


def content_base(cls: type) -> type | None:
    """The built-in type whose content the instances of ``cls`` carry, if any."""
    return next((base for base in cls.__mro__ if base in IMMUTABLE or base in CONTAINERS), None)


def describe_class(cls: type) -> dict[str, Any]:
    """What the other side must know to make a mirror of ``cls``, apart from its bases. JSON types only."""
    base = content_base(cls)
    names: list[str] = []
    native: list[str] = []
    for name, provider in operators_of(cls):
        if provider in IMMUTABLE:
            continue  # a mirror has these by itself
        (native if provider in CONTAINERS and name in DECIDING - _IN_PLACE else names).append(name)
    meta = type(cls)
    return {
        "name": cls.__name__,
        "qualname": cls.__qualname__,
        "module": str(cls.__module__),
        "doc": cls.__doc__ if isinstance(cls.__doc__, str) else None,
        "operators": names,
        "native": native,
        "content": base.__name__ if base else None,
        "hashable": cls.__hash__ is not None,
        "meta": [name for name, provider in operators_of(meta) if provider is not type] if meta is not type else [],
    }


class MirrorClass(type):
    """The class of mirrored classes: calling one makes an instance over there."""

    _bassline_link: Caller

    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **kwargs: Any) -> dict[str, object]:
        """A class statement is being run; mirrors themselves are made without one."""
        next(base for base in bases if isinstance(base, MirrorClass))._bassline_link.derived(name)
        raise CannotCross(f"the class {name} derives from one of the other side")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._bassline_link.ask("operator", "__call__", cls, args, tuple(kwargs.items()))

    def __getattr__(cls, name: str) -> Any:
        if (name.startswith("__") and name not in READABLE) or name.startswith("_bassline_"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return cls._bassline_link.ask("get", cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name.startswith(("__", "_bassline_", "_abc_")):
            type.__setattr__(cls, name, value)
        else:
            cls._bassline_link.ask("set", cls, name, value)

    def __delattr__(cls, name: str) -> None:
        cls._bassline_link.ask("del", cls, name)


class Mirror:
    """An object of the other side. It has no attribute of its own."""

    _bassline_link: Caller
    _bassline_hash: int | None = None

    def __getattr__(self, name: str) -> Any:
        if (name.startswith("__") and name not in READABLE) or name.startswith("_bassline_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._bassline_link.ask("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith(("__", "_bassline_")):  # Python's own, such as an exception's traceback
            object.__setattr__(self, name, value)
        else:
            self._bassline_link.ask("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._bassline_link.ask("del", self, name)

    def __copy__(self) -> Any:
        return self._bassline_link.ask("copy", self)

    def __deepcopy__(self, memo: object) -> Any:
        return self._bassline_link.ask("deepcopy", self)

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError(f"a {type(self).__name__} lives in another process and cannot be pickled")


def _operator(name: str) -> Callable[..., Any]:
    deciding = name in DECIDING

    def operator(self: Any, *args: Any, **kwargs: Any) -> Any:
        link = self._bassline_link
        if deciding:
            if link.decoding:
                return NotImplemented  # a set that is being filled: its items are different ones over there already
            link.decided(name)
        return link.ask("operator", name, self, args, tuple(kwargs.items()))

    operator.__name__ = name
    return operator


def _native(name: str, base: type) -> Callable[..., Any]:
    """An operator that a built-in base decides: here, on the content."""

    def operator(self: Any, *args: Any) -> Any:
        return getattr(base, name)(self._bassline_link.ask("content", self), *args)

    return operator


def _hash(self: Any) -> int:
    known: int | None = self._bassline_hash
    return object.__hash__(self) if known is None else known


def make_class(link: Caller, described: dict[str, Any], bases: tuple[type, ...], originals: Sequence[Any]) -> type:
    """The mirror of a class. ``bases`` are mirrors and built-in types. Raises TypeError when these do not fit.

    ``originals``: what it derives from over there; those that are classes of the standard library, as they are here.
    """
    roots = tuple(base for base in bases if base is not object)
    if not any(isinstance(base, MirrorClass) for base in roots):
        roots = (Mirror, *roots)
    own_data = any(issubclass(base, (*IMMUTABLE, BaseException)) for base in roots)
    names = {name for name in described["operators"] if name in OPERATORS}
    if not own_data:
        names |= set(SHOWN)
    content = next((kind for kind in CONTAINERS if kind.__name__ == described["content"]), None)
    space: dict[str, Any] = {
        "__module__": described["module"],
        "__qualname__": described["qualname"],
        "__doc__": described["doc"],
        "_bassline_link": link,
    }
    for name in names - {"__hash__", "__class_getitem__"}:
        space[name] = _operator(name)
    if content is not None:
        space |= {name: _native(name, content) for name in set(described["native"]) & DECIDING}
    if "__class_getitem__" in names:
        space["__class_getitem__"] = lambda cls, item: link.ask("operator", "__class_getitem__", cls, (item,), ())
    if not described["hashable"]:
        space["__hash__"] = None
    elif "__hash__" in names or ("__eq__" in space and not own_data):
        space["__hash__"] = _hash
    elif "__eq__" in space:
        space["__hash__"] = roots[-1].__hash__
    seen_as = None
    if not any(issubclass(base, BaseException) for base in roots):
        seen_as = _seen_as(described, None if own_data else content, originals)
    if seen_as is not None:
        space["__class__"], space["_bassline_seen"] = property(lambda self: seen_as), seen_as
    if (described["module"], described["qualname"]) in _CLASSES_SEEN_AS:
        space["__doc__"] = property(lambda self: link.ask("get", self, "__doc__"))
    if not own_data:
        space["__dict__"] = property(lambda self: link.ask("get", self, "__dict__"))
    return _metaclass(described["meta"])(described["name"], roots, space)


def _seen_as(described: dict[str, Any], content: type | None, originals: Sequence[Any]) -> type | None:
    """What ``isinstance`` takes a mirror for besides its own class. It says nothing about ``==``.

    The class of the standard library that the original is of, or a stand-in for its own class that derives from the
    same container or the same class of the standard library.
    """
    known = _CLASSES_SEEN_AS.get((described["module"], described["qualname"]))
    if known is not None:
        return known
    try:
        found = type_named(described["module"], described["qualname"])
        return None if found.__module__ == "builtins" or found in _BY_VALUE else found
    except Garbled:
        pass  # a class of its own
    base = content or next(filter(None, map(_seen_base, originals)), None)
    if base is None:
        return None
    try:
        return types.new_class(
            described["name"], (base,), {}, lambda space: space.__setitem__("__module__", "solution")
        )
    except Exception:
        return None


def _seen_base(original: Any) -> type | None:
    """The class that ``isinstance`` should find in what derives from ``original``."""
    if isinstance(original, MirrorClass):
        seen: type | None = vars(original).get("_bassline_seen")
        return seen
    plain = original in _BY_VALUE or original in _NOTHING_TO_SEE or not isinstance(original, type)
    return None if plain or original.__module__ == "builtins" else original


def _metaclass(operators: list[str]) -> type[MirrorClass]:
    """One with those operators that the original's has, such as ``len`` and ``in`` of an Enum."""
    names = {name for name in operators if name in OPERATORS} - {"__call__", "__repr__", "__str__", "__dir__"}
    if not names:
        return MirrorClass
    space: dict[str, Any] = {name: _operator(name) for name in names - {"__hash__"}}
    if "__eq__" in space:
        space["__hash__"] = type.__hash__
    return type("MirrorClass", (MirrorClass,), space)


def make_instance(cls: Any, number: int, content: Any, hashed: int | None) -> Any:
    """A mirror of an instance. ``content``: the built-in value of one that derives from an immutable type."""
    base = next((kind for kind in (*IMMUTABLE, BaseException) if issubclass(cls, kind)), object)
    if base is object:
        made = object.__new__(cls)
    elif base is BaseException:
        made = cls.__new__(cls, *content)
        made.args = content
    else:
        made = base.__new__(cls, content)
    object.__setattr__(made, "_bassline_number", number)
    if hashed is not None:
        object.__setattr__(made, "_bassline_hash", hashed)
    return made


def is_mirror(value: Any) -> bool:
    """Looks at the type alone: ``value`` must not be asked who it is."""
    return issubclass(type(value), Mirror) or (
        issubclass(type(value), MirrorClass) and "_bassline_number" in vars(value)
    )
