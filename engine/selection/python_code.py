"""What a piece of Python defines, what it needs from elsewhere, and what kind of code it is."""

import ast
import builtins
import re
import symtable
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from engine.selection.fences import lines_of

_LARGEST_PARSED = 200_000  # characters; above it a code is compared by its text only
_BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "__package__", "__spec__", "__builtins__"}
_READS_INPUT = re.compile(r"\binput\(|\bstdin\b|\bargv\b|\bopen\(0\)|\bfileinput\b")
_DEMONSTRATION = re.compile(
    r"(?:main|demo|example|show|usage|run|benchmark)(?:_\w+)?\Z|(?:test|check)_?\w*\Z", re.IGNORECASE
)

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def parse_python(code: str) -> ast.Module | None:
    """The syntax tree, or None where there is none (or the code is too long or too deep to ask)."""
    if len(code) > _LARGEST_PARSED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a candidate is not our warning
            return ast.parse(code.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True, eq=False)
class PythonCode:
    """Code that parses, and what can be said of it without running it."""

    code: str
    tree: ast.Module

    @classmethod
    def of(cls, code: str) -> "PythonCode | None":
        tree = parse_python(code)
        return None if tree is None else cls(code, tree)

    @cached_property
    def definitions(self) -> frozenset[str]:
        """Functions and classes at the top level, and names of lambdas."""
        return frozenset(_names_of_definitions(self.tree))

    @cached_property
    def binds(self) -> frozenset[str]:
        """Every name that stands at the top level once this has run."""
        if self._table is None:
            return self.definitions
        symbols = self._table.get_symbols()
        bound = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported() or s.is_namespace()}
        return frozenset(bound) | self.definitions

    @cached_property
    def needs(self) -> frozenset[str]:
        """Names that it uses and somebody else must have given a value."""
        return frozenset(_globals_of(self._table)) - self.binds - _BUILTINS if self._table else frozenset()

    @cached_property
    def needs_at_once(self) -> frozenset[str]:
        """Those of ``needs`` that are looked up as soon as it runs, and not when a function is called."""
        if self._table is None:
            return frozenset()
        return frozenset(_globals_of(self._table, at_once=True)) & self.needs

    @cached_property
    def is_tests(self) -> bool:
        """It checks code that stands elsewhere."""
        if any(isinstance(node, _Definition) for node in self.tree.body):
            return all(_is_test(node) for node in self.tree.body if isinstance(node, _Definition))
        asserts = [node for node in self.tree.body if isinstance(node, ast.Assert)]
        return bool(asserts) and not self.definitions and not any(_assigns(node) for node in self.tree.body)

    @cached_property
    def is_imports(self) -> bool:
        """Nothing but imports (and comments)."""
        return all(isinstance(node, ast.Import | ast.ImportFrom) for node in self.tree.body)

    @cached_property
    def acts(self) -> bool:
        """Something happens when it is imported: it calls, loops or decides at the top level."""
        return any(
            isinstance(node, ast.For | ast.While | ast.With | ast.AsyncFor | ast.Assert)
            or (isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant))
            or (isinstance(node, ast.If) and not node.orelse)
            for node in self.tree.body
        )

    @cached_property
    def reads_input(self) -> bool:
        return _READS_INPUT.search(self.code) is not None

    @cached_property
    def is_demonstration(self) -> bool:
        """By its names it shows how something is used."""
        return bool(self.definitions) and all(_DEMONSTRATION.match(name) for name in self.definitions)

    @cached_property
    def stubs(self) -> frozenset[str]:
        """Definitions without a body, and classes of which only a part is shown."""
        return frozenset(node.name for node in self.tree.body if isinstance(node, _Definition) and _is_stub(node))

    @cached_property
    def roots(self) -> frozenset[str]:
        """Definitions that none of the other definitions uses: what the code is there for."""
        used: set[str] = set()
        for node in self.tree.body:
            if isinstance(node, _Definition):
                used |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - {node.name}
        return self.definitions - used

    @cached_property
    def only_defines(self) -> bool:
        """Nothing happens when it is imported; as a program it may do something."""
        return not any(
            not isinstance(node, _Definition | ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign)
            and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            and not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
            for node in self.tree.body
        )

    def imports_by_module(self) -> Iterator[frozenset[str]]:
        """The names of each ``from ... import`` of a module that may be the answer's own."""
        for node in self._own_imports():
            yield frozenset(alias.name for alias in node.names)

    def without_imports_of(self, names: frozenset[str]) -> str:
        """The code without each ``from ... import`` that is for ``names`` alone, and renames none."""
        lines = lines_of(self.code)
        for node in self._own_imports():
            if all(alias.name in names and alias.asname in (None, alias.name) for alias in node.names):
                lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
        return "".join(lines)

    def _own_imports(self) -> Iterator[ast.ImportFrom]:
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] not in sys.stdlib_module_names:
                yield node

    @cached_property
    def wants_future(self) -> bool:
        return any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in self.tree.body)

    @cached_property
    def _table(self) -> symtable.SymbolTable | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return symtable.symtable(self.code.removeprefix("\ufeff"), "<answer>", "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _names_of_definitions(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, _Definition):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Lambda):
            yield from [node.target.id] if isinstance(node.target, ast.Name) else []


def _globals_of(table: symtable.SymbolTable, at_once: bool = False) -> Iterator[str]:
    is_top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (is_top or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        if not at_once or child.get_type() == "class":
            yield from _globals_of(child, at_once)


def _is_test(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        bases = [ast.unparse(base) for base in node.bases]
        return node.name.startswith("Test") or any(base.endswith("TestCase") for base in bases)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _assigns(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)


def _is_stub(node: _Definition) -> bool:
    body = [part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    has_dots = any(
        isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and part.value.value is ...
        for part in node.body
    )
    only_pass = all(isinstance(part, ast.Pass) or _raises_not_implemented(part) for part in body)
    return has_dots or only_pass


def _raises_not_implemented(node: ast.stmt) -> bool:
    return isinstance(node, ast.Raise) and node.exc is not None and "NotImplemented" in ast.unparse(node.exc)
