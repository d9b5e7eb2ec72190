"""Inside the tests' box: which checks of the tests were reached, and which failed without the test's saying so.

An assert that stands in a branch that was not taken has checked nothing, and one whose failure the tests catch and
print has failed all the same. So every statement that can fail notes that it was reached, and every handler of the
tests notes what it catches.
"""

import ast
import contextlib
import doctest
import functools
import sys
import types
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.runner import checks, forms
from engine.runner.explain import explain, is_good_end, of_the_candidate

_REACHED, _CAUGHT = "@reached", "@caught"  # no names that a test file could use
_BROAD = frozenset(("Exception", "BaseException", "AssertionError", "failureException", "Failed"))
_CAUGHT_BY_TESTS = "the tests catch it, which does not make it a pass"


class Watch:
    """Of one test file. ``reached`` counts the checks that were reached; ``caught`` is the first failure kept quiet."""

    def __init__(self, tree: ast.Module):
        self.reached, self.caught = 0, ""
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        self._functions = {min([n.lineno, *(d.lineno for d in n.decorator_list)]): n for n in functions}
        self._checkers = checks.checkers_of(tree)
        checking = list(filter(checks.holds_checks, self._functions.values()))
        self._incomplete = [(node.lineno, node.end_lineno or node.lineno) for node in checking]
        self._raises = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Raise)}
        choices = [node for node in ast.walk(tree) if isinstance(node, ast.If) and not checks.is_main_block(node)]
        self._chosen = {line for node in choices for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
        self.any = checks.holds_checks(tree)

    # What must be reached.

    def wants(self, code: types.CodeType | None) -> bool:
        """Whether the function of the tests with that code would have checked nothing had it reached no check."""
        if code is None or code.co_filename != forms.FILE:
            return False
        node = self._functions.get(code.co_firstlineno)
        return node is not None and self.wants_node(node)

    def wants_node(self, node: ast.AST) -> bool:
        if checks.holds_checks(node):
            return True
        return any(isinstance(call, ast.Call) and checks.called(call) in self._checkers for call in ast.walk(node))

    # What the tests' code is told to note.

    def names(self) -> dict[str, Callable[..., None]]:
        """What the instrumented code calls; it belongs into its module."""
        return {_REACHED: self._note_reached, _CAUGHT: self._note_caught}

    def instrumented(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """``statements`` with the notes between them. What is nested in them is changed in place."""
        found: list[ast.stmt] = []
        for statement in statements:
            if checks.can_fail(statement):
                found.append(_note(_REACHED, statement))
            self._inside(statement)
            found.append(statement)
        return found

    def _inside(self, node: ast.AST) -> None:
        checked = isinstance(node, ast.Try | ast.TryStar) and any(map(_is_incomplete, node.body))
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                setattr(node, name, self.instrumented(inner))
        for case in getattr(node, "cases", ()):
            self._inside(case)
        for handler in getattr(node, "handlers", ()):
            self._inside(handler)
            handler.body.insert(0, _note(_CAUGHT, handler.body[0], _is_broad(handler.type), checked))
        last = getattr(node, "finalbody", None)
        leaving = (ast.Return, ast.Break, ast.Continue)
        if last and any(isinstance(inner, leaving) for s in last for inner in checks.own_nodes(s)):
            last.insert(0, _note(_CAUGHT, last[0], True, checked))

    def _note_reached(self) -> None:
        self.reached += 1

    def _note_caught(self, broad: bool, checked: bool) -> None:
        """A handler of the tests runs. ``broad``: it takes a failed assert too; ``checked``: it guards a check."""
        error = sys.exception()
        if error is not None and not self.caught and self._is_failure(error, broad, checked):
            self.failed(error)

    def _is_failure(self, error: BaseException, broad: bool, checked: bool) -> bool:
        if isinstance(error, BaseExceptionGroup):
            return any(self._is_failure(inner, broad, checked) for inner in error.exceptions)
        if not of_the_candidate(error):
            if isinstance(error, AssertionError | pytest.fail.Exception):
                return True
            if isinstance(error, SystemExit):
                return error.code not in (None, 0)
        if not broad or isinstance(error, pytest.skip.Exception):
            return False
        lines = list(_lines_of_tests(error))
        deeper = any(start <= line <= end for line in lines[1:] for start, end in self._incomplete)
        return checked or deeper or (not of_the_candidate(error) and lines[-1:] != [] and lines[-1] in self._raises)

    def is_good_end(self, error: SystemExit) -> bool:
        """Whether the script is over, and well: not by a bare ``exit()`` under a condition, which could mean either."""
        if not is_good_end(error):
            return False
        return error.code is not None or not any(line in self._chosen for line in _lines_of_tests(error))

    def failed(self, error: BaseException) -> None:
        """Something of the tests failed, and it may be that they only tell or count it."""
        self.caught = self.caught or f"{explain(error)[1]} ({_CAUGHT_BY_TESTS})"

    def watch_libraries(self) -> None:
        """Failures that ``unittest`` and ``doctest``, run by the tests themselves, only print; ``suppress`` as well."""
        for name in ("addFailure", "addError"):
            _before(unittest.TestResult, name, lambda result, test, err: self.failed(err[1]))
        _before(unittest.TestResult, "addSubTest", self._note_subtest)
        for name in ("report_failure", "report_unexpected_exception"):
            _before(doctest.DocTestRunner, name, lambda runner, out, test, example, got: self._failed_example(example))
        _before(contextlib.suppress, "__exit__", self._suppresses)

    def _note_subtest(self, result: Any, test: Any, subtest: Any, err: Any) -> None:
        if err:
            self.failed(err[1])

    def _suppresses(self, suppress: Any, kind: Any, error: BaseException | None, trace: Any) -> None:
        own = not of_the_candidate(error) if error is not None else False
        if own and isinstance(error, AssertionError) and issubclass(kind, suppress._exceptions) and not self.caught:
            self.failed(error)

    def _failed_example(self, example: doctest.Example) -> None:
        self.failed(AssertionError(f"{example.source.strip()} does not give {example.want.strip()}"))


def _before(owner: Any, name: str, note: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(*arguments: Any, **keywords: Any) -> Any:
        note(*arguments, **keywords)
        return original(*arguments, **keywords)

    setattr(owner, name, method)


def _note(name: str, at: ast.AST, *arguments: bool) -> ast.stmt:
    given: list[ast.expr] = [ast.Constant(value) for value in arguments]
    call = ast.Expr(ast.Call(ast.Name(name, ast.Load()), given, []))
    return ast.fix_missing_locations(ast.copy_location(call, at))


def _is_incomplete(statement: ast.stmt) -> bool:
    """Whether a check of its own is cut short when an exception leaves it."""
    found = (node for node in checks.own_nodes(statement) if isinstance(node, ast.Assert | ast.Expr))
    return any(checks.can_fail(node) and not _leaves(node) for node in found)


def _leaves(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and checks.is_call_of(node.value, ("exit", "_exit"))


def _is_broad(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    names = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(ast.unparse(name).rpartition(".")[2] in _BROAD for name in names)


def _lines_of_tests(error: BaseException) -> Iterator[int]:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == forms.FILE:
            yield trace.tb_lineno
        trace = trace.tb_next
