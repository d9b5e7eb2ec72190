"""How a user's tests are written, found out without running a line of them.

Two forms: *bare asserts*, a script whose top-level checks are one test each, and *pytest files*.
Used by the service and, inside the box, by the plugin; the standard library only.
"""

import ast
import builtins
import symtable
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

SOLUTION = "solution"  # the module name of a candidate
FILE = "tests.py"  # what the user's tests are called in messages


class BrokenTests(Exception):
    """The test file cannot be used; the text says why and where."""


@dataclass(frozen=True)
class Check:
    """A top-level statement that checks something, at ``index`` of the module's body."""

    id: str
    index: int


@dataclass(frozen=True)
class TestSource:
    """A test file that parses. ``checks`` is empty in a pytest file.

    ``borrowed``: names that the tests use and define nowhere, to be taken from the candidate. Only these are
    taken, and never a built-in's name, so that a candidate cannot put its own ``all`` into the tests.
    """

    __test__ = False

    text: str
    tree: ast.Module
    checks: tuple[Check, ...]
    borrowed: tuple[str, ...]


def parse(text: str) -> TestSource:
    """Raises BrokenTests when ``text`` does not parse or holds no test."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = ast.parse(text, FILE)
        free = _free_names(symtable.symtable(text, FILE, "exec"))
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise BrokenTests(f"Your tests do not parse: {line}{error.msg}.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BrokenTests(f"Your tests do not parse: {error}.") from None
    if is_pytest := any(_is_test(statement) for statement in tree.body):
        checks: tuple[Check, ...] = ()
    else:
        checks = tuple(_checks(tree))
    if not checks and not is_pytest:
        raise BrokenTests("Your tests hold no test: write top-level asserts, or functions named test_...")
    star = _replace_star_import(tree)
    imports = any(_imports_solution(node) for node in ast.walk(tree))
    return TestSource(text, tree, checks, free if star or not imports else ())


def _is_test(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return statement.name.startswith("test")
    if isinstance(statement, ast.ClassDef):
        bases = " ".join(ast.unparse(base) for base in statement.bases)
        return statement.name.startswith("Test") or "TestCase" in bases
    return False


def _checks(tree: ast.Module) -> Iterator[Check]:
    definitions = (s for s in tree.body if isinstance(s, ast.FunctionDef))
    checkers = {d.name for d in definitions if any(isinstance(node, ast.Assert) for node in ast.walk(d))}
    on_line: Counter[int] = Counter()
    for index, statement in enumerate(tree.body):
        if not is_check(statement, checkers):
            continue
        on_line[statement.lineno] += 1
        again = on_line[statement.lineno]
        yield Check(f"line {statement.lineno}" + (f" #{again}" if again > 1 else ""), index)


def is_check(statement: ast.stmt, checkers: set[str]) -> bool:
    """An assert, a block with one inside, or a call of something that asserts (``check(add)``)."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    for node in _own_nodes(statement):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rsplit(".", 1)[-1]
            if name in checkers or name.startswith("assert"):
                return True
    return False


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes below ``statement``, without the bodies of functions and classes defined in it."""
    yield statement
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own_nodes(child)  # type: ignore[arg-type]


def _free_names(top: symtable.SymbolTable) -> tuple[str, ...]:
    own = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    used: set[str] = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or table is top):
                used.add(symbol.get_name())
            if symbol.is_declared_global() and symbol.is_assigned():
                own.add(symbol.get_name())
    return tuple(sorted(used - own - set(dir(builtins)) - {"__file__"}))


def _imports_solution(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == SOLUTION
    return isinstance(node, ast.Import) and any(alias.name == SOLUTION for alias in node.names)


def _replace_star_import(tree: ast.Module) -> bool:
    """``from solution import *`` becomes a ``pass``: the names it is there for are borrowed instead."""
    found = False
    for index, node in enumerate(tree.body):
        if isinstance(node, ast.ImportFrom) and node.module == SOLUTION and node.names[0].name == "*":
            tree.body[index] = ast.copy_location(ast.Pass(), node)
            found = True
    return found
