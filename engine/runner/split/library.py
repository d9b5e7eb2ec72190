"""Values of the standard library that rest on another value: views of a dict, proxies, and what is made by a recipe.

Views and proxies are rebuilt on the other side's half of the container that they look at. A recipe is a function of the
standard library and its arguments; only the tests' side writes one, and only the candidate's follows it.
"""

import collections
import copyreg
import functools
import gc
import operator
import string
import struct
import types
import typing
from collections.abc import Callable
from typing import Any

from engine.runner.split import values
from engine.runner.split.values import Garbled

_DICTS: tuple[type, ...] = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
_VIEWS: dict[type, str] = {
    type(getattr(kind(), name)()): name
    for kind in (dict, collections.OrderedDict)
    for name in ("keys", "values", "items")
}
_BY_RECIPE: tuple[type, ...] = (
    operator.itemgetter,
    operator.attrgetter,
    operator.methodcaller,
    string.Template,
    struct.Struct,
    types.GenericAlias,
    types.UnionType,
    type(typing.Any),
    type(typing.Union),
    type(typing.Optional[int]),  # noqa: UP045 - this very form
    type(typing.List),  # noqa: UP006
    type(typing.List[int]),  # noqa: UP006
    type(typing.Tuple),  # noqa: UP006
    type(typing.Callable),
    type(typing.Callable[[int], int]),
    type(typing.Literal[1]),
    type(typing.Annotated[int, 1]),
)

Convert = Callable[[Any], Any]


def put(value: Any, convert: Convert, recipes: bool) -> list[Any] | None:
    """``value`` taken apart, or None when it is of another kind. ``recipes``: whether the other side follows them."""
    kind = type(value)
    if kind in _VIEWS or kind is types.MappingProxyType:
        under = gc.get_referents(value)[0]
        if type(under) not in _DICTS:
            return None
        return ["proxy", convert(under)] if kind is types.MappingProxyType else ["view", _VIEWS[kind], convert(under)]
    if kind is memoryview:
        return _put_memory(value, convert)
    if recipes and kind in _BY_RECIPE and kind is not type:
        return _put_recipe(value, convert)
    return None


def _put_memory(value: memoryview, convert: Convert) -> list[Any] | None:
    """All of a bytearray stays shared with it; bytes, which nobody can change, cross as they are."""
    if value.format != "B" or value.ndim != 1 or not value.c_contiguous:
        return None
    if type(value.obj) is bytes:
        return ["memory", convert(bytes(value))]
    if type(value.obj) is bytearray and len(value.obj) == len(value) and not value.readonly:
        return ["memory", convert(value.obj)]
    return None


def _put_recipe(value: Any, convert: Convert) -> list[Any] | None:
    if isinstance(value, string.Template):
        return ["recipe", "string", "Template", convert((value.template,))] if type(value) is string.Template else None
    if isinstance(value, struct.Struct):
        return ["recipe", "struct", "Struct", convert((value.format,))]
    reduce = copyreg.dispatch_table.get(type(value))
    made: Any = reduce(value) if reduce else value.__reduce_ex__(2)
    if isinstance(made, str):
        return ["function", value.__module__, made]
    function, arguments = made[0], made[1]
    if isinstance(function, functools.partial):  # a methodcaller with keywords
        arguments, keywords = (*function.args, *arguments), tuple(function.keywords.items())
        return ["recipe", "operator", "methodcaller", convert(arguments), convert(keywords)]
    name = values.name_of_type(function) if isinstance(function, type) else values.name_of_function(function)
    return None if name is None else ["recipe", *name, convert(arguments)]


def get(tag: str, parts: list[Any], convert: Convert, recipes: bool) -> Any:
    """The value that ``put`` took apart. Raises Garbled."""
    if tag == "view":
        name, under = parts[0], convert(parts[1])
        if name not in _VIEWS.values() or type(under) not in _DICTS:
            raise Garbled("a view of what is no dict")
        return getattr(type(under), name)(under)
    if tag == "proxy":
        under = convert(parts[0])
        if type(under) not in _DICTS:
            raise Garbled("a proxy of what is no dict")
        return types.MappingProxyType(under)
    if tag == "memory":
        under = convert(parts[0])
        if type(under) not in (bytes, bytearray):
            raise Garbled("a view of what is no memory")
        return memoryview(under)
    if tag == "recipe" and recipes:
        module, name, arguments, *keywords = parts
        function = values.function_named(module, name)
        return function(*convert(arguments), **dict(convert(keywords[0]) if keywords else ()))
    raise Garbled(f"a tag that is none: {str(tag)[:50]}")
