"""One candidate against one test file: pairs of boxes, one after another, until every test has an outcome."""

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from engine.runner import checks, entry, forms, needs, vacuity
from engine.runner.isolation import IsolationCheck
from engine.runner.layers import MEMORY, MIB, OUTPUT_ENDS
from engine.runner.ledger import Ledger, NotTransferable, Tampered
from engine.runner.pair import Pair, RunnerFault, Store
from engine.runner.protocol import RunTests
from engine.runner.report import Report, TestResult
from engine.runner.task import Task
from engine.runner.verdicts import PASSES, Outcome, Verdict

IMPORTS = 5.0  # times the limit of one test: for importing the candidate, and for loading the tests
SLOWEST = 5.0  # times what the slowest passing candidate took for one test, where that is more than the limit
LISTING_S = 30.0
OWN_S = 10.0  # besides its limit, which is the candidate's: what a test's own code may take without a sign of life
DOOMED = "Every test that ran is expected to fail, by its mark, and did: that proves nothing; take the mark off one."
UNREACHED = "None of the checks in your tests was reached: that is not a pass."
_CLOSING_S = 5.0  # for what a box does after its last test


@dataclass
class Plan:
    """A test file, understood without any candidate: its text, and the ids of its tests in order.

    ``shown``: what a user calls a test, by id, where that is not its id. ``skipped``: tests that the file itself
    skips, and why; they are not run and do not count. ``doomed``: those that it expects to fail; that they do does not
    count either. ``needs``: why it cannot be kept apart from the candidate, or
    empty. ``slowest_s``: the longest that a passing candidate took for one test.
    """

    source: forms.TestSource
    ids: tuple[str, ...]
    shown: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    doomed: frozenset[str] = frozenset()
    needs: str = ""
    slowest_s: float = 0.0
    proved: bool | None = None  # whether the tests can fail, once that was tried
    proving: asyncio.Lock = field(default_factory=asyncio.Lock)

    def mode(self, same_process: bool) -> str:
        """How they are run, where the user has agreed to one process or not."""
        if self.source.form == forms.COMMAND:
            return "command"
        return "in-process" if self.needs and same_process else "split"


async def make_plan(text: str, held: IsolationCheck, store: Store) -> Plan:
    """Lists the tests. Raises forms.BrokenTests or RunnerFault.

    A pytest file has to be run to be listed: in a box of its own, with a stand-in where the candidate would be. Only so
    is it known whether there are tests in a file that defines none at its top level.
    """
    source = forms.parse(text)
    ledger = await _listed(source, held, store) if source.listed or source.form == forms.PYTEST else None
    if ledger is None or not ledger.collected:
        source = source.as_script() if ledger is not None else source
        if not source.checks:
            raise forms.BrokenTests(forms.NO_TEST)
    else:
        source = source.as_pytest()
    if sentence := checks.passed_over(source.tree, not source.checks):
        raise forms.BrokenTests(f"A part of your tests would not run: {sentence}.")
    reason = needs.same_process(source)
    if ledger is None or source.checks:
        return Plan(source, tuple(check.id for check in source.checks), needs=reason)
    if len(ledger.skipped) == len(ledger.collected):
        raise forms.BrokenTests("Your tests skip every test; take the skip mark off one.")
    ids, shown = ledger.collected, ledger.shown
    unique = len(set(shown)) == len(ids) == len(shown)
    names = dict(zip(ids, shown, strict=True)) if unique else {}
    return Plan(source, ids, names, ledger.skipped, ledger.doomed, reason)


async def _listed(source: forms.TestSource, held: IsolationCheck, store: Store) -> Ledger | None:
    """What pytest finds in the file. None where it does not load and is a script as well, which it then is."""
    run = _Run(held, store, Ledger((), (), ()), LISTING_S / IMPORTS)
    try:
        await run.perform(Task(None, source.as_pytest().to_data()), time.monotonic() + 3 * LISTING_S, split=False)
    except (Tampered, NotTransferable) as fault:
        raise RunnerFault(f"Listing your tests went wrong: {fault}.") from None
    ledger = run.ledger
    loaded = ledger.stage == "done" and not ledger.problem
    if not loaded and source.form == forms.SCRIPT and source.checks:
        return None
    if ledger.problem:
        raise forms.BrokenTests(f"Your tests do not load: {ledger.problem}{_about_a_module(ledger.problem)}")
    if run.timed_out:
        raise forms.BrokenTests(f"Your tests take longer than {LISTING_S:.0f} s to load.")
    if not loaded:
        raise forms.BrokenTests("Your tests end the process while they are being loaded.")
    return ledger


def _about_a_module(problem: str) -> str:
    """What to do about a module that the tests import and that is not there."""
    if (match := re.search(r"No module named '([\w.]+)'", problem)) is None:
        return ""
    return (
        f"; if {match[1]} stands for the candidate's code, import solution instead, "
        "and if it is a package, choose an environment that has it."
    )


class Trial:
    """``await Trial(...).run()`` gives the Report; ``progress`` hears each result as it comes.

    ``patient`` False gives up at the first test that runs out of time. ``brief``: it ends with the first test that does
    not pass; ``check``: the function that ``check(candidate)`` is given, where it is not to be looked up.
    """

    def __init__(
        self,
        test: RunTests,
        plan: Plan,
        held: IsolationCheck,
        store: Store,
        progress: Callable[[TestResult], None],
        patient: bool = True,
        brief: bool = False,
        check: str = "",
    ):
        self.test, self.plan, self.held, self.store = test, plan, held, store
        self.progress, self.patient, self.brief, self.check = progress, patient, brief, check
        self.unreached = False  # nothing failed, but not every test has checked something
        self.results: dict[str, TestResult] = {}
        self.runs: list[_Run] = []
        self.waited_s = 0.0  # for boxes to be ready, which is none of the candidate's time
        self.why = ""
        self.mode = plan.mode(test.same_process)  # of this trial; the plan may learn of a reason meanwhile

    async def run(self) -> Report:
        start = time.monotonic()
        end = start + self.test.total_timeout_s
        verdict = Verdict.FAIL
        try:
            for name, why in self.plan.skipped.items():
                self._receive(TestResult(name, Outcome.SKIPPED, why))
            while await self._next_run(end + self.waited_s):
                pass
            counted = self._counted()
            complete = self.runs[-1].ledger.complete
            passed = complete and counted != [] and all(r.outcome == Outcome.PASSED for r in counted)
            missed = (
                complete
                and counted != []
                and all(r.outcome == Outcome.PASSED or r.why == checks.NOT_REACHED for r in counted)
            )
            self.unreached = missed and not (passed and any(run.ledger.reached for run in self.runs))
            if complete and not counted:
                self.why = DOOMED
            elif passed and self.unreached:
                self.why = UNREACHED
            elif passed:
                verdict = Verdict.PASS_SOFT if any(run.ledger.soft for run in self.runs) else Verdict.PASS
        except Tampered as fault:
            verdict, self.why = Verdict.TAMPERED, f"Tampered: {fault}."
        except NotTransferable as fault:
            self.plan.needs = self.plan.needs or str(fault)
            verdict, self.why = Verdict.INFRA, f"These tests cannot be kept apart from the candidate, because {fault}."
        except (RunnerFault, forms.BrokenTests) as fault:
            verdict, self.why = Verdict.INFRA, str(fault)
        self._settle_rest()
        return self._report(verdict, time.monotonic() - start)

    async def _next_run(self, end: float) -> bool:
        """Runs what is left in fresh boxes; True when yet others could help."""
        left = tuple(name for name in self.plan.ids if name not in self.results)
        split = self.mode == "split"
        names = () if split else tuple(f"test_{secrets.token_hex(6)}" for _ in range(2))
        limit = max(self.test.test_timeout_s, SLOWEST * self.plan.slowest_s)
        source = self.plan.source
        ledger, loads = Ledger(self.plan.ids, left, names), bool(needs.libraries(source.tree))
        run = _Run(self.held, self.store, ledger, limit, self._receive, self._has_failed, loads)
        self.runs.append(run)
        if not self.check and source.form == forms.CHECK:
            self.check = entry.entry_point(self.test.solution, source.text)
        task = Task(self.test.solution, source.to_data(), left, self.plan.ids, names, self.check, limit)
        before = len(self.results)
        await run.perform(task, end, split)
        self.waited_s += run.waited_s
        end += run.waited_s
        if run.ledger.complete:
            self.why = ""
            return False
        self.why = run.ending(end)
        if run.ledger.running in left:
            outcome = Outcome.TIMEOUT if run.timed_out else Outcome.KILLED
            self._receive(run.ledger.settle(run.ledger.running, outcome, self.why, time.monotonic()))
        elif run.ledger.running or len(self.results) == before:
            return False  # a canary, or nothing of what was asked for came about
        more = len(self.results) < len(self.plan.ids) and time.monotonic() < end and not run.flooded
        return more and not self._has_failed() and (self.patient or not run.timed_out)

    def _receive(self, result: TestResult) -> None:
        if result.outcome == Outcome.KILLED and self.runs and (words := self.runs[-1].how_it_ended()):
            result = replace(result, why=words)
        self.results[result.id] = shown = replace(result, id=self.plan.shown.get(result.id, result.id))
        self.progress(shown)

    def _counted(self) -> list[TestResult]:
        """Results that say something about the candidate."""
        plan = self.plan
        named = ((name, self.results[name]) for name in plan.ids if name in self.results and name not in plan.skipped)
        return [result for name, result in named if not (name in plan.doomed and result.outcome == Outcome.SKIPPED)]

    def _has_failed(self) -> bool:
        return self.brief and any(r.outcome != Outcome.PASSED and r.why != checks.NOT_REACHED for r in self._counted())

    def _settle_rest(self) -> None:
        """Tests that never ran share the fate of the last run."""
        last, outcome = self.runs[-1] if self.runs else None, Outcome.MISSING
        if last is not None and last.ledger.problem:
            outcome = last.ledger.problem_outcome
        elif last is not None and last.timed_out:
            outcome = Outcome.TIMEOUT
        elif last is not None and last.ledger.stage in ("importing", "imported"):
            outcome = Outcome.KILLED
        for name in self.plan.ids:
            if name not in self.results:
                self._receive(TestResult(name, outcome, self.why))

    def _report(self, verdict: Verdict, seconds: float) -> Report:
        tests = tuple(self.results[name] for name in self.plan.ids)
        why = "" if verdict in PASSES else self.why
        if verdict == Verdict.FAIL:
            why = self._why_it_failed() or why
        elif verdict == Verdict.PASS_SOFT:
            why = "It passes by a comparison that its own class decides, such as ==; look before you trust it."
        return Report(
            verdict,
            self.mode,
            why,
            tests,
            self.held.isolation(self.mode),
            round(seconds, 3),
            max((run.peak_mib for run in self.runs if run.peak_mib is not None), default=None),
            self.runs[0].output if self.runs else "",
            sum(run.output_bytes for run in self.runs),
            self.held.weak(self.mode),
        )

    def _why_it_failed(self) -> str:
        counted = self._counted()
        first = next((t for t in counted if t.outcome not in (Outcome.PASSED, Outcome.SKIPPED)), None)
        if first is not None:
            any_ran = any(run.ledger.results for run in self.runs)
            name = f"{forms.CHECKER}({self.check})" if self.check else first.id
            return f"{name}: {first.why or first.outcome}" if any_ran else self.why
        skipped = [t for t in counted if t.outcome == Outcome.SKIPPED]
        if not skipped:
            return ""
        number = "1 test was" if len(skipped) == 1 else f"{len(skipped)} tests were"
        reason = f" ({skipped[0].id}: {skipped[0].why})" if skipped[0].why else f" ({skipped[0].id})"
        return f"{number} skipped while running{reason}: that is not a pass."


class _Run:
    """One pair of boxes with one task: hands it over, keeps the clocks, enters the records in the ledger."""

    def __init__(
        self,
        held: IsolationCheck,
        store: Store,
        ledger: Ledger,
        limit_s: float,
        progress: Callable[[TestResult], None] = lambda result: None,
        enough: Callable[[], bool] = lambda: False,
        libraries: bool = False,
    ):
        self.held, self.store, self.ledger, self.limit_s = held, store, ledger, limit_s
        self.progress, self.enough = progress, enough
        self.libraries = libraries  # whether the tests load some, which takes its time
        self.timed_out = self.flooded = False
        self.output, self.output_bytes = "", 0
        self.peak_mib: float | None = None
        self.waited_s = 0.0
        self._pair: Pair | None = None

    async def perform(self, task: Task, end: float, split: bool) -> None:
        """Until the box is done, dead or out of time (``end`` is on the monotonic clock). Raises as the ledger does."""
        before = time.monotonic()
        take = self.store.once if task.solution is None else self.store.take
        pair = self._pair = await take(self.held.layers, split)
        self.waited_s = time.monotonic() - before
        end += self.waited_s
        try:
            self.ledger.take(pair.hello, time.monotonic())
            await pair.give(task, self.ledger.key, max(end - time.monotonic(), 1.0))
            while line := await pair.main.read_line(min(self._limit(), end - time.monotonic())):
                result = self.ledger.take(line, time.monotonic())
                if self.ledger.loading_s and self.libraries:  # none of the candidate's time
                    self.waited_s, end = self.waited_s + self.ledger.loading_s, end + self.ledger.loading_s
                    self.ledger.loading_s = 0.0
                if result is not None:
                    self.progress(result)
                if self.ledger.stage in ("done", "unimportable") or self.enough():
                    return
                if self.ledger.late:
                    raise TimeoutError
        except TimeoutError:
            self.timed_out = True
        except ValueError:
            raise Tampered("an endless line was written to the private channel") from None
        finally:
            await pair.end()
            self.output, self.output_bytes, self.flooded = pair.output, pair.output_bytes, pair.flooded
            measured = [self.ledger.peak_mib if pair.candidate is None else None, *(box.peak_mib for box in pair.boxes)]
            self.peak_mib = max((peak for peak in measured if peak is not None), default=None)

    def _limit(self) -> float:
        """Seconds that the box may be silent now."""
        if self.ledger.running:
            separate = self._pair is not None and self._pair.candidate is not None and not self.ledger.late
            return self.limit_s + (OWN_S if separate else 0.0)
        if self.ledger.stage == "imported" and self.libraries:
            return max(self.limit_s * IMPORTS, LISTING_S)
        return max(self.limit_s * IMPORTS, _CLOSING_S)

    def how_it_ended(self) -> str:
        """Why the candidate's process is no more, as far as this side knows better than the boxes; or empty."""
        if self._pair is not None and any(box.flooded for box in self._pair.boxes):
            return f"It printed more than {OUTPUT_ENDS // MIB} MiB."
        if self._pair is not None and any(box.has_run_out_of_memory for box in self._pair.boxes):
            return f"It used more than {MEMORY // MIB} MiB of memory."
        return ""

    def ending(self, end: float) -> str:
        """Why a box that is not done has ended, in words."""
        if self.ledger.problem:
            return self.ledger.problem
        if known := self.how_it_ended():
            return known
        where = {"importing": "while it was imported", "imported": "while the tests were loaded"}
        when = where.get(self.ledger.stage, "" if self.ledger.running else "before its closing checks")
        if self.timed_out and time.monotonic() >= end:
            return "The time for this candidate was used up."
        if self.timed_out:
            return f"It took longer than {self._limit():g} s {when}".rstrip() + "."
        if self.ledger.stage == "done":
            return f"The candidate ended the test run {when}".rstrip() + "."
        return f"The candidate ended the process {when}".rstrip() + "."


async def can_fail(test: RunTests, plan: Plan, held: IsolationCheck, store: Store) -> bool:
    """Whether there is a candidate that does nothing with which the tests do not pass. Tried once for a plan."""
    async with plan.proving:
        if plan.proved is None:
            check = vacuity.ENTRY if plan.source.form == forms.CHECK else ""
            own = replace(plan)  # what such a candidate cannot be kept apart from says nothing about real ones
            passed = False
            for text in vacuity.candidates(plan.source):
                nothing = Trial(
                    replace(test, solution=text), own, held, store, lambda result: None, False, brief=True, check=check
                )
                report = await nothing.run()
                if report.verdict == Verdict.INFRA:
                    continue
                if report.verdict not in PASSES and not nothing.unreached:
                    passed = False
                    break
                passed = True
            plan.proved = not passed
        return plan.proved
