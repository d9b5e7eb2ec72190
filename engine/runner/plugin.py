"""Inside the tests' box: runs the user's tests on a candidate under pytest and tells what happened, event by event.

Records, in order: importing, imported (or unimportable), collected (or broken), then start and end for each test
and for the canaries, done. A canary is a test that must fail; there are two where the candidate shares this process,
for it may have changed pytest.
"""

import ast
import contextlib
import functools
import importlib
import inspect
import linecache
import resource
import sys
import types
import unittest
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.skipping import evaluate_skip_marks, evaluate_xfail_marks

from engine.runner import checks, forms
from engine.runner.explain import LONGEST, explain, message
from engine.runner.items import CheckItem, TestFile
from engine.runner.needs import libraries
from engine.runner.split.crossing import LinkBroken
from engine.runner.split.module import import_solution
from engine.runner.split.tests import TestsLink, solution_module
from engine.runner.stopwatch import Stopwatch
from engine.runner.task import Task
from engine.runner.verdicts import Outcome
from engine.runner.watch import Watch

Put = Callable[..., None]

NO_LOOP = "pytest here cannot run async tests; call asyncio.run in them, or choose an environment with pytest-asyncio."
SEVERITY = (Outcome.PASSED, Outcome.SKIPPED, Outcome.FAILED, Outcome.ERROR)
OPTIONS = "-s --noconftest --import-mode=importlib -c pytest.ini --rootdir . --confcutdir ."
WITHOUT = ("cacheprovider", "terminal", "faulthandler", "junitxml", "pastebin", "setuponly", "setupplan", "stepwise")
_BEAT = 1000  # questions to the candidate's box after which the service hears that the test goes on
GONE = "The candidate ended the process."


def perform(task: Task, put: Put, pipes: list[int]) -> None:
    """Runs ``task``, or only lists its tests.

    ``pipes`` lead to the candidate in its own box; without them it is imported here.
    """
    here = Path.cwd()
    (here / "pytest.ini").write_text("[pytest]\n")
    for name in (forms.FILE, forms.CANARIES):
        (here / name).touch()  # pytest wants a file; the text itself is nowhere on the disk of the box
    sys.path.insert(0, str(here))
    sys.argv = [forms.FILE]
    source = forms.TestSource.from_data(task.tests)
    linecache.cache[forms.FILE] = (0, None, source.text.splitlines(keepends=True), forms.FILE)
    link = TestsLink(*pipes) if pipes else None
    put("importing")
    solution = load(task.solution, source, link, put)
    if solution is not None:
        put("imported")
        load_libraries(source)
        arguments = [*OPTIONS.split(), *(word for name in WITHOUT for word in ("-p", f"no:{name}")), forms.FILE]
        run, main = BoxPlugin(task, source, solution, link, put), pytest.main
        _keep_mains_quiet(source)
        main(arguments, plugins=[run])
        sys.stdout.flush()
        put("done", peak_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1))


def _keep_mains_quiet(source: forms.TestSource) -> None:
    """``unittest.main()`` and ``pytest.main()`` of a file whose tests are run here already; a script's own runs."""
    nothing_found = int(pytest.ExitCode.NO_TESTS_COLLECTED)
    pytest.main = lambda *arguments, **keywords: nothing_found if source.checks else 0
    if not source.checks:
        unittest.main = lambda *arguments, **keywords: None  # type: ignore[assignment]


def load_libraries(source: forms.TestSource) -> None:
    """Imports what the tests import besides Python's own, so that no test pays for the start of a library."""
    for name in libraries(source.tree):
        with contextlib.suppress(Exception):  # the tests will say so where they import it
            importlib.import_module(name)


def load(text: str | None, source: forms.TestSource, link: TestsLink | None, put: Put) -> types.ModuleType | None:
    """The candidate as a module, or what stands for it here; None after a record that says why not."""
    path = Path.cwd() / f"{forms.SOLUTION}.py"
    try:
        if text is None:
            return stand_in_module()
        if source.form in (forms.EXAMPLES, forms.COMMAND):
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
            return types.ModuleType(forms.SOLUTION)  # it is run, not imported
        if link is None:
            return import_solution(path, text)
        module = solution_module(link, forms.SOLUTION)
        link.ask("import")
        return module
    except LinkBroken:
        if link is not None and link.forged:
            put("forged", why=link.forged)
        else:
            put("unimportable", outcome=Outcome.KILLED, why="The candidate ended the process while it was imported.")
    except BaseException as error:
        put("unimportable", outcome=Outcome.ERROR, why=explain(error)[1])
    return None


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


class BoxPlugin:
    """The pytest plugin of one task."""

    def __init__(
        self,
        task: Task,
        source: forms.TestSource,
        solution: types.ModuleType,
        link: TestsLink | None,
        put: Put,
    ):
        self.task, self.source, self.solution, self.link, self.put = task, source, solution, link, put
        self.listing = task.solution is None
        self.outcome: str = Outcome.PASSED  # one of Outcome, or a plugin's own word
        self.why, self.broken = "", False
        self.names: dict[pytest.Item, str] = {}  # by which a test is the same one in every box
        self.now = ""
        self.beaten = 0
        self.watch, self.reached_before = Watch(source.tree), 0
        self.watch.watch_libraries()
        self.stopwatch: Stopwatch | None = None
        if link is not None:
            link.generators.follow(numpy="numpy" in source.text and "random" in source.text)
            link.beat = self._beat
            self.stopwatch = Stopwatch(link, task.limit_s, lambda test: put("late", id=test))

    def entry(self) -> str:
        """The function of the candidate that ``check(candidate)`` is about."""
        return self.task.entry

    def run_script(self, given: str) -> tuple[str, int, str]:
        assert self.link is not None
        printed, code, why = self.link.ask("script", given)
        return str(printed), int(code), str(why)

    def _beat(self) -> None:
        assert self.link is not None
        if self.link.questions - self.beaten >= _BEAT:
            self.beaten = self.link.questions
            self.put("beat")

    def pytest_pycollect_makemodule(self, module_path: Path, parent: Any) -> TestFile:
        return TestFile.of(parent, self.source, self)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            text = report.longreprtext
            errors = [line.removeprefix("E").strip() for line in text.splitlines() if line.startswith("E ")]
            self.break_off((errors[-1] if errors else text)[-LONGEST:])
        elif report.skipped:
            self.break_off(f"they skip themselves: {_reason(report)}")

    def cannot_load(self, error: BaseException) -> None:
        self._speak_of_the_link()
        if isinstance(error, LinkBroken):
            self.break_off("The candidate ended the process while the tests were loaded.", Outcome.KILLED)
        else:
            self.break_off(explain(error)[1])

    def break_off(self, why: str, outcome: Outcome = Outcome.ERROR) -> None:
        """The tests could not be loaded; the first reason counts."""
        if not self.broken:
            self.broken = True
            self.put("broken", outcome=outcome, why=why)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.session = session
        if self.broken:
            return
        if self.listing and any(map(_needs_a_loop, session.items)):
            self.break_off(NO_LOOP)
            session.items = []
            return
        if self.listing and (name := _passed_over()):
            self.break_off(f"pytest passes over {name}, which is no function; make it one")
        session.items = [item for item in session.items if not self._is_helper(item)]
        self.names = _names(session.items)
        items = {name: item for item, name in self.names.items()}
        every = list(self.task.every)
        if self.link is not None and every and list(items) != every:
            self.break_off(_other_tests(list(items), every))
        if self.broken:
            session.items = []
            return
        skips = {name: why for name, item in items.items() if (why := _skipped_by_mark(item)) is not None}
        shown, doomed = [_short(item.nodeid) for item in self.names], [n for n, i in items.items() if _must_fail(i)]
        self.put("collected", ids=list(items), shown=shown, skipped=skips, doomed=doomed)
        if self.listing:
            session.items = []
        elif items:
            session.items = [items[i] for i in self.task.ids if i in items] + self._canaries(session)

    def _is_helper(self, item: pytest.Item) -> bool:
        """Whether a function named like a test wants what no fixture gives: one that the file calls by itself."""
        missing = _missing_fixture(item)
        if not missing:
            return False
        name = getattr(item, "originalname", item.name)
        calls = (node for node in ast.walk(self.source.tree) if isinstance(node, ast.Call))
        if any(checks.called(call) == name for call in calls):
            return True
        if self.listing:
            self.break_off(f"{name} wants {missing}, which is no fixture")
        return False

    def _canaries(self, session: pytest.Session) -> list[pytest.Item]:
        """Two tests that must fail, in the form of the file, under names that no candidate can know before.

        They lie in a file of their own, out of reach for the fixtures of the tests.
        """
        bodies = ("assert [] == [0]", "assert {}[0]")
        names = self.task.canaries
        if not names:
            return []
        if self.source.checks:
            source = forms.parse("\n".join(bodies), forms.SCRIPT)
            named = (replace(c, id=name) for c, name in zip(source.checks, names, strict=True))
            source = replace(source, checks=tuple(named))
        else:
            functions = (f"def {name}():\n    {body}\n" for name, body in zip(names, bodies, strict=True))
            source = forms.parse("".join(functions), forms.PYTEST)
        parent = next(iter(session.items)).getparent(TestFile)
        assert parent is not None
        return TestFile.of(parent.parent, source, self, forms.CANARIES).collect()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self.now = self.names.get(item) or item.nodeid.partition("::")[2]

    def pytest_runtest_logstart(self) -> None:
        self.outcome, self.why = Outcome.PASSED, ""
        self.watch.caught, self.reached_before = "", self.watch.reached
        self.put("start", id=self.now)
        if self.stopwatch is not None:
            self.stopwatch.start(self.now)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self._look_closer(item)
        if report.passed:
            return report
        outcome, why = Outcome.SKIPPED, message(call.excinfo.value)[:LONGEST] if call.excinfo is not None else ""
        if report.failed:
            outcome, why = explain(call.excinfo.value) if call.excinfo else (Outcome.FAILED, report.longreprtext)
        if SEVERITY.index(outcome) > SEVERITY.index(self.outcome):
            self.outcome, self.why = outcome, why.removeprefix(f"{item.name}: ")  # a bare assert's name is its line
        return report

    def _look_closer(self, item: pytest.Item) -> None:
        """A test that seems to have passed: has it checked anything, and did nothing of it fail in silence?"""
        must = item.must_check() if isinstance(item, CheckItem) else _must_check(item, self.watch)
        if self.watch.caught:
            self.outcome, self.why = Outcome.FAILED, self.watch.caught
        elif must and self.watch.reached == self.reached_before:
            self.outcome, self.why = Outcome.SKIPPED, checks.NOT_REACHED

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed and self.outcome == Outcome.PASSED:
            self.outcome = report.outcome  # a plugin's own report, such as a subtest's

    def pytest_runtest_logfinish(self) -> None:
        if self.stopwatch is not None:
            self.stopwatch.stop()
        sys.stdout.flush()
        self._speak_of_the_link()
        if self.link is not None and self.link.ended:  # whatever the test made of it
            self.outcome, self.why = Outcome.KILLED, GONE
            self.session.shouldstop = GONE
        # Once soft, always so: a comparison made while the file was loaded may be what a test rests on.
        soft = self.link is not None and self.link.soft
        reached = self.watch.reached > 0 or not self.watch.any
        self.put("end", id=self.now, outcome=self.outcome, why=self.why, soft=soft, reached=reached)

    def _speak_of_the_link(self) -> None:
        if self.link is None:
            return
        if self.link.forged:
            self.put("forged", why=self.link.forged)
        if self.link.uncrossable:
            self.put("uncrossable", why=self.link.uncrossable)


def _must_check(item: pytest.Item, watch: Watch) -> bool:
    """Whether the test has checks of its own to reach. Some values of a parametrized one may well need none."""
    function = getattr(item, "obj", None)
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    return getattr(item, "callspec", None) is None and watch.wants(code)


def _passed_over() -> str:
    """An object of the tests' own that is named and called like a test; pytest only warns of it."""
    module = sys.modules.get("tests")
    for name, value in vars(module).items() if module is not None else ():
        own = type(value).__module__ == "tests" and not isinstance(value, type)
        if name.startswith("test") and own and callable(value):
            return name
    return ""


def _missing_fixture(item: pytest.Item) -> str:
    found = getattr(item, "_fixtureinfo", None)
    given = getattr(getattr(item, "callspec", None), "params", {})
    if found is None:
        return ""
    names = found.argnames
    return next((n for n in names if n not in found.name2fixturedefs and n not in (*given, "request")), "")


def _other_tests(found: list[str], every: list[str]) -> str:
    missing, more = [name for name in every if name not in found], [name for name in found if name not in every]
    what = f"{missing[0]} is not there" if missing else f"{(more or found)[0]} is there as well"
    return f"With this candidate the file does not define the same tests as without: {what}."


def _reason(report: pytest.CollectReport) -> str:
    return str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr).removeprefix("Skipped: ")


def _short(nodeid: str) -> str:
    return nodeid.removeprefix(f"{forms.FILE}::")


def _skipped_by_mark(item: pytest.Item) -> str | None:
    """Why the tests themselves skip it, whatever the candidate; None when they do not."""
    for at in (getattr(item, "obj", None), getattr(item, "cls", None)):
        if getattr(at, "__unittest_skip__", False):
            return str(getattr(at, "__unittest_skip_why__", ""))
    skipped = evaluate_skip_marks(item)
    return None if skipped is None else skipped.reason


def _must_fail(item: pytest.Item) -> bool:
    """Whether a mark says that it will fail. That it does proves nothing, for or against a candidate."""
    if getattr(getattr(item, "obj", None), "__unittest_expecting_failure__", False):
        return True
    try:
        return evaluate_xfail_marks(item) is not None
    except (Exception, pytest.fail.Exception):  # a condition that does not work is for its test to tell
        return False


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
