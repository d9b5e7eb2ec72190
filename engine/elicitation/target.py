"""What the candidates are asked about: the function, the class or the program that prompt, tests and code agree on."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from engine.runner import entry, forms
from engine.selection.code_blocks import parse_python

FUNCTION, CLASS, PROGRAM = "function", "class", "program"
_READS = re.compile(r"\binput\(|\bsys\.stdin\b|\bopen\(0\)|\bfileinput\b")
_WORD = re.compile(r"[^\W\d]\w*")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


class NothingToAsk(Exception):
    """Why there can be no question, in a sentence."""


@dataclass(frozen=True)
class Parameter:
    """``annotation``: its type as text, or empty."""

    name: str
    annotation: str = ""
    required: bool = True


@dataclass(frozen=True)
class Target:
    """``kind``: function, class or program. ``parameters``: of the function, or of the class when an object is made.

    ``methods``: of a class, those that most candidates have, with their parameters.
    """

    kind: str
    name: str = ""
    parameters: tuple[Parameter, ...] = ()
    methods: dict[str, tuple[Parameter, ...]] = field(default_factory=dict)


def find_target(prompt: str, tests: str, codes: Sequence[str]) -> Target:
    """Raises NothingToAsk."""
    trees = [tree for code in codes if (tree := parse_python(code)) is not None]
    if not trees:
        raise NothingToAsk("No candidate is Python code, so there is nothing to call.")
    source = _parsed(tests)
    if source is not None and source.form == forms.EXAMPLES:
        return Target(PROGRAM)
    if source is not None and source.form == forms.COMMAND:
        raise NothingToAsk(
            "These tests are commands; questions are about functions, classes and programs that read input."
        )
    defined = [dict(_definitions(tree)) for tree in trees]
    counts = Counter(name for names in defined for name in names)
    common = [name for name, count in counts.items() if 2 * count >= len(trees)]
    name = _named_by(tests, common) or _mentioned(prompt, common)
    reads = sum(_READS.search(code) is not None for code in codes)
    if not name and 2 * reads >= len(codes):
        return Target(PROGRAM)
    name = name or _by_structure(codes, tests, common)
    if not name:
        raise NothingToAsk("The candidates have no function or class in common, and read no input.")
    same = [names[name] for names in defined if name in names]
    if isinstance(same[0], ast.ClassDef):
        return _class(name, [node for node in same if isinstance(node, ast.ClassDef)])
    functions = [node for node in same if not isinstance(node, ast.ClassDef)]
    return Target(FUNCTION, name, _usual([tuple(_parameters(node)) for node in functions]))


def _parsed(tests: str) -> forms.TestSource | None:
    try:
        return forms.parse(tests)
    except (forms.BrokenTests, RecursionError):
        return None


def _definitions(tree: ast.Module) -> Iterator[tuple[str, Definition]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node


def _named_by(tests: str, names: Iterable[str]) -> str:
    """The name that the tests use first."""
    words: list[str] = [word for word in _WORD.findall(tests) if word in names]
    return words[0] if words else ""


def _mentioned(prompt: str, names: Sequence[str]) -> str:
    """The name that the prompt means: what it defines last, else what it mentions, with parentheses before without."""
    defined: list[str] = [m for m in re.findall(r"\b(?:def|class|function|method)\s+`?(\w+)", prompt) if m in names]
    if defined:
        return defined[-1]
    called: list[str] = [name for name in re.findall(r"(\w+)\s*\(", prompt) if name in names]
    mentioned = called or [name for name in _WORD.findall(prompt) if name in names and len(name) > 2]
    return mentioned[0] if mentioned else ""


def _by_structure(codes: Sequence[str], tests: str, names: Sequence[str]) -> str:
    """What most candidates have as the function that their others serve."""
    votes: Counter[str] = Counter()
    for code in codes:
        try:
            votes[entry.entry_point(code, tests)] += 1
        except forms.BrokenTests:
            continue
    found = [name for name, _ in votes.most_common() if name in names]
    return found[0] if found else next(iter(names), "")


def _parameters(function: Function, bound: bool = False) -> Iterator[Parameter]:
    """Those that can be given by position. ``bound``: without the first one, which is the object."""
    given = function.args
    places = [*given.posonlyargs, *given.args]
    least = len(places) - len(given.defaults)
    for at, place in enumerate(places):
        if at >= bound:
            annotation = ast.unparse(place.annotation) if place.annotation is not None else ""
            yield Parameter(place.arg, annotation, at < least)


def _usual(found: Sequence[tuple[Parameter, ...]]) -> tuple[Parameter, ...]:
    """Those of most candidates, by their number; of these, the best annotated."""
    number = Counter(map(len, found)).most_common(1)[0][0]
    return max(
        (parameters for parameters in found if len(parameters) == number),
        key=lambda parameters: sum(bool(p.annotation) for p in parameters),
    )


def _class(name: str, nodes: Sequence[ast.ClassDef]) -> Target:
    own: dict[str, list[tuple[Parameter, ...]]] = {}
    made: list[tuple[Parameter, ...]] = []
    for node in nodes:
        made.append(())
        for method in node.body:
            if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            decorators = [ast.unparse(d) for d in method.decorator_list]
            if method.name == "__init__":
                made[-1] = tuple(_parameters(method, bound=True))
            elif not method.name.startswith("_") and not any("property" in d or ".setter" in d for d in decorators):
                bound = "staticmethod" not in decorators
                own.setdefault(method.name, []).append(tuple(_parameters(method, bound)))
        if any("dataclass" in ast.unparse(d) for d in node.decorator_list):
            made[-1] = tuple(_fields(node))
    methods = {method: _usual(found) for method, found in own.items() if 2 * len(found) >= len(nodes)}
    if not methods:
        raise NothingToAsk(f"The class {name} has no method in common to the candidates that could be called.")
    return Target(CLASS, name, _usual(made), methods)


def _fields(node: ast.ClassDef) -> Iterator[Parameter]:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield Parameter(statement.target.id, ast.unparse(statement.annotation), statement.value is None)
