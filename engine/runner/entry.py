"""What is looked up in the candidate's text before its tests run: the function to check, and names that mislead."""

import ast
import builtins
import io
import re
import symtable
import tokenize
from collections.abc import Iterator

from engine.runner.checks import SOLUTION
from engine.runner.forms import CHECK, CHECKER, BrokenTests, TestSource

_ASIDE = re.compile(r"_|test|check$|main$|run(_|$)|demo|example|assert")  # names of functions that are not the answer
_SHORTEST_WORD = 3  # of a function that is known by being mentioned in the tests
_DYNAMIC = frozenset(("eval", "exec", "globals", "locals", "vars"))


def entry_point(solution: str, tests: str = "") -> str:
    """The function that ``check(candidate)`` is about; empty where it defines none. Raises BrokenTests when in doubt.

    Left out, as long as something remains, are helpers that the tests call by name, functions that cannot take what
    ``candidate`` is called with, then ``main``, tests of the candidate's own and their like. Of the rest it is the one
    that the others do not call; where there are several, the one that a comment or a string of the tests mentions.
    """
    try:
        tree = ast.parse(solution.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""  # it cannot be imported either
    functions = dict(_functions(tree))
    if not functions:
        return ""
    helpers, mentioned_words = _named_in(tests)
    left = {name: f for name, f in functions.items() if name not in helpers} or functions
    left = {name: f for name, f in left.items() if _can_take(f, tests)} or left
    left = {name: f for name, f in left.items() if not _ASIDE.match(name)} or left
    used = {
        node.id
        for name, function in left.items()
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id != name
    }
    on_top = [name for name in left if name not in used]
    mentioned = [name for name in left if name in mentioned_words]
    if len(mentioned) == 1 and mentioned[0] in on_top:
        return mentioned[0]
    if len(on_top) == 1 and not mentioned:
        return on_top[0]
    names = list(dict.fromkeys(on_top + mentioned)) or list(left)
    raise BrokenTests(
        f"Which function is to be checked, {' or '.join(names)}? "
        f"Add a last line such as {CHECKER}({names[0]}) to your tests."
    )


def _named_in(tests: str) -> tuple[set[str], set[str]]:
    """Names that the code of the tests uses, which are helpers to it; and the words of its comments and strings."""
    used: set[str] = set()
    mentioned_words: set[str] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(tests).readline):
            if token.type == tokenize.NAME:
                used.add(token.string)
            elif token.type in (tokenize.COMMENT, tokenize.STRING):
                mentioned_words.update(re.findall(r"\w+", token.string))
    except (tokenize.TokenError, SyntaxError):
        pass
    return used, {word for word in mentioned_words if len(word) >= _SHORTEST_WORD}


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]]:
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.name, statement
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda):
            yield from ((t.id, statement.value) for t in statement.targets if isinstance(t, ast.Name))


def _can_take(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, tests: str) -> bool:
    """Whether it takes as many arguments as the tests hand to ``candidate``. A decorator may change that."""
    if getattr(function, "decorator_list", ()):
        return True
    a = function.args
    places = [*a.posonlyargs, *a.args]
    least = len(places) - len(a.defaults)
    for call in _calls_of_candidate(tests):
        if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
            continue
        named = {str(keyword.arg) for keyword in call.keywords}
        known = {p.arg for p in (*a.args, *a.kwonlyargs)}
        if (len(call.args) > len(places) and a.vararg is None) or (named - known and a.kwarg is None):
            return False
        if len(call.args) + len(named & {p.arg for p in places}) < least:
            return False
    return True


def _calls_of_candidate(tests: str) -> Iterator[ast.Call]:
    try:
        tree = ast.parse(tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for checker in tree.body:
        if isinstance(checker, ast.FunctionDef) and checker.name == CHECKER and checker.args.args:
            name = checker.args.args[0].arg
            for node in ast.walk(checker):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                    yield node


def doubt(source: TestSource, solution: str) -> str:
    """Why a pass could be the built-ins' and not the candidate's, in a sentence; empty when it could not.

    Tests that name their imports are clear. In others a built-in that the candidate also defines is a mere helper
    only where it is called on something of the candidate's, as in ``all(add(x, 0) == x for x in y)``.
    """
    if source.imports or not source.builtins:
        return ""
    defined = _defined(solution)
    clash = [name for name in source.builtins if name in defined]
    if source.borrowed:
        clash = [name for name in clash if not _only_helps(name, source)]
    elif not clash and source.form != CHECK and not _mentions_solution(source):
        names = ", ".join(filter(_could_be_tested, source.builtins))
        only, wish = (f", only the builtin {names}", names) if names else ("", "...")
        return f"Your tests use nothing of the candidate{only}; write `from solution import {wish}` to test it."
    if not clash:
        return ""
    names = ", ".join(clash)
    wish = f"write `from solution import {names}` to test the candidate's"
    return f"Your tests use the builtin {names}, which the candidate also defines; {wish}."


def _could_be_tested(name: str) -> bool:
    value = getattr(builtins, name, None)
    return name != "print" and not (isinstance(value, type) and issubclass(value, BaseException))


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


def _mentions_solution(source: TestSource) -> bool:
    """In a string, as in ``importlib.import_module("solution")``; or it cannot be told, for strings are evaluated."""
    if _DYNAMIC & set(source.builtins):
        return True
    texts = (node.value for node in ast.walk(source.tree) if isinstance(node, ast.Constant))
    return any(isinstance(text, str) and SOLUTION in text for text in texts)
