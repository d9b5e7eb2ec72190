"""numpy's values: numbers and types cross by value, arrays as containers that both sides share.

numpy is imported only when a value of it crosses.
"""

import importlib
import json
import re
import sys
from typing import Any

from engine.runner.split.values import CannotCross, Garbled, pack, unpack

_SIMPLE = re.compile(r"[<>|=]?[biufcSUMmV]\d*(\[\w+\])?")
_CLASSES = ("ndarray", "matrix", "recarray")  # their content is data, shape and type, and nothing else


def is_of_numpy(value: Any) -> bool:
    return str(type(value).__module__).partition(".")[0] == "numpy"


def put(value: Any) -> list[Any] | None:
    """A number, a record, a dtype or a type of numbers, exactly; None for everything else."""
    if isinstance(value, type):
        return _put_type(value)
    if not is_of_numpy(value) or "numpy" not in sys.modules:
        return None
    if isinstance(value, _numpy().dtype):
        return None if value.hasobject else ["dtype", dtype_name(value)]
    if isinstance(value, _numpy().generic) and type(value).__name__ != "object_":
        return None if value.dtype.hasobject else ["numpy", dtype_name(value.dtype), pack(value.tobytes())]
    return None


def _put_type(kind: type) -> list[Any] | None:
    of_numpy = str(kind.__module__).partition(".")[0] == "numpy" and issubclass(kind, _numpy().generic)
    return ["numpy-type", kind.__name__] if of_numpy and getattr(_numpy(), kind.__name__, None) is kind else None


def get(tag: str, name: Any, data: Any = "") -> Any:
    """The value that ``put`` took apart. Raises Garbled."""
    if tag == "numpy-type":
        kind = getattr(_numpy(), name, None) if isinstance(name, str) else None
        if not isinstance(kind, type) or not issubclass(kind, _numpy().generic):
            raise Garbled("a numpy type that is none")
        return kind
    dtype = dtype_of(name)
    if tag == "dtype":
        return dtype
    return _numpy().frombuffer(unpack(data), dtype)[0]


def dtype_name(dtype: Any) -> str:
    """``dtype`` in a form that ``dtype_of`` reads; records as JSON. Raises CannotCross for one that holds objects."""
    if dtype.hasobject:
        raise CannotCross("a numpy array of records that hold objects")
    described = _format().dtype_to_descr(dtype)
    return described if isinstance(described, str) else json.dumps(described)


def dtype_of(name: Any) -> Any:
    """The dtype by that name. Raises Garbled for everything but plain data."""
    if not isinstance(name, str):
        raise Garbled("a numpy type that is none")
    if name.startswith("["):
        return _format().descr_to_dtype(_fields(json.loads(name)))
    return _numpy().dtype(_simple(name))


def _simple(name: Any) -> str:
    if not isinstance(name, str) or _SIMPLE.fullmatch(name) is None:
        raise Garbled("a numpy type that is none")
    return name


def _fields(described: Any) -> list[tuple[Any, ...]]:
    """The fields of records, each a name (or title and name), a type and perhaps a shape."""
    fields = []
    for name, kind, *shape in described:
        names = name if isinstance(name, list) else [name]
        if not all(isinstance(part, str) for part in names) or not all(type(n) is int for s in shape for n in s):
            raise Garbled("a numpy record that is none")
        inner = _fields(kind) if isinstance(kind, list) else _simple(kind)
        fields.append((tuple(name) if isinstance(name, list) else name, inner, *map(tuple, shape)))
    return fields


def tag_of(value: Any) -> str | None:
    """The kind of container that an array is; None when it is none, or one that only its own side can hold."""
    if not is_of_numpy(value):
        return None
    kind = type(value).__name__
    if kind == "MaskedArray" and not value.dtype.hasobject and not value.dtype.names:
        return "masked-array"
    if kind not in _CLASSES:
        return None
    if value.dtype.hasobject:
        return "object-array" if kind == "ndarray" and not value.dtype.names else None
    return "array-of-numbers"


def describe(value: Any) -> tuple[Any, ...]:
    """What an empty array like ``value`` is made with."""
    return (type(value).__name__, dtype_name(value.dtype), tuple(value.shape))


def make(extra: Any) -> Any:
    name, dtype, shape = extra
    if name not in _CLASSES:
        raise Garbled("an array of no known kind")
    kind = dtype_of(dtype)
    if name == "recarray" and kind.names:
        kind = _numpy().dtype((_numpy().record, kind))
    return _numpy().zeros(shape, kind).view(getattr(_numpy(), name))


def read(value: Any) -> list[Any]:
    return [value.tobytes(), tuple(value.shape)]


def fill(value: Any, parts: list[Any]) -> None:
    data, shape = parts
    plain = value.view(_numpy().ndarray)
    if plain.shape != shape:
        plain.shape = value.shape = shape  # it was given another one in place
    plain[...] = _numpy().frombuffer(data, plain.dtype).reshape(shape)


def describe_masked(value: Any) -> tuple[Any, ...]:
    filling = _numpy().asarray(value.fill_value, dtype=value.dtype)
    return (dtype_name(value.dtype), tuple(value.shape), filling.tobytes())


def make_masked(extra: Any) -> Any:
    name, shape, filling = extra
    dtype = dtype_of(name)
    data = _numpy().zeros(shape, dtype)
    return _numpy().ma.MaskedArray(data, mask=False, fill_value=_numpy().frombuffer(filling, dtype)[0])


def read_masked(value: Any) -> list[Any]:
    masked = _numpy().ma
    return [masked.getdata(value).tobytes(), masked.getmaskarray(value).tobytes()]


def fill_masked(value: Any, parts: list[Any]) -> None:
    data, mask = parts
    value.mask = False
    value.data[...] = _numpy().frombuffer(data, value.dtype).reshape(value.shape)
    value.mask = _numpy().frombuffer(mask, bool).reshape(value.shape)


def make_of_objects(shape: Any) -> Any:
    return _numpy().empty(shape, dtype=object)


def read_objects(value: Any) -> list[Any]:
    objects: list[Any] = value.flatten().tolist()
    return objects


def fill_objects(value: Any, items: list[Any]) -> None:
    flat = _numpy().empty(len(items), dtype=object)
    for index, item in enumerate(items):
        flat[index] = item
    value[...] = flat.reshape(value.shape)


def _numpy() -> Any:
    return importlib.import_module("numpy")


def _format() -> Any:
    return importlib.import_module("numpy.lib.format")
