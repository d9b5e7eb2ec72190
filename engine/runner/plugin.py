"""Inside the box: runs the user's tests on a candidate under pytest and tells what happened, event by event.

Records, in order: importing, imported (or unimportable), collected (or broken), then start and end for each test
and for the canaries, done. A canary is a test that must fail; where one does not, the candidate has changed pytest.
"""

import ast
import importlib.util
import inspect
import linecache
import random
import re
import resource
import sys
import types
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion.rewrite import rewrite_asserts

from engine.runner import forms

Put = Callable[..., None]

WHY_LENGTH = 2000  # characters of an explanation that travel
SEVERITY = ("passed", "skipped", "failed", "error")
OPTIONS = "-s --noconftest --import-mode=importlib -c pytest.ini --rootdir . --confcutdir ."
WITHOUT = ("cacheprovider", "terminal", "faulthandler", "junitxml", "pastebin", "setuponly", "setupplan", "stepwise")
# pytest shows what is called at the top level of a script as an object; its name is what was written there.
_CALLED = re.compile(r"<(?:function|built-in function|class) '?(?:solution\.)?([\w.]+)'?(?: at 0x[0-9a-f]+)?>\(")


def perform(task: dict[str, Any], put: Put) -> None:
    """Runs ``task``: those of its ``tests`` that ``ids`` names, on its ``solution`` (None: only lists them)."""
    here = Path.cwd()
    (here / "pytest.ini").write_text("[pytest]\n")
    (here / forms.FILE).touch()  # pytest wants a file; the text itself is nowhere on the disk of the box
    sys.path.insert(0, str(here))
    source = forms.parse(task["tests"])
    linecache.cache[forms.FILE] = (0, None, source.text.splitlines(keepends=True), forms.FILE)
    put("importing")
    solution = import_solution(here / f"{forms.SOLUTION}.py", task["solution"], put)
    if solution is not None:
        put("imported")
        arguments = [*OPTIONS.split(), *(word for name in WITHOUT for word in ("-p", f"no:{name}")), forms.FILE]
        pytest.main(arguments, plugins=[Run(task, source, solution, put)])
        sys.stdout.flush()
        put("done", peak_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1))


def import_solution(path: Path, text: str | None, put: Put) -> types.ModuleType | None:
    """The candidate as a module, its text written byte for byte; None after a record that says why not."""
    if text is None:
        return stand_in_module()
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        spec = importlib.util.spec_from_file_location(forms.SOLUTION, path)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        sys.modules[forms.SOLUTION] = module
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except BaseException as error:
        put("unimportable", why=explain(error, str(path))[1])
        return None
    return module


class StandIn:
    """What a name of the candidate is while the tests are listed without one: it may be called, not looked into."""

    def __call__(self, *args: object, **kwargs: object) -> "StandIn":
        return StandIn()

    def __getattr__(self, name: str) -> "StandIn":
        if name.startswith("__"):
            raise AttributeError(f"a candidate's {name} is not known while the tests are being listed")
        return StandIn()

    def __iter__(self) -> Iterator[object]:
        raise TypeError("a value of the candidate is needed to list the tests; use it inside a test function")

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()


def stand_in_module() -> types.ModuleType:
    module = types.ModuleType(forms.SOLUTION)
    module.__getattr__ = StandIn().__getattr__  # type: ignore[method-assign]
    sys.modules[forms.SOLUTION] = module
    return module


def message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return "(its message cannot be shown)"


def explain(error: BaseException, solution: str) -> tuple[str, str]:
    """Outcome and explanation: *failed* for an assertion of the tests, *error* for anything else that was raised."""
    lines: dict[str, int] = {}  # file -> the innermost line of it
    trace = error.__traceback__
    while trace is not None:
        lines[trace.tb_frame.f_code.co_filename] = trace.tb_lineno
        trace = trace.tb_next
    text = message(error)
    if isinstance(error, AssertionError | pytest.fail.Exception) and solution not in lines:
        text = "\n".join(line for line in text.splitlines() if "Use -v to get more diff" not in line).strip()
        text = _CALLED.sub(r"\1(", text)
        return "failed", (f"line {lines[forms.FILE]}: {text}" if forms.FILE in lines else text)[:WHY_LENGTH]
    where = ""
    if solution in lines:
        where = f" (line {lines[solution]} of the candidate)"
    elif forms.FILE in lines:
        where = f" (line {lines[forms.FILE]} of the tests)"
    if isinstance(error, SyntaxError) and error.filename == solution:
        text, where = str(error.msg), f" (line {error.lineno} of the candidate)"
    elif isinstance(error, ImportError) and error.name == forms.SOLUTION:
        text = text.replace(" from 'solution'", "").split(" (")[0] + ": the candidate does not define it"
    return "error", f"{type(error).__name__}: {text[:WHY_LENGTH]}".rstrip(": ") + where


class TestFile(pytest.Module):
    """The user's tests, loaded from memory with asserts that show their values."""

    __test__ = False
    source: forms.TestSource
    run: "Run"

    @classmethod
    def of(cls, parent: Any, source: forms.TestSource, run: "Run") -> "TestFile":
        file: TestFile = cls.from_parent(parent, path=Path.cwd() / forms.FILE)
        file.source, file.run = source, run
        return file

    def _getobj(self) -> types.ModuleType:
        module = types.ModuleType("__main__" if self.source.checks else "tests")
        module.__file__ = str(self.path)
        random.seed(0)  # tests that are made by chance are the same ones in every box
        for name in self.source.borrowed:
            value = getattr(self.run.solution, name, self)
            if value is not self:
                setattr(module, name, value)
        if not self.source.checks:
            body = self.source.tree.body
            if self.run.listing:  # a top-level assert beside test functions needs the real candidate
                body = [statement for statement in body if not forms.is_check(statement, set())]
            self.execute(body, module)
        return module

    def execute(self, statements: list[ast.stmt], module: types.ModuleType) -> None:
        tree = ast.Module(statements, [])
        rewrite_asserts(tree, self.source.text.encode("utf-8", "replace"), forms.FILE, self.config)
        exec(compile(tree, forms.FILE, "exec", dont_inherit=True), module.__dict__)

    def collect(self) -> list[Any]:
        try:
            return list(self._checks() if self.source.checks else super().collect())
        except BaseException as error:
            self.run.break_off(explain(error, self.run.path)[1])
            raise

    def _checks(self) -> Iterator["CheckItem"]:
        script = Script(self, self.obj)
        for check in self.source.checks:
            item: CheckItem = CheckItem.from_parent(self, name=check.id)
            item.check, item.script = check, script
            yield item


class Script:
    """Bare asserts in order. Statements between checks run once, before the next check that runs."""

    def __init__(self, file: TestFile, module: types.ModuleType):
        self.file, self.module, self.position = file, module, 0
        self.checks = {check.index for check in file.source.checks}

    def run(self, check: forms.Check) -> None:
        body = self.file.source.tree.body
        while self.position <= check.index:
            index, self.position = self.position, self.position + 1
            if index == check.index or index not in self.checks:
                self.file.execute([body[index]], self.module)


class CheckItem(pytest.Item):
    check: forms.Check
    script: Script

    def runtest(self) -> None:
        self.script.run(self.check)


class Run:
    """The pytest plugin of one task."""

    def __init__(self, task: dict[str, Any], source: forms.TestSource, solution: types.ModuleType, put: Put):
        self.task, self.source, self.solution, self.put = task, source, solution, put
        self.listing = task["solution"] is None
        self.path = str(Path.cwd() / f"{forms.SOLUTION}.py")
        self.outcome, self.why, self.broken = "passed", "", False
        self.names: dict[pytest.Item, str] = {}  # by which a test is the same one in every box
        self.now = ""

    def pytest_pycollect_makemodule(self, module_path: Path, parent: Any) -> TestFile:
        return TestFile.of(parent, self.source, self)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            text = report.longreprtext
            errors = [line.removeprefix("E").strip() for line in text.splitlines() if line.startswith("E ")]
            self.break_off((errors[-1] if errors else text)[-WHY_LENGTH:])

    def break_off(self, why: str) -> None:
        """The tests could not be loaded; the first reason counts."""
        if not self.broken:
            self.broken = True
            self.put("broken", why=why)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self.broken:
            return
        if self.listing and any(map(_needs_a_loop, session.items)):
            self.break_off("pytest here cannot run async tests")
            session.items = []
            return
        self.names = _names(session.items)
        items = {name: item for item, name in self.names.items()}
        self.put("collected", ids=list(items), shown=[_short(item.nodeid) for item in self.names])
        if self.listing:
            session.items = []
        elif items:
            session.items = [items[i] for i in self.task["ids"] if i in items] + self._canaries(session)

    def _canaries(self, session: pytest.Session) -> list[pytest.Item]:
        """Two tests that must fail, in the form of the file, under names that no candidate can know before."""
        bodies = ("assert [] == [0]", "assert {}[0]")
        names = self.task["canaries"]
        if self.source.checks:
            source = forms.parse("\n".join(bodies))
            checks = (replace(c, id=name) for c, name in zip(source.checks, names, strict=True))
            source = replace(source, checks=tuple(checks))
        else:
            functions = (f"def {name}():\n    {body}\n" for name, body in zip(names, bodies, strict=True))
            source = forms.parse("".join(functions))
        parent = next(iter(session.items)).getparent(TestFile)
        assert parent is not None
        return TestFile.of(parent.parent, source, self).collect()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self.now = self.names.get(item) or _short(item.nodeid)

    def pytest_runtest_logstart(self) -> None:
        self.outcome, self.why = "passed", ""
        self.put("start", id=self.now)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.passed:
            return report
        outcome, why = "skipped", message(call.excinfo.value)[:WHY_LENGTH] if call.excinfo is not None else ""
        if report.failed:
            outcome, why = explain(call.excinfo.value, self.path) if call.excinfo else ("failed", report.longreprtext)
        if SEVERITY.index(outcome) > SEVERITY.index(self.outcome):
            self.outcome, self.why = outcome, why.removeprefix(f"{item.name}: ")  # a bare assert's name is its line
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed and self.outcome == "passed":
            self.outcome = report.outcome  # a plugin's own report, such as a subtest's

    def pytest_runtest_logfinish(self) -> None:
        sys.stdout.flush()
        self.put("end", id=self.now, outcome=self.outcome, why=self.why)


def _short(nodeid: str) -> str:
    return nodeid.removeprefix(f"{forms.FILE}::")


def _names(items: list[pytest.Item]) -> dict[pytest.Item, str]:
    """Parametrized tests by number: pytest's ids may hold values of the candidate, or values made by chance."""
    names: dict[pytest.Item, str] = {}
    numbers: Counter[str] = Counter()
    for item in items:
        name, parameters = _short(item.nodeid), getattr(item, "callspec", None)
        if parameters is not None:
            name = name.removesuffix(f"[{parameters.id}]")
            numbers[name] += 1
            name = f"{name}[{numbers[name] - 1}]"
        names[item] = name
    return names


def _needs_a_loop(item: pytest.Item) -> bool:
    """Whether it is an async test that no plugin here will run. (unittest runs its own.)"""
    if type(item) is not pytest.Function or not inspect.iscoroutinefunction(item.obj):
        return False
    plugins = item.config.pluginmanager
    by_mark = any(plugins.hasplugin(name) and item.get_closest_marker(name) for name in ("anyio", "trio"))
    return not by_mark and not plugins.hasplugin("asyncio")
