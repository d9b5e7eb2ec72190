"""One candidate against one test file: boxes, one after another, until every test has an outcome."""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from engine.runner import forms
from engine.runner.box import Box
from engine.runner.layers import MIB, OUTPUT_ENDS, Layers, packages
from engine.runner.ledger import Ledger, Tampered, plain
from engine.runner.protocol import Test
from engine.runner.report import Report, TestResult

START_S = 30.0  # until the box has loaded pytest; longer means that something of ours is broken
IMPORTS = 5.0  # times the limit of one test: for importing the candidate, and for loading the tests
LISTING_S = 10.0
MODE = "in-process"


class RunnerFault(Exception):
    """An error of ours, in a sentence; the report's verdict is *infra*."""


@dataclass(frozen=True)
class Plan:
    """A test file, understood without any candidate: its text, and the ids of its tests in order.

    ``shown``: what a person calls a test, by id, where that is not its id.
    """

    text: str
    ids: tuple[str, ...]
    shown: Mapping[str, str] = field(default_factory=dict)


async def make_plan(text: str, layers: Layers) -> Plan:
    """Lists the tests. Raises forms.BrokenTests or RunnerFault.

    A pytest file has to be run to be listed: in a box of its own, with a stand-in where the candidate would be.
    """
    source = forms.parse(text)
    if source.checks:
        return Plan(text, tuple(check.id for check in source.checks))
    run = _Run(layers, Ledger((), (), ()), LISTING_S / IMPORTS)
    try:
        await run.perform({"solution": None, "tests": text, "ids": [], "canaries": []}, time.monotonic() + START_S)
    except Tampered as fault:
        raise RunnerFault(f"Listing your tests went wrong: {fault}.") from None
    if run.ledger.problem:
        raise forms.BrokenTests(f"Your tests do not load: {run.ledger.problem}")
    if run.timed_out:
        raise forms.BrokenTests(f"Your tests take longer than {LISTING_S:.0f} s to load.")
    if run.ledger.stage != "done":
        raise forms.BrokenTests("Your tests end the process while they are being loaded.")
    if not run.ledger.collected:
        raise forms.BrokenTests("Your tests hold no test: pytest finds none in them.")
    ids, shown = run.ledger.collected, run.ledger.shown
    unique = len(set(shown)) == len(ids) == len(shown)
    return Plan(text, ids, dict(zip(ids, shown, strict=True)) if unique else {})


class Trial:
    """``await Trial(...).run()`` gives the Report; ``progress`` hears each result as it comes.

    ``patient`` False gives up at the first test that runs out of time.
    """

    def __init__(
        self, test: Test, plan: Plan, layers: Layers, progress: Callable[[TestResult], None], patient: bool = True
    ):
        self.test, self.plan, self.layers, self.progress, self.patient = test, plan, layers, progress, patient
        self.results: dict[str, TestResult] = {}
        self.runs: list[_Run] = []
        self.why = ""

    async def run(self) -> Report:
        start = time.monotonic()
        end = start + self.test.total_timeout_s
        verdict = "fail"
        try:
            while await self._next_run(end):
                pass
            if self.runs[0].ledger.complete and all(r.outcome == "passed" for r in self.results.values()):
                verdict = "pass"
        except Tampered as fault:
            verdict, self.why = "tampered", f"Tampered: {fault}."
        except RunnerFault as fault:
            verdict, self.why = "infra", str(fault)
        self._settle_rest()
        return self._report(verdict, time.monotonic() - start)

    async def _next_run(self, end: float) -> bool:
        """Runs what is left in a fresh box; True when yet another could help."""
        left = tuple(name for name in self.plan.ids if name not in self.results)
        names = tuple(f"test_{secrets.token_hex(6)}" for _ in range(2))
        run = _Run(self.layers, Ledger(self.plan.ids, left, names), self.test.test_timeout_s, self._heard)
        self.runs.append(run)
        task = {"solution": self.test.solution, "tests": self.plan.text, "ids": left, "canaries": names}
        await run.perform(task, end)
        if run.ledger.complete:
            self.why = ""
            return False
        self.why = run.ending(end)
        if not run.ledger.running:
            return False
        outcome = "timeout" if run.timed_out else "killed"
        if run.ledger.running in left:
            self._heard(run.ledger.settle(run.ledger.running, outcome, self.why, time.monotonic()))
        more = len(self.results) < len(self.plan.ids) and time.monotonic() < end and not run.box_flooded
        return more and (self.patient or outcome != "timeout")

    def _heard(self, result: TestResult) -> None:
        self.results[result.id] = shown = replace(result, id=self.plan.shown.get(result.id, result.id))
        self.progress(shown)

    def _settle_rest(self) -> None:
        """Tests that never ran share the fate of the last run."""
        last, outcome = self.runs[-1], "missing"
        if last.ledger.problem:
            outcome = "error"
        elif last.ledger.stage in ("importing", "imported"):
            outcome = "timeout" if last.timed_out else "killed"
        for name in self.plan.ids:
            if name not in self.results:
                self._heard(TestResult(name, outcome, self.why))

    def _report(self, verdict: str, seconds: float) -> Report:
        tests = tuple(self.results[name] for name in self.plan.ids)
        first = next((t for t in tests if t.outcome != "passed"), None)
        why = self.why
        if verdict == "fail" and first is not None and first.why != why:
            why = f"{first.id}: {first.why or first.outcome}"
        peaks = [run.ledger.peak_mib for run in self.runs if run.ledger.peak_mib is not None]
        return Report(
            verdict,
            MODE,
            why if verdict != "pass" else "",
            tests,
            self.layers.lamps,
            round(seconds, 3),
            max(peaks, default=None),
            plain(self.runs[0].output),
            sum(run.output_bytes for run in self.runs),
        )


class _Run:
    """One box with one task: hands it over, keeps the clocks, enters the records in the ledger."""

    def __init__(
        self,
        layers: Layers,
        ledger: Ledger,
        test_timeout_s: float,
        progress: Callable[[TestResult], None] = lambda result: None,
    ):
        self.layers, self.ledger, self.test_timeout_s, self.progress = layers, ledger, test_timeout_s, progress
        self.timed_out = self.box_flooded = False
        self.output, self.output_bytes = "", 0

    async def perform(self, task: Mapping[str, object], end: float) -> None:
        """Until the box is done, dead or out of time (``end`` is on the monotonic clock). Raises as the ledger does."""
        try:
            box = await Box.start(self.layers)
        except OSError as error:
            raise RunnerFault(f"A process for the candidate could not be started: {error}.") from None
        try:
            await self._listen(box, task, end)
        except TimeoutError:
            self.timed_out = True
        except ValueError:
            raise Tampered("an endless line was written to the private channel") from None
        finally:
            await box.end()
            self.output, self.output_bytes, self.box_flooded = box.output, box.output_bytes, box.flooded
        if self.ledger.stage in ("waiting", "hello"):
            said = plain(self.output).strip().rpartition("\n")[2]
            raise RunnerFault(f"The box for the candidate did not start: {said or 'it said nothing'}.")

    async def _listen(self, box: Box, task: Mapping[str, object], end: float) -> None:
        stub = {"key": self.ledger.key, "path": packages(), "uid": self.layers.user()}
        limits = self.layers.limits(max(end - time.monotonic(), 1.0))
        while line := await box.hear(self._patience(end)):
            result = self.ledger.take(line, time.monotonic())
            if result is not None:
                self.progress(result)
            if self.ledger.stage in ("done", "unimportable"):
                return
            if self.ledger.stage == "hello":
                await box.give({**task, **stub, "limits": limits})

    def _patience(self, end: float) -> float:
        """Seconds that the box may now be silent."""
        if self.ledger.stage in ("waiting", "hello"):
            return START_S
        return min(self._limit(), end - time.monotonic())

    def _limit(self) -> float:
        return self.test_timeout_s if self.ledger.running else self.test_timeout_s * IMPORTS

    def ending(self, end: float) -> str:
        """Why a box that is not done has ended, in words."""
        if self.ledger.problem:
            return self.ledger.problem
        if self.box_flooded:
            return f"It printed more than {OUTPUT_ENDS // MIB} MiB."
        where = {"importing": "while it was imported", "imported": "while the tests were loaded"}
        when = where.get(self.ledger.stage, "" if self.ledger.running else "before its closing checks")
        if self.ledger.stage == "done":
            return f"The candidate ended the test run {when}".rstrip() + "."
        if not self.timed_out:
            return f"The candidate ended the process {when}".rstrip() + "."
        if time.monotonic() >= end:
            return "The time for this candidate was used up."
        return f"It took longer than {self._limit():g} s {when}".rstrip() + "."
