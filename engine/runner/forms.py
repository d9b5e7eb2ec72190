"""How a user's tests are written, found out without running a line of them.

A *script* of bare asserts, whose top-level checks are one test each; a *pytest* file (functions, classes, unittest);
``def check(candidate)`` as HumanEval has it; a *doctest*; *examples* of input and output; *commands*, one a line.
Used by the service and, inside the box, by the plugin; the standard library only.
"""

import __future__

import ast
import builtins
import doctest
import re
import symtable
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SOLUTION = "solution"  # the module name of a candidate
FILE = "tests.py"  # what the user's tests are called in messages
CANARIES = "canaries.py"
SCRIPT, PYTEST, CHECK, DOCTEST, EXAMPLES, COMMAND = "script", "pytest", "check", "doctest", "examples", "command"
CHECKER = "check"  # the function of the form CHECK
LONGEST = 4 << 20  # characters of a test file, or of a candidate
REST, WHOLE = "rest of the script", "the whole script"  # checks that are no one statement


class BrokenTests(Exception):
    """The test file cannot be used; the text says why and where."""


@dataclass(frozen=True)
class Check:
    """A top-level statement that checks something, at ``index`` of the module's body; or all that is left there."""

    id: str
    index: int


@dataclass(frozen=True)
class Example:
    """What a script gets on standard input, and what it must print."""

    given: str
    wanted: str


@dataclass(frozen=True)
class TestSource:
    """A test file that parses. ``form`` is one of the six; ``checks`` is empty in a pytest file.

    ``borrowed``: names that the tests use and define nowhere, to be taken from the candidate. Only these are
    taken, and never a built-in's name, so that a candidate cannot put its own ``all`` into the tests.
    ``builtins``: the built-in names that the tests use; ``imports``: they name what they want of the candidate.
    ``examples``: of a doctest, of input and output, or commands; a check's index counts them. ``future``: the
    compiler's flags for what the tests import from ``__future__``.
    """

    __test__ = False

    form: str
    text: str
    tree: ast.Module
    checks: tuple[Check, ...]
    borrowed: tuple[str, ...]
    builtins: tuple[str, ...]
    imports: bool
    examples: tuple[Any, ...] = ()
    future: int = 0


def parse(text: str) -> TestSource:
    """Raises BrokenTests when ``text`` does not parse or holds no test."""
    if len(text) > LONGEST:
        raise BrokenTests(f"Your tests are longer than {LONGEST >> 20} million characters; keep them shorter.")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "").strip()
    if first.startswith("$ "):
        return _commands(text)
    if first.lower() == "input:":
        return _examples(text)
    try:
        return _python(text)
    except BrokenTests:
        if re.search(r"^\s*>>> ", text, re.MULTILINE):
            return _doctest(text)
        raise


def _python(text: str) -> TestSource:
    tree, free, of_python = _parsed(text)
    form = SCRIPT
    checks: tuple[Check, ...] = ()
    if any(_is_test(statement) for statement in tree.body):
        form = PYTEST
    elif _is_checker(tree):
        form, checks = CHECK, (Check(f"{CHECKER}(candidate)", len(tree.body) - 1),)
    else:
        checks = tuple(_checks(tree))
    if not checks and form == SCRIPT:
        raise BrokenTests("Your tests hold no test: write top-level asserts, or functions named test_...")
    star = _replace_star_import(tree)
    imports = any(_imports_solution(node) for node in ast.walk(tree))
    borrowed = free if star or not imports else ()
    return TestSource(form, text, tree, checks, borrowed, of_python, imports, future=_future(tree))


def _parsed(text: str) -> tuple[ast.Module, tuple[str, ...], tuple[str, ...]]:
    """The tree, the names that are used and defined nowhere, and the built-in ones among those used."""
    try:
        tree = ast.parse(text, FILE)
        return tree, *_free_names(symtable.symtable(text, FILE, "exec"))
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise BrokenTests(f"Your tests do not parse: {line}{error.msg}.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BrokenTests(f"Your tests do not parse: {error}.") from None


def _future(tree: ast.Module) -> int:
    flags = 0
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
    return flags


def _is_checker(tree: ast.Module) -> bool:
    """``def check(candidate)`` that nobody calls, as HumanEval writes its tests."""
    defined = any(isinstance(s, ast.FunctionDef) and s.name == CHECKER and len(s.args.args) == 1 for s in tree.body)
    called = any(isinstance(node, ast.Call) and _called(node) == CHECKER for node in ast.walk(tree))
    return defined and not called


def _doctest(text: str) -> TestSource:
    try:
        examples = doctest.DocTestParser().get_examples(text, FILE)
    except ValueError as error:
        raise BrokenTests(f"Your doctest does not parse: {error}.") from None
    tree, free, of_python = _parsed("".join(example.source for example in examples))
    checks = tuple(Check(f"line {e.lineno + 1}", i) for i, e in enumerate(examples) if e.want)
    if not checks:
        raise BrokenTests("Your doctest says nowhere what should come out; write it below the line with >>>.")
    imports = any(_imports_solution(node) for node in ast.walk(tree))
    return TestSource(DOCTEST, text, tree, checks, () if imports else free, of_python, imports, tuple(examples))


def _examples(text: str) -> TestSource:
    """Sections ``input:`` and ``output:`` in turn."""
    pieces = re.split(r"^(input|output):[ \t]*$", text, flags=re.MULTILINE | re.IGNORECASE)
    names, bodies = [name.lower() for name in pieces[1::2]], pieces[2::2]
    if names[::2] != ["input"] * len(names[::2]) or names[1::2] != ["output"] * len(names[::2]):
        raise BrokenTests("Every section input: needs one section output: after it.")
    sections = [body.removeprefix("\n") for body in bodies]
    found = tuple(map(Example, sections[::2], sections[1::2]))
    return _other(EXAMPLES, text, [f"example {n}" for n in range(1, len(found) + 1)], found)


def _commands(text: str) -> TestSource:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    wrong = next((line for line in lines if not line.startswith("$ ")), None)
    if wrong is not None:
        raise BrokenTests(f"Every line of a list of commands begins with a dollar sign; this one does not: {wrong}")
    commands = tuple(line.removeprefix("$ ").strip() for line in lines)
    return _other(COMMAND, text, list(commands), commands)


def _other(form: str, text: str, names: list[str], examples: tuple[Any, ...]) -> TestSource:
    checks = tuple(Check(name, index) for index, name in enumerate(names))
    return TestSource(form, text, ast.Module([], []), checks, (), (), True, examples)


def entry_point(solution: str) -> str:
    """The function that ``check(candidate)`` is about: the only one, or the only one that the others do not call.

    Raises BrokenTests when there is no telling.
    """
    try:
        tree = ast.parse(solution.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""  # it cannot be imported either
    functions = [s for s in tree.body if isinstance(s, ast.FunctionDef)]
    used = {
        node.id
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id != function.name
    }
    on_top = {function.name for function in functions} - used
    if len(on_top) == 1:
        return on_top.pop()
    raise BrokenTests(
        f"Which function is to be checked? Add a last line such as {CHECKER}(your_function) to your tests."
    )


def doubt(text: str, solution: str) -> str:
    """Why a pass could be the built-ins' and not the candidate's, in a sentence; empty when it could not.

    Tests that name their imports are clear. In others a built-in that the candidate also defines is a mere helper
    only where it is called on something of the candidate's, as in ``all(add(x, 0) == x for x in y)``.
    """
    source = parse(text)
    if source.imports or not source.builtins:
        return ""
    defined = _defined(solution)
    clash = [name for name in source.builtins if name in defined]
    if source.borrowed:
        clash = [name for name in clash if not _only_helps(name, source)]
    elif not clash and not _mentions_solution(source.tree):
        names = ", ".join(source.builtins)
        wish = f"write `from solution import {names}` to test the candidate's"
        return f"Your tests use nothing of the candidate, only the builtin {names}; {wish}."
    if not clash:
        return ""
    names = ", ".join(clash)
    wish = f"write `from solution import {names}` to test the candidate's"
    return f"Your tests use the builtin {names}, which the candidate also defines; {wish}."


def _defined(solution: str) -> set[str]:
    try:
        top = symtable.symtable(solution.removeprefix("\ufeff"), SOLUTION, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # it cannot be imported either
    return {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}


def _only_helps(name: str, source: TestSource) -> bool:
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(source.tree))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            given = [inner for part in (*node.args, *node.keywords) for inner in ast.walk(part)]
            uses -= any(isinstance(inner, ast.Name) and inner.id in source.borrowed for inner in given)
    return uses == 0


def _mentions_solution(tree: ast.Module) -> bool:
    """In a string, as in ``importlib.import_module("solution")``."""
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return any(isinstance(text, str) and SOLUTION in text for text in texts)


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
    last = -1
    for index, statement in enumerate(tree.body):
        if not is_check(statement, checkers):
            continue
        last = index
        on_line[statement.lineno] += 1
        again = on_line[statement.lineno]
        yield Check(f"line {statement.lineno}" + (f" #{again}" if again > 1 else ""), index)
    if any(_acts(statement) for statement in tree.body[last + 1 :]) and (on_line or _can_object(tree)):
        yield Check(REST if on_line else WHOLE, len(tree.body) - 1)


def _acts(statement: ast.stmt) -> bool:
    """Whether it could check something in a way that is not seen: by what it calls, or by raising."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass):
        return False
    if isinstance(statement, ast.ClassDef) and any(is_check(inner, set()) for inner in statement.body):
        return True
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return bool(statement.decorator_list) and any(isinstance(node, ast.Assert) for node in ast.walk(statement))
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
        loaded = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        return any(name.id != "print" for name in loaded)
    return True


def _can_object(tree: ast.Module) -> bool:
    """Whether anything in it is there to fail; a script that only prints would pass with every candidate."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if isinstance(node, ast.Call) and _called(node).startswith(("assert", "raises", "fail", "exit")):
            return True
    return False


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).rsplit(".", 1)[-1]


def is_check(statement: ast.stmt, checkers: set[str]) -> bool:
    """An assert, a block with one inside, ``with pytest.raises``, or a call that asserts (``check(add)``)."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    for node in _own_nodes(statement):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.With):
            entered = (item.context_expr for item in node.items)
            if any(isinstance(call, ast.Call) and _called(call) in ("raises", "warns") for call in entered):
                return True
        if isinstance(node, ast.Call):
            name = _called(node)
            if name in checkers or name.startswith("assert"):
                return True
    return False


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes below ``statement``, without the bodies of functions and classes defined in it."""
    yield statement
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own_nodes(child)  # type: ignore[arg-type]


def _free_names(top: symtable.SymbolTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names that are used and defined nowhere, and built-in ones among those used."""
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
    of_python = set(dir(builtins))
    helpers = {name for name in (used - own) & of_python if not name.startswith("__")}
    return tuple(sorted(used - own - of_python - {"__file__"})), tuple(sorted(helpers))


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
