"""What in a test file can fail, read from its text alone: the checks of a script, and asserts that nothing would run.

Used by the service and inside the tests' box; the standard library only.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

SOLUTION = "solution"  # the module name of a candidate
REST, WHOLE = "rest of the script", "the whole script"  # checks that are no one statement
NOT_REACHED = "none of its checks was reached"  # why a test that seems to have passed is none
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LEAVING = ("exit", "_exit", "quit", "abort", "fail")
# A condition on nothing but these is about the computer, not about the candidate.
_SURROUNDINGS = frozenset(("sys", "os", "platform", "typing", "TYPE_CHECKING", "True", "False"))
_DYNAMIC = frozenset(
    ("globals", "locals", "vars", "dir", "setattr", "exec", "eval", "__dict__", "__import__", "import_module", "type")
)
_FIXED = ("setup", "teardown", "setUp", "tearDown", "pytest_", "load_tests", "__")  # names that somebody else calls


@dataclass(frozen=True)
class Check:
    """A top-level statement that checks something, at ``index`` of the module's body; or all that is left there."""

    id: str
    index: int


def script_checks(tree: ast.Module) -> Iterator[Check]:
    """The checks of a script, in order; none where nothing in it could fail."""
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


def is_check(statement: ast.stmt, checkers: set[str]) -> bool:
    """An assert, a block with one inside, ``with pytest.raises``, or a call that asserts (``check(add)``)."""
    if isinstance(statement, _SCOPES):
        return False
    for node in own_nodes(statement):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.With):
            entered = (item.context_expr for item in node.items)
            if any(isinstance(call, ast.Call) and called(call) in ("raises", "warns") for call in entered):
                return True
        if isinstance(node, ast.Call):
            name = called(node)
            if name in checkers or name.startswith("assert"):
                return True
    return False


def _acts(statement: ast.stmt) -> bool:
    """Whether it could check something in a way that is not seen: by what it calls, or by raising."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass):
        return False
    if isinstance(statement, ast.ClassDef) and any(is_check(inner, set()) for inner in statement.body):
        return True
    if isinstance(statement, _SCOPES):
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
        if isinstance(node, ast.Call) and called(node).startswith(("assert", "raises", "fail", "exit")):
            return True
    return False


def called(call: ast.Call) -> str:
    return ast.unparse(call.func).rsplit(".", 1)[-1]


def is_call_of(node: ast.expr, names: tuple[str, ...]) -> bool:
    return isinstance(node, ast.Call) and called(node) in names


def own_nodes(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes below ``statement``, without the bodies of functions and classes defined in it."""
    yield statement
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from own_nodes(child)


# Which statements put the candidate to the proof, once they are reached.


def can_fail(statement: ast.AST) -> bool:
    """Whether ``statement`` itself checks something: to reach it is to have checked.

    An assert that is not about a constant, a call that asserts, ``with pytest.raises``, an ``if`` or ``try`` that
    raises or leaves, ``sys.exit(failed)``.
    """
    if isinstance(statement, ast.Assert):
        return not isinstance(statement.test, ast.Constant | ast.Lambda | ast.Tuple)
    if isinstance(statement, ast.Expr):
        call = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
        if not isinstance(call, ast.Call):
            return False
        name = called(call)
        leaves = name in ("exit", "_exit") and any(not isinstance(a, ast.Constant) for a in call.args)
        return leaves or name.startswith(("assert", "raises", "warns"))
    if isinstance(statement, ast.With | ast.AsyncWith):
        entered = (item.context_expr for item in statement.items)
        return any(isinstance(e, ast.Call) and called(e).startswith(("assert", "raises", "warns")) for e in entered)
    if isinstance(statement, ast.If):
        return any(map(_objects, (*statement.body, *statement.orelse)))
    return isinstance(statement, ast.Try | ast.TryStar) and any(map(_objects, (*statement.body, *statement.orelse)))


def _objects(statement: ast.stmt) -> bool:
    """Whether reaching ``statement`` is to fail: a raise, an assert of a constant, a call that leaves or fails."""
    if isinstance(statement, ast.Raise):
        return statement.exc is not None
    if isinstance(statement, ast.Assert):
        return isinstance(statement.test, ast.Constant)
    return isinstance(statement, ast.Expr) and is_call_of(statement.value, _LEAVING)


def holds_checks(node: ast.AST) -> bool:
    """Whether there is a statement in it that can fail, under no condition on the surroundings alone."""
    if can_fail(node):
        return True
    if isinstance(node, ast.If) and _about_the_surroundings(node.test):
        return any(map(holds_checks, node.orelse))
    return any(holds_checks(child) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def _about_the_surroundings(condition: ast.expr) -> bool:
    names = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)}
    return names <= _SURROUNDINGS


def checkers_of(tree: ast.Module) -> set[str]:
    """Functions of the file that check something, by themselves or by calling one that does."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = {function.name for function in functions if holds_checks(function)}
    calls = {f.name: {called(node) for node in ast.walk(f) if isinstance(node, ast.Call)} for f in functions}
    while more := {name for name, theirs in calls.items() if theirs & found} - found:
        found |= more
    return found


# Which files must be listed by pytest itself, and what it would pass over without a word.


def is_test(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return statement.name.startswith("test")
    if isinstance(statement, ast.ClassDef):
        bases = " ".join(ast.unparse(base) for base in statement.bases)
        return statement.name.startswith("Test") or "TestCase" in bases
    return False


def defines_tests(tree: ast.Module) -> bool:
    """Whether a test function or class is defined at the module's level, be it under a condition."""
    for statement in tree.body:
        if is_test(statement):
            return True
        if isinstance(statement, _SCOPES) or is_main_block(statement):
            continue
        if any(isinstance(node, ast.stmt) and is_test(node) for node in _of_this_scope(statement)):
            return True
    return False


def may_define_tests(tree: ast.Module) -> bool:
    """Whether only pytest can tell if there are tests in it: made by a function, under another name, by a loop."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            return True
        if isinstance(node, ast.ClassDef) and (node.bases or node.name.startswith("Test")):
            return True
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in _DYNAMIC or (isinstance(node.ctx, ast.Store) and name.startswith(("test", "Test"))):
                return True
        if isinstance(node, ast.alias) and (node.asname or node.name).startswith(("test", "Test", "*")):
            return True
    return False


def is_main_block(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _of_this_scope(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below ``node``: definitions too, but not what is inside them."""
    yield node
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _of_this_scope(child)


def always_true(tree: ast.Module) -> str:
    """The sentence about an assert on a tuple, such as ``assert (x == 1, "why")``; empty when there is none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple) and node.test.elts:
            return f"the assert on line {node.lineno} is about a pair, which is always true; remove its parentheses"
    return ""


def passed_over(tree: ast.Module, listed_by_pytest: bool) -> str:
    """The sentence about what looks like a test and would never run; empty when there is no such thing."""
    loaded = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    )
    if listed_by_pytest:
        classes = [s for s in tree.body if isinstance(s, ast.ClassDef) and is_test(s)]
        for body in (tree.body, *(cls.body for cls in classes)):
            if sentence := _defined_twice(body):
                return sentence
    if any(loaded[name] for name in _DYNAMIC - {"type", "dir", "setattr"}):
        return ""  # they may be looked up by name
    for statement in tree.body:
        suspects: list[ast.stmt] = [statement]
        if listed_by_pytest and isinstance(statement, ast.ClassDef) and is_test(statement):
            suspects += [s for s in statement.body if isinstance(s, ast.FunctionDef) and len(s.args.args) == 1]
        for suspect in suspects:
            if isinstance(suspect, _SCOPES) and not loaded[suspect.name] and not suspect.decorator_list:
                sentence = _never_run(suspect, listed_by_pytest)
                if sentence:
                    return sentence
    return ""


def _never_run(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, listed_by_pytest: bool) -> str:
    at = f" (line {node.lineno})"
    if isinstance(node, ast.ClassDef):
        inner = [s.name for s in node.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)]
        has_tests = any(name.startswith("test") for name in inner)
        if is_test(node) and not node.bases and has_tests and {"__init__", "__new__"} & set(inner):
            return f"pytest passes over the class {node.name}{at}, for it has a constructor; use setup_method instead"
        checking = any(isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef) and holds_checks(s) for s in node.body)
        if node.bases or is_test(node) or not checking or (listed_by_pytest and not has_tests):
            return ""
        return f"nothing runs the class {node.name}{at}; give it a name that begins with Test"
    if node.name.startswith(("test", *_FIXED)) or not holds_checks(node) or node.name == "check":
        return ""
    parameters = [a.arg for a in node.args.args if a.arg != "self"]
    if listed_by_pytest and parameters:
        return ""
    return f"nothing calls {node.name}{at}, which checks something; call it, or name it test_{node.name}"


def _defined_twice(body: list[ast.stmt]) -> str:
    lines: dict[str, int] = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and is_test(statement):
            if statement.name in lines:
                first = f"lines {lines[statement.name]} and {statement.lineno}"
                return f"{statement.name} is defined twice ({first}), so the first would never run; rename one"
            lines[statement.name] = statement.lineno
    return ""
