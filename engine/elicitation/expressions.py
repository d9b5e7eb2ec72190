"""Calls of the target in Python text: as an input, and with what is said to come out."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.elicitation.inputs import Call, Input
from engine.elicitation.target import CLASS, Target
from engine.runner.encoding import encode

_ARROW = re.compile(
    r"\s*`{0,2}\s*(?:->|=>|==>|-->|→|⇒|➞|➔|==|=|:|#|,?\s*(?:should|must|will)?\s*(?:returns?|gives?|yields?|equals?|be|is|evaluates?\s+to|outputs?))"
    r"(?:\s+(?:be|return|the|a|list|to))*\s*`{0,2}\s*"
)
_MAY_BE_USED = frozenset(
    """
abs bool bytearray bytes complex dict divmod enumerate filter float frozenset int iter len list map max min object pow
range reversed round set slice sorted str sum tuple type zip
""".split()  # noqa: SIM905
)


class Unknown:
    """No value is known."""


UNKNOWN: Any = Unknown()


def literal(node: ast.AST | str) -> Any:
    """The wire form of a literal; UNKNOWN for everything else."""
    try:
        return encode(ast.literal_eval(node if isinstance(node, str) else ast.unparse(node)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return UNKNOWN


def as_input(node: ast.expr, target: Target, names: Mapping[str, ast.expr], modules: frozenset[str]) -> Input | None:
    """The call at ``node``, when it is one of the target whose arguments are known.

    ``names``: what stands for names in arguments; ``modules``: names that the setup imports, which may stay.
    """
    if not isinstance(node, ast.Call):
        return None
    if target.kind == CLASS:
        return _as_sequence(node, target, names, modules)
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    arguments = _arguments(node, names, modules) if name in (target.name, "candidate") else None
    return None if arguments is None else Input((Call(target.name, arguments),))


def _as_sequence(
    node: ast.Call, target: Target, names: Mapping[str, ast.expr], modules: frozenset[str]
) -> Input | None:
    """``Name(...).method(...)``."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in target.methods:
        return None
    made = names.get(node.func.value.id) if isinstance(node.func.value, ast.Name) else node.func.value
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name | ast.Attribute):
        return None
    name = made.func.id if isinstance(made.func, ast.Name) else made.func.attr
    first, then = _arguments(made, names, modules), _arguments(node, names, modules)
    if name != target.name or first is None or then is None:
        return None
    return Input((Call(name, first), Call(node.func.attr, then)))


def _arguments(node: ast.Call, names: Mapping[str, ast.expr], modules: frozenset[str]) -> tuple[str, ...] | None:
    found = []
    for part in [*node.args, *(keyword.value for keyword in node.keywords)]:
        if isinstance(part, ast.Starred):
            return None
        resolved = _Resolver(names).visit(ast.parse(ast.unparse(part), mode="eval").body)
        free = {inner.id for inner in ast.walk(resolved) if isinstance(inner, ast.Name)}
        if free - modules - _MAY_BE_USED or any(isinstance(n, ast.Lambda | ast.NamedExpr) for n in ast.walk(resolved)):
            return None
        found.append(ast.unparse(resolved))
    texts = found[: len(node.args)]
    for keyword, text in zip(node.keywords, found[len(node.args) :], strict=True):
        if keyword.arg is None:
            return None
        texts.append(f"{keyword.arg}={text}")
    return tuple(texts)


class _Resolver(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, ast.expr], depth: int = 0):
        self._names, self._depth = names, depth

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self._names.get(node.id)
        if found is None or self._depth > 5:
            return node
        copy = ast.parse(ast.unparse(found), mode="eval").body
        resolved: ast.expr = _Resolver(self._names, self._depth + 1).visit(copy)
        return resolved


def calls_in_prose(text: str, target: Target) -> Iterator[tuple[Input, Any]]:
    """Calls of the target anywhere in ``text``, and the wire form of what the same line says comes out, or UNKNOWN."""
    for match in re.finditer(rf"(?<![\w.]){re.escape(target.name)}\s*\(", text):
        if text[: match.start()].rstrip().endswith("def"):
            continue
        end = closing(text, match.end() - 1)
        if end is None:
            continue
        try:
            node = ast.parse(text[match.start() : end], mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        given = as_input(node, target, {}, frozenset())
        if given is not None:
            yield given, _expected_behind(text[end:])


def closing(text: str, start: int) -> int | None:
    """Behind the bracket that closes the one at ``start``; strings are passed over."""
    depth, quote, at = 0, "", start
    while at < len(text):
        letter = text[at]
        if quote:
            if letter == "\\":
                at += 1
            elif letter == quote:
                quote = ""
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return None


def _expected_behind(rest: str) -> Any:
    line = rest.partition("\n")[0]
    arrow = _ARROW.match(line)
    return UNKNOWN if arrow is None else longest_literal(line[arrow.end() :])


def longest_literal(text: str) -> Any:
    """The wire form of the longest literal that ``text`` begins with."""
    text = text.strip()
    if text[:1] in ("(", "[", "{"):
        end = closing(text, 0)
        return UNKNOWN if end is None else literal(text[:end])
    for pattern in (
        r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"",
        r"-?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?",
        r"True|False|None",
    ):
        match = re.match(rf"(?:{pattern})(?!\w)", text)
        if match:
            return literal(match[0])
    return UNKNOWN
