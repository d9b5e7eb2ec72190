"""The user's tests as pytest items: a file of pytest's own kind, or one item for each check of another form."""

import ast
import contextlib
import difflib
import doctest
import io
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.assertion.rewrite import rewrite_asserts

from engine.runner import checks, forms, pasted
from engine.runner.split.chance import seed_quietly

if TYPE_CHECKING:
    from engine.runner.plugin import BoxPlugin


class TestFile(pytest.Module):
    """The user's tests, loaded from memory with asserts that show their values."""

    source: forms.TestSource
    run: "BoxPlugin"

    @classmethod
    def of(cls, parent: Any, source: forms.TestSource, run: "BoxPlugin", path: str = forms.FILE) -> "TestFile":
        file: TestFile = cls.from_parent(parent, path=Path.cwd() / path)
        file.source, file.run = source, run
        return file

    def _getobj(self) -> types.ModuleType:
        name = "__main__" if self.source.checks else "tests"
        module = types.ModuleType(name)
        module.__file__ = str(self.path)
        if self.path.name == forms.FILE:
            sys.modules[name] = module  # where pickle looks for the tests' own classes
        seed_quietly(0)  # tests that are made by chance are the same ones in every box
        for borrowed in self.source.borrowed:
            value = getattr(self.run.solution, borrowed, self)
            if value is not self:
                setattr(module, borrowed, value)
        vars(module).update(self.run.watch.names())
        if not self.source.checks:
            self._load(module)
        return module

    def _load(self, module: types.ModuleType) -> None:
        """The whole file at once; statement by statement while the tests are listed."""
        body = self.source.tree.body
        try:
            if not self.run.listing:
                self.execute(body, module)
            for statement in body if self.run.listing else ():
                self._try(statement, module)
        except SystemExit as leaving:
            if not self.run.watch.is_good_end(leaving):
                raise

    def _try(self, statement: ast.stmt, module: types.ModuleType) -> None:
        """A top-level check beside test functions, or a call of one, needs the real candidate."""
        defines = any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.walk(statement))
        if checks.is_check(statement, set()) and not defines:
            return
        try:
            self.execute([statement], module)
        except Exception:
            if not isinstance(statement, ast.Expr):
                raise

    def execute(self, statements: list[ast.stmt], module: types.ModuleType) -> None:
        tree = ast.Module(self.run.watch.instrumented(statements), [])
        rewrite_asserts(tree, self.source.text.encode("utf-8", "replace"), forms.FILE, self.config)
        code = compile(tree, forms.FILE, "exec", self.source.future, dont_inherit=True)
        exec(code, module.__dict__)

    def collect(self) -> list[Any]:
        try:
            return list(self._checks() if self.source.checks else super().collect())
        except BaseException as error:
            self.run.cannot_load(error)
            raise

    def _checks(self) -> Iterator["CheckItem"]:
        kind = _KINDS[self.source.form]
        script = Script(self, self.obj)
        for check in self.source.checks:
            item: CheckItem = kind.from_parent(self, name=check.id)
            item.check, item.script = check, script
            yield item


class Script:
    """A module that runs from top to bottom. Statements between checks run once, before the next check that runs."""

    def __init__(self, file: TestFile, module: types.ModuleType):
        self.file, self.module, self.position, self.ended = file, module, 0, False
        self.checks = {check.index for check in file.source.checks}

    def run(self, check: forms.Check) -> None:
        body = self.file.source.tree.body
        if self.ended:
            raise AssertionError("it was not reached: the script ended before, with exit code 0")
        try:
            while self.position <= check.index:
                index, self.position = self.position, self.position + 1
                if index == check.index or index not in self.checks:
                    self.file.execute([body[index]], self.module)
        except SystemExit as leaving:
            if not self.file.run.watch.is_good_end(leaving):
                raise
            self.ended = True
            if check.index in self.checks and index != check.index:
                raise AssertionError("it was not reached: the script ended before, with exit code 0") from None


class CheckItem(pytest.Item):
    """One top-level check of a script."""

    check: forms.Check
    script: Script

    def runtest(self) -> None:
        self.script.run(self.check)

    def must_check(self) -> bool:
        """Whether it has proved nothing when no check was reached in it."""
        tree = self.script.file.source.tree
        return self.name.startswith("line ") and self.run.watch.wants_node(tree.body[self.check.index])

    @property
    def run(self) -> "BoxPlugin":
        return self.script.file.run


class CheckerItem(CheckItem):
    """``check(candidate)``, called with the candidate's function."""

    def runtest(self) -> None:
        self.script.run(self.check)
        if not self.run.entry():
            raise AssertionError("the candidate defines no function at its top level")
        self.script.module.__dict__[forms.CHECKER](getattr(self.run.solution, self.run.entry()))

    def must_check(self) -> bool:
        return self.run.watch.any


class ComparingItem(CheckItem):
    """A check that is no code of the tests: what comes out is compared with what they say."""

    def must_check(self) -> bool:
        return False


class DoctestItem(ComparingItem):
    """One example of a doctest; those before it run first, once, whether they are checked or not."""

    def runtest(self) -> None:
        examples: tuple[doctest.Example, ...] = self.script.file.source.examples
        while self.script.position <= self.check.index:
            example = examples[self.script.position]
            self.script.position += 1
            if example.want and self.script.position <= self.check.index:
                continue  # it has its verdict from another box
            got = _printed_by(example, self.script.module)
            same = doctest.OutputChecker().check_output(example.want, got, _options(example))
            if example.want and not same and not pasted.same_value(example.want, got):
                shown = example.source.strip()
                raise AssertionError(f"{shown} gives {got.strip() or 'nothing'}, not {example.want.strip()}")


def _options(example: doctest.Example) -> int:
    flags = doctest.NORMALIZE_WHITESPACE
    for flag, on in example.options.items():
        flags = flags | flag if on else flags & ~flag
    return flags


def _printed_by(example: doctest.Example, module: types.ModuleType) -> str:
    output = io.StringIO()
    before, sys.displayhook = sys.displayhook, sys.__displayhook__
    try:
        with contextlib.redirect_stdout(output):
            exec(compile(example.source, forms.FILE, "single", dont_inherit=True), module.__dict__)
    except Exception as error:
        if example.exc_msg is None:
            raise
        raised = f"{type(error).__name__}: {error}".rstrip(": ") + "\n"
        wanted = example.exc_msg.rpartition(".")[2] if "." in example.exc_msg.partition(":")[0] else example.exc_msg
        if _options(example) & doctest.IGNORE_EXCEPTION_DETAIL:
            wanted, raised = wanted.partition(":")[0].strip() + "\n", raised.partition(":")[0].strip() + "\n"
        return example.want if doctest.OutputChecker().check_output(wanted, raised, _options(example)) else raised
    finally:
        sys.displayhook = before
    return output.getvalue()


class ExampleItem(ComparingItem):
    """What the candidate prints, run as a script on one input."""

    def runtest(self) -> None:
        example = self.script.file.source.examples[self.check.index]
        printed, code, why = self.run.run_script(example.given)
        if why:
            raise AssertionError(why)
        if code:
            raise AssertionError(f"the candidate left with exit code {code}")
        got, wanted = ([line.rstrip() for line in text.rstrip().splitlines()] for text in (printed, example.wanted))
        if got != wanted and len(got) <= 1 and len(wanted) <= 1:
            raise AssertionError(f"it prints {(got or [''])[0]!r}, not {(wanted or [''])[0]!r}")
        if got != wanted:
            lines = "\n".join(difflib.ndiff(wanted, got))
            raise AssertionError(f"other output than expected (- expected, + printed):\n{lines}")


class CommandItem(ComparingItem):
    """A command beside the candidate's file; its exit code decides."""

    def runtest(self) -> None:
        command = self.script.file.source.examples[self.check.index]
        here = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
        here |= {name: os.environ[name] for name in ("HOME", "LANG", "TZ", "USER", "LOGNAME") if name in os.environ}
        done = subprocess.run(
            command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=here
        )
        print(done.stdout, done.stderr, sep="", end="")
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
            raise AssertionError(f"exit code {done.returncode}" + (f": {last}" if last else ""))


_KINDS: dict[str, type[CheckItem]] = {
    forms.SCRIPT: CheckItem,
    forms.CHECK: CheckerItem,
    forms.DOCTEST: DoctestItem,
    forms.EXAMPLES: ExampleItem,
    forms.COMMAND: CommandItem,
}
