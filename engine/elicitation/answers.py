"""An answer as a test, in the form that the tests already have: bare asserts, pytest, unittest, doctest, examples."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.elicitation import values
from engine.elicitation.inputs import Call, Input
from engine.elicitation.outcomes import Outcome
from engine.elicitation.values import Wire
from engine.runner import forms

BARE, PYTEST, UNITTEST, DOCTEST, EXAMPLES, CHECKER = FORMS = (
    *("bare", "pytest", "unittest", "doctest", "examples", "check"),
)
_ARGUMENT = "argument"
_HEAD = re.compile(r"\s*(sample |example )?(input|output)\b.*:\s*$|\s*(input|output):", re.IGNORECASE)


class NotWritable(Exception):
    """Why an answer cannot be written as a test of this form, in a sentence."""


@dataclass(frozen=True)
class Answer:
    """What is right on an input. ``errors``: the types of which one may be raised; empty where none is."""

    given: Input
    outcome: Outcome
    errors: tuple[str, ...] = ()


def form_of(tests: str) -> str:
    """One of FORMS; of tests that are empty or broken, bare asserts."""
    try:
        source = forms.parse(tests)
    except (forms.BrokenTests, RecursionError):
        return BARE
    if source.form == forms.PYTEST:
        bases = [
            ast.unparse(base) for node in source.tree.body if isinstance(node, ast.ClassDef) for base in node.bases
        ]
        return UNITTEST if any(base.endswith("TestCase") for base in bases) else PYTEST
    return {forms.DOCTEST: DOCTEST, forms.EXAMPLES: EXAMPLES, forms.CHECK: CHECKER}.get(source.form, BARE)


def with_answer(tests: str, answer: Answer) -> str:
    """The tests with one test more; what was there stays as it is. Raises NotWritable."""
    form = form_of(tests)
    if answer.given.is_program or form in (EXAMPLES, DOCTEST):
        return _joined(tests, as_written(tests, answer))
    if form in (UNITTEST, CHECKER):
        return _into_body(tests, form, answer)
    lines, modules = statements(answer, form)
    if form == PYTEST:
        name = _free_name(tests, answer.given)
        body = "\n".join(f"    {line}" for line in lines)
        imports = _of_solution(tests, answer.given)
        return _imported(_joined(tests, f"\n{imports}def {name}():\n{body}"), modules)
    return _imported(_joined(tests, "\n".join(lines)), modules)


def as_written(tests: str, answer: Answer) -> str:
    """The lines that say it, in the form that the tests have, without what stands around them. Raises NotWritable."""
    form = form_of(tests)
    if answer.given.is_program:
        if tests.strip() and form != EXAMPLES:
            raise NotWritable("What a program prints can only be added to tests of input and output.")
        return _example(answer)
    if form == EXAMPLES:
        raise NotWritable("These tests are of input and output; a call cannot be added to them.")
    if form == DOCTEST:
        return _doctest(answer)
    lines, _ = statements(answer, form)
    return "\n".join(_of_checked(lines, _checker(forms.parse(tests)), answer) if form == CHECKER else lines)


def is_written(tests: str, answer: Answer) -> bool:
    """Whether its lines stand in the tests: what was added may have been taken back."""
    try:
        lines = as_written(tests, answer).splitlines()
    except NotWritable:
        return False
    wanted = [line.strip() for line in lines]
    there = [line.strip() for line in tests.splitlines()]
    return any(there[at : at + len(wanted)] == wanted for at in range(len(there)))


def statements(answer: Answer, form: str = BARE) -> tuple[list[str], set[str]]:
    """The lines of the test, and the modules they use. Raises NotWritable."""
    outcome, modules = answer.outcome, set[str]()
    try:
        before, call = _call(answer.given, outcome)
        if outcome.subject == "error":
            modules |= set() if form == UNITTEST else {"pytest"}
            return [*before, f"with {_raises(answer.errors, form)}:", f"    {call}"], modules
        if outcome.subject == "changes":
            checks = [_equal(f"{_ARGUMENT}_{at}", wire, form, modules) for at, wire in outcome.changed]
            return [*before, call, *checks], modules
        if outcome.subject == "prints":
            modules |= {"contextlib", "io"}
            check = _compared("printed.getvalue().strip()", repr(outcome.printed.strip()), form)
            return [
                *before,
                "with contextlib.redirect_stdout(io.StringIO()) as printed:",
                f"    {call}",
                check,
            ], modules
        return [*before, _equal(call, outcome.value, form, modules)], modules
    except values.NoSource:
        raise NotWritable("This result cannot be written as a test.") from None


def _call(given: Input, outcome: Outcome) -> tuple[list[str], str]:
    """What comes before the call that counts, and this call."""
    calls = list(given.calls)
    before: list[str] = []
    if len(calls) > 1:
        before.append(f"{_object(calls[0])} = {calls[0].text}")
        before += [f"{_object(calls[0])}.{call.text}" for call in calls[1:-1]]
    last = calls[-1]
    if outcome.subject == "changes":
        arguments = list(last.arguments)
        if any(at >= len(arguments) for at, _ in outcome.changed):
            raise NotWritable("This result cannot be written as a test.")
        for at, _ in outcome.changed:
            before.append(f"{_ARGUMENT}_{at} = {arguments[at]}")
            arguments[at] = f"{_ARGUMENT}_{at}"
        last = Call(last.name, tuple(arguments))
    return before, f"{_object(calls[0])}.{last.text}" if len(calls) > 1 else last.text


def _object(made: Call) -> str:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", made.name).lower()
    return name if name != made.name else f"{name}_1"


def _raises(errors: Sequence[str], form: str) -> str:
    kinds = ", ".join(errors) or "Exception"
    kinds = f"({kinds})" if len(errors) > 1 else kinds
    return f"self.assertRaises({kinds})" if form == UNITTEST else f"pytest.raises({kinds})"


def _equal(call: str, wire: Wire, form: str, modules: set[str]) -> str:
    """The check that ``call`` gives what ``wire`` is."""
    written, needed = values.source(wire)
    modules |= needed
    kind = values.tag(wire)
    if wire is None or isinstance(wire, bool):
        if form == UNITTEST:
            return {None: "self.assertIsNone({})", True: "self.assertIs({}, True)", False: "self.assertIs({}, False)"}[
                wire
            ].format(call)
        return f"assert {call} is {wire}"
    if kind in ("iterator", "view"):
        call = f"list({call})"
    if kind == "ndarray":
        check = "assert_allclose" if values.has_float(wire) else "assert_array_equal"
        return f"numpy.testing.{check}({call}, {written})"
    if values.has_float(wire):
        if form == UNITTEST and isinstance(wire, float) and wire == wire:
            return f"self.assertAlmostEqual({call}, {written}, places=6)"
        if isinstance(wire, float) or _is_flat(wire):
            modules.add("pytest")
            written = f"pytest.approx({written}, rel={values.TOLERANCE:g}, nan_ok=True)"
    return _compared(call, written, form)


def _is_flat(wire: Wire) -> bool:
    """A list or a tuple of numbers, which approx takes."""
    return values.tag(wire) in ("list", "tuple") and all(isinstance(part, int | float) for part in wire[1:])


def _compared(call: str, written: str, form: str) -> str:
    return f"self.assertEqual({call}, {written})" if form == UNITTEST else f"assert {call} == {written}"


def _doctest(answer: Answer) -> str:
    lines, modules = statements(answer)
    outcome, given = answer.outcome, answer.given
    before, call = _call(given, outcome)
    written = (
        [*before] if outcome.subject in ("error", "prints") else [*(f"import {m}" for m in sorted(modules)), *before]
    )
    head = [f">>> {line}" for line in written]
    if outcome.subject == "error":
        name = answer.errors[0] if len(answer.errors) == 1 else ""
        if not name:
            raise NotWritable("A doctest names one error; several kinds were raised here.")
        last = ["Traceback (most recent call last):", f"{name}:"]
        return "\n".join([*head, f">>> {call}  # doctest: +IGNORE_EXCEPTION_DETAIL", *last])
    if outcome.subject == "prints":
        shown = [line or "<BLANKLINE>" for line in outcome.printed.rstrip("\n").split("\n")]
        if any(line.lstrip().startswith((">>>", "...")) for line in shown):
            raise NotWritable("What is printed looks like a doctest itself, so it cannot be written as one.")
        return "\n".join([*head, f">>> {call}", *shown])
    if outcome.subject == "changes":
        checks = [line for line in lines if line.startswith("assert ")]
        return "\n".join([*head, f">>> {call}", *_true(checks)])
    wire = outcome.value
    if (isinstance(wire, int | str) and wire is not None) or (
        values.tag(wire) in ("int", "list", "tuple") and not _has_no_order(wire)
    ):
        return "\n".join([*head, f">>> {call}", values.show(wire)])
    return "\n".join([*head, *_true(lines[-1:])])


def _true(checks: Sequence[str]) -> list[str]:
    return [line for check in checks for line in (f">>> {check.removeprefix('assert ')}", "True")]


def _has_no_order(wire: Wire) -> bool:
    """Whether its text may differ where its value does not."""
    if isinstance(wire, float):
        return True
    if not isinstance(wire, list):
        return False
    return values.tag(wire) not in ("int", "list", "tuple", "bytes") or any(map(_has_no_order, wire[1:]))


def _example(answer: Answer) -> str:
    if answer.outcome.subject != "prints":
        raise NotWritable("A test of input and output says what is printed; it cannot ask for an error.")
    given = answer.given.given
    if any(_HEAD.match(line) for line in f"{given}\n{answer.outcome.printed}".splitlines()):
        raise NotWritable("A line of it looks like the head of an example, so it cannot be written as one.")
    if not answer.outcome.printed.strip():
        raise NotWritable("A program that prints nothing passes no test of input and output.")
    end = "" if given.endswith("\n") else "\n"
    return f"input:\n{given}{end}output:\n{answer.outcome.printed.rstrip()}"


def _joined(tests: str, more: str) -> str:
    if not tests.strip():
        return more.lstrip("\n") + "\n"
    return tests.rstrip("\n") + "\n" + more + "\n"


def _free_name(tests: str, given: Input) -> str:
    base = re.sub(r"\W+", "_", f"test_{given.calls[-1].name}").strip("_")
    number = 1
    while re.search(rf"\b{base}_{number}\b", tests):
        number += 1
    return f"{base}_{number}"


def _of_solution(tests: str, given: Input) -> str:
    """The import that a pytest file needs which does not take the name from anywhere."""
    name = given.calls[0].name
    return "" if re.search(rf"\b{re.escape(name)}\b", tests) else f"from solution import {name}\n\n\n"


def _into_body(tests: str, form: str, answer: Answer) -> str:
    """A method more in the last TestCase, or lines more at the end of ``check``."""
    source = forms.parse(tests)
    text = source.text
    lines, modules = statements(answer, form)
    node: ast.FunctionDef | ast.ClassDef
    if form == CHECKER:
        node = _checker(source)
        indent, more = " " * node.body[-1].col_offset, _of_checked(lines, node, answer)
    else:
        classes = [n for n in source.tree.body if isinstance(n, ast.ClassDef) and _is_case(n)]
        node = classes[-1]
        indent = " " * node.body[-1].col_offset
        more = ["", f"def {_free_name(text, answer.given)}(self):", *(f"    {line}" for line in lines)]
    if node.body[-1].lineno == node.lineno:
        raise NotWritable(f"Put the body of {node.name} on lines of its own; nothing can be added to it as it is.")
    rows = text.split("\n")
    end = node.end_lineno or len(rows)
    rows[end:end] = [f"{indent}{line}" if line else "" for line in more]
    return _imported("\n".join(rows), modules)


def _checker(source: forms.TestSource) -> ast.FunctionDef:
    return next(n for n in source.tree.body if isinstance(n, ast.FunctionDef) and n.name == forms.CHECKER)


def _of_checked(lines: Sequence[str], checker: ast.FunctionDef, answer: Answer) -> list[str]:
    """The lines as ``checker`` needs them, which knows the candidate by the name of its first parameter."""
    tree = ast.parse("\n".join(lines))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == answer.given.calls[0].name
        ):
            node.func.id = checker.args.args[0].arg
    return ast.unparse(tree).split("\n")


def _is_case(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("TestCase") for base in node.bases)


def _imported(tests: str, modules: set[str]) -> str:
    """``import`` lines above, for modules that are not imported yet."""
    missing = [module for module in sorted(modules) if not re.search(rf"^import {module}[ \t]*$", tests, re.MULTILINE)]
    if not missing:
        return tests
    if taken := [module for module in missing if module in _bound(tests)]:
        raise NotWritable(f"Your tests use the name {taken[0]} for something else than the module that this needs.")
    rows = tests.split("\n")
    at = _behind_docstring(tests)
    rows[at:at] = [f"import {module}" for module in missing]
    return "\n".join(rows)


def _bound(tests: str) -> set[str]:
    """Names that ``from ... import`` and assignments of the tests give something to."""
    try:
        nodes = list(ast.walk(ast.parse(tests)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    taken = [a.asname or a.name for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names]
    return {*taken, *(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))}


def _behind_docstring(tests: str) -> int:
    """The number of lines before the first one where an import may stand."""
    try:
        body = ast.parse(tests).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    first: list[ast.stmt] = [n for n in body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    if not first and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        first = [body[0]] if isinstance(body[0].value.value, str) else []
    return (first[-1].end_lineno or 0) if first else 0
