"""Inputs that somebody wrote: in the user's tests, and as examples in the prompt, some with what should come out."""

import ast
import doctest
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from engine.elicitation.expressions import UNKNOWN, as_input, calls_in_prose, literal, longest_literal
from engine.elicitation.inputs import PROMPT, TESTS, Call, Input, distinct
from engine.elicitation.target import CLASS, PROGRAM, Target
from engine.runner import forms
from engine.runner.checks import SOLUTION

_MOST = 60
_INPUT = re.compile(r"(?:^|\n)[ \t>*-]*(?:sample |example )?input[ \t]*\d*[ \t]*:[ \t]*", re.IGNORECASE)
_OUTPUT = re.compile(r"\n[ \t>*-]*(?:sample |example |expected )?output[ \t]*\d*[ \t]*:[ \t]*", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*```.*$", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """``expected``: the wire form of what should come out; of a program, the text that it prints; or UNKNOWN."""

    given: Input
    expected: Any = UNKNOWN


def from_tests(tests: str, target: Target) -> list[Input]:
    """What the user's tests call the target with."""
    try:
        source = forms.parse(tests)
    except (forms.BrokenTests, RecursionError):
        return []
    if target.kind == PROGRAM:
        return [Input(given=example.given, origin=TESTS) for example in source.examples if hasattr(example, "given")]
    modules = imported(source.tree)
    found = [
        given.from_(TESTS)
        for names in ([{}] if target.kind == CLASS else _surroundings(source.tree))
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and (given := as_input(node, target, names, modules)) is not None
    ]
    return distinct([*found, *_sequences(source.tree, target, modules)], _MOST)


def setup_of(tests: str) -> str:
    """The lines of the tests that import something else than the candidate, for arguments that need it."""
    try:
        tree = forms.parse(tests).tree
    except (forms.BrokenTests, RecursionError):
        return ""
    return "\n".join(ast.unparse(node) for node in _imports(tree))


def imported(tree: ast.Module) -> frozenset[str]:
    aliases = (alias for node in _imports(tree) for alias in node.names)
    return frozenset((alias.asname or alias.name).partition(".")[0] for alias in aliases)


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        if not any(name.startswith((SOLUTION, "pytest", "__future__")) for name in names):
            yield node


def _surroundings(tree: ast.Module) -> Iterator[dict[str, ast.expr]]:
    """What names in the tests stand for: those that are assigned once, and every row of a parametrized test."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    once = {name: found[0] for name, found in assigned.items() if len(found) == 1}
    yield once
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "parametrize" and len(node.args) >= 2:
            yield from (once | row for row in _rows(node))
        if isinstance(node, ast.For) and isinstance(node.iter, ast.List | ast.Tuple):
            yield from (once | row for row in _paired(node.target, node.iter.elts))


def _rows(node: ast.Call) -> Iterator[dict[str, ast.expr]]:
    try:
        names = ast.literal_eval(node.args[0])
    except ValueError:
        return
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = node.args[1].elts if isinstance(node.args[1], ast.List | ast.Tuple) else []
    for row in rows:
        if isinstance(row, ast.Call):  # pytest.param(...)
            cells: list[ast.expr] = row.args
        else:
            cells = row.elts if len(names) > 1 and isinstance(row, ast.Tuple | ast.List) else [row]
        if len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))


def _paired(target: ast.expr, rows: Iterable[ast.expr]) -> Iterator[dict[str, ast.expr]]:
    for row in rows:
        if isinstance(target, ast.Name):
            yield {target.id: row}
        elif (
            isinstance(target, ast.Tuple)
            and isinstance(row, ast.Tuple | ast.List)
            and len(target.elts) == len(row.elts)
        ):
            yield {t.id: cell for t, cell in zip(target.elts, row.elts, strict=True) if isinstance(t, ast.Name)}


def _sequences(tree: ast.Module, target: Target, modules: frozenset[str]) -> Iterator[Input]:
    """``s = Stack()``, ``s.push(1)``, ``assert s.pop() == 1``: every call is the end of one input."""
    if target.kind != CLASS:
        return
    for body in [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))]:
        yield from (Input(calls, origin=TESTS) for calls in sequences(body, target, modules))


def sequences(body: Iterable[ast.stmt], target: Target, modules: frozenset[str]) -> Iterator[tuple[Call, ...]]:
    """What is done to each object of the target, as far as it has come after each call of a method."""
    so_far: dict[str, tuple[Call, ...]] = {}
    for statement in body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            probe = ast.Call(ast.Attribute(statement.value, next(iter(target.methods)), ast.Load()), [], [])
            made = as_input(probe, target, {}, modules)
            if made is not None:
                so_far[statement.targets[0].id] = made.calls[:1]
                continue
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
            ):
                name = node.func.value.id
                stands_for = ast.parse(f"{target.name}()", mode="eval").body
                call = as_input(node, target, {name: stands_for}, modules) if name in so_far else None
                if call is not None:
                    so_far[name] = (*so_far[name], call.calls[-1])
                    yield so_far[name]


def from_prompt(prompt: str, target: Target) -> list[Example]:
    """Examples in the prompt, the first of each input."""
    if target.kind == PROGRAM:
        return [Example(Input(given=given, origin=PROMPT), wanted) for given, wanted in _printed(prompt)]
    found = [*_doctests(prompt, target), *_labelled(prompt, target)]
    if target.kind != CLASS:
        found += [Example(given.from_(PROMPT), expected) for given, expected in calls_in_prose(prompt, target)]
    first: dict[Input, Example] = {}
    for example in found:
        known = first.get(example.given)
        if known is None or known.expected is UNKNOWN:
            first[example.given] = example
    return list(first.values())[:_MOST]


def _doctests(prompt: str, target: Target) -> Iterator[Example]:
    lines: list[ast.stmt] = []
    for source, want in _prompted(prompt):
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        lines += body
        if len(body) != 1 or not isinstance(body[0], ast.Expr):
            continue
        expected = literal(want.strip()) if want.strip() else UNKNOWN
        given = as_input(body[0].value, target, {}, frozenset())
        if given is not None:
            yield Example(given.from_(PROMPT), expected)
        elif target.kind == CLASS and (calls := list(sequences(lines, target, frozenset()))):
            yield Example(Input(calls[-1], origin=PROMPT), expected)


def _prompted(prompt: str) -> Iterator[tuple[str, str]]:
    """Source and wanted output behind each ``>>>``. Prompts are no strict doctests: prose may follow at once."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = doctest.DocTestParser().get_examples(prompt)
        yield from ((part.source, part.want) for part in parts)
        return
    except ValueError:
        pass
    lines = prompt.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line.strip().startswith(">>>"):
            yield line.strip()[3:].strip(), "" if below.strip().startswith(">>>") else below


def _labelled(prompt: str, target: Target) -> Iterator[Example]:
    """``Input: nums = [2, 7], target = 9`` and ``Output: [0, 1]``, as sites of problems have it."""
    if target.kind == CLASS:
        return
    pieces = _INPUT.split(prompt)[1:]
    for piece in pieces:
        line, _, rest = piece.partition("\n")
        arguments = _named_values(line)
        if arguments is None:
            continue
        output = _OUTPUT.match(f"\n{rest}".rstrip(" ")) or _OUTPUT.search(f"\n{rest[:200]}")
        result = f"\n{rest}"[output.end() :].partition("\n")[0] if output else ""
        yield Example(Input.of_call(target.name, arguments, PROMPT), longest_literal(result.strip("` ")))


def _named_values(line: str) -> tuple[str, ...] | None:
    text = line.strip().strip("`")
    for written in (text, re.sub(r"(?<![\w=])(\w+)\s*=\s*", r"\1=", text)):
        try:
            node = ast.parse(f"f({written})", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        parts = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
        if parts and all(literal(part) is not UNKNOWN for part in parts):
            return tuple(ast.unparse(part) for part in parts)
    return None


def _printed(prompt: str) -> Iterator[tuple[str, Any]]:
    """Sample input and output of a program, each on lines below its heading, or behind it."""
    for piece in _INPUT.split(_FENCE.sub("", prompt))[1:]:
        output = _OUTPUT.search(piece)
        if output is None:
            continue
        given = piece[: output.start()].strip("\n")
        wanted = re.split(r"\n[ \t]*\n", piece[output.end() :].lstrip("\n"))[0]
        if given.strip():
            yield f"{given}\n", wanted.strip()
