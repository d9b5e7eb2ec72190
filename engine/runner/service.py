"""The runner service: one headless process between the application and the boxes, JSON lines on standard input/output.

``python -m engine.runner.service``. One thread does everything: it starts the boxes (the kernel ends a box when the
thread that started it ends), reads from them, and enforces their time limits. The end of standard input
ends every box and the service. With ``--never`` it runs nothing at all.
"""

import asyncio
import contextlib
import logging
import os
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from engine import logs
from engine.contract import errors
from engine.runner import cgroups, entry, forms, landlock, seccomp, vacuity
from engine.runner.isolation import (
    MUST_HOLD,
    SAMPLE,
    IsolationCheck,
    consent_sentence,
    names_of,
    notice_sentence,
    same_process_sentence,
    sample_tests,
)
from engine.runner.layers import MIB, BadEnvironment, Layers, environment, find_bubblewrap
from engine.runner.observation import Observations
from engine.runner.orphans import adopt
from engine.runner.pair import RunnerFault, Store
from engine.runner.protocol import (
    Answer,
    CancelTests,
    ConsentNeeded,
    Isolation,
    Observe,
    Observed,
    Probe,
    Request,
    RunTests,
    Shutdown,
    TestFinished,
    TestProgress,
    TestStarted,
    request_from_line,
    to_line,
)
from engine.runner.report import Report, TestResult
from engine.runner.trial import Plan, Trial, can_fail, make_plan
from engine.runner.verdicts import PASSES, Outcome, Verdict

_log = logging.getLogger("engine.runner.service")  # it runs as __main__

_LONGEST_REQUEST = 64 * MIB  # the client sends far less
_PLANS_KEPT = 8
NEVER = "Running code is switched off in the settings; switch it on there to run tests."


class Slots:
    """At most ``count`` boxes at once; ``alone`` waits until there is no other."""

    def __init__(self, count: int):
        self.count = count
        self._free, self._one_waits = asyncio.Semaphore(count), asyncio.Lock()

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        async with self._free:
            yield

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            async with self._one_waits:
                for _ in range(self.count):
                    await stack.enter_async_context(self._free)
            yield


class Service:
    """Answers requests through ``say``, with at most ``slots`` candidates at once. ``never``: runs none."""

    def __init__(
        self, say: Callable[[Answer], None], slots: int, groups: cgroups.Groups | None = None, never: bool = False
    ):
        self._say, self._slots, self._groups, self._never = say, Slots(slots), groups, never
        self._store, self._observations = Store(groups, slots), Observations(groups)
        self._observing = Slots(slots + 1)  # short, and asked for when the sampler is done or nearly so
        self._tests: dict[str, asyncio.Task[None]] = {}  # by id
        self._probes: set[asyncio.Task[None]] = set()
        self._plans: dict[tuple[str, str], asyncio.Task[Plan]] = {}  # by the text of the tests, oldest first
        self._held: dict[str, asyncio.Task[IsolationCheck]] = {}  # by environment

    async def serve(self, requests: asyncio.StreamReader) -> None:
        """Until Shutdown or the end of ``requests``; no box is left then."""
        try:
            while line := await requests.readline():
                request = request_from_line(line)
                if isinstance(request, Shutdown):
                    break
                self._answer(request)
        finally:
            tasks = [*self._tests.values(), *self._probes, *self._plans.values(), *self._held.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._store.close()
            await self._observations.close()
            if self._groups is not None:
                self._groups.close()

    def _answer(self, request: Request) -> None:
        if isinstance(request, Probe):
            probe = asyncio.create_task(self._tell_isolation())
            self._probes.add(probe)
            probe.add_done_callback(self._probes.discard)
        elif isinstance(request, RunTests) and self._never:
            self._say(TestFinished(request.id, Report(Verdict.INFRA, "split", NEVER)))
        elif isinstance(request, RunTests):
            test = asyncio.create_task(self._test(request))
            self._tests[request.id] = test
            test.add_done_callback(lambda task: self._over(request.id, task))
        elif isinstance(request, Observe):
            observation = asyncio.create_task(self._observe(request))
            self._tests[request.id] = observation
            observation.add_done_callback(lambda task: self._observation_over(request.id, task))
        elif isinstance(request, CancelTests) and request.id in self._tests:
            self._tests[request.id].cancel()

    def _over(self, id: str, task: asyncio.Task[None]) -> None:
        del self._tests[id]
        if task.cancelled():  # perhaps before its first step, so that it could not say so itself
            self._say(TestFinished(id, Report(Verdict.INFRA, "split", "Stopped before it was finished.")))

    def _observation_over(self, id: str, task: asyncio.Task[None]) -> None:
        del self._tests[id]
        if task.cancelled():
            self._say(Observed(id, (), "Stopped before it was finished."))

    async def _observe(self, request: Observe) -> None:
        try:
            if self._never:
                raise RunnerFault(NEVER)
            held = await self._what_holds(request.environment)
            if not held.sealed and not request.consent:
                self._say(ConsentNeeded(request.id, consent_sentence(held)))
                return
            if not held.enough:
                raise RunnerFault(f"A program known to be right does not pass here: {held.note}")
            async with self._observing.one():
                observed = await self._observations.run(request, held.layers)
        except (RunnerFault, BadEnvironment) as fault:
            observed = Observed(request.id, (), str(fault))
        except Exception as fault:  # a mistake in this program; whoever asked must hear of it
            traceback.print_exc()
            observed = Observed(request.id, (), f"The test runner made a mistake: {fault!r}.")
        _log.info("%s: %d inputs in %.2f s; %s", request.id, len(request.inputs), observed.seconds, observed.why)
        self._say(observed)

    async def _tell_isolation(self) -> None:
        if self._never:
            self._say(Isolation(False, {}, NEVER, words=NEVER))
            return
        held = await self._what_holds("")
        weak = held.weak("split")
        self._say(Isolation(held.sealed, held.isolation("split"), held.note, weak, notice_sentence(held)))

    async def _test(self, test: RunTests) -> None:
        held, mode = IsolationCheck(Layers(), False, frozenset()), "split"
        try:
            held = await self._what_holds(test.environment)
            if not held.sealed and not test.consent:
                self._say(ConsentNeeded(test.id, consent_sentence(held)))
                return
            if not held.enough:
                raise RunnerFault(f"A program known to be right does not pass here: {held.note}")
            plan = await self._plan(test.tests, held)
            mode = plan.mode(test.same_process)
            if plan.needs and not test.same_process:
                self._say(ConsentNeeded(test.id, same_process_sentence(plan.needs), "same_process"))
                return
            if doubt := entry.doubt(plan.source, test.solution):
                raise RunnerFault(doubt)
            self._say(TestStarted(test.id, len(plan.ids)))
            report = await self._try(test, plan, held)
            if plan.needs and report.verdict == Verdict.INFRA and report.mode == "split":  # it came out on the way
                if not test.same_process:
                    self._say(ConsentNeeded(test.id, same_process_sentence(plan.needs), "same_process"))
                    return
                mode = plan.mode(test.same_process)
                report = await self._try(test, plan, held)
        except (forms.BrokenTests, RunnerFault, BadEnvironment) as fault:
            report = Report(Verdict.INFRA, mode, str(fault), isolation=held.isolation(mode), weak=held.weak(mode))
        except Exception as fault:  # a mistake in this program; a run must not stay open for it
            traceback.print_exc()
            report = Report(
                Verdict.INFRA, mode, f"The test runner made a mistake: {fault!r}.", isolation=held.isolation(mode)
            )
        _log.info(
            "%s: %s (%s), %d passed and %d failed in %.2f s, peak %s MiB; weak: %s; why: %s",
            *(test.id, report.verdict, report.mode, report.passed, report.failed, report.seconds),
            *(report.peak_mib, report.weak, logs.Text(report.why)),
        )
        self._say(TestFinished(test.id, report))

    async def _try(self, test: RunTests, plan: Plan, held: IsolationCheck) -> Report:
        """A candidate that loses by time alone gets one more chance with no other box beside it.

        A pass counts when the tests can fail.
        """

        def progress(result: TestResult) -> None:
            self._say(TestProgress(test.id, result))

        trial = Trial(test, plan, held, self._store, progress)
        async with self._slots.one():
            report = await trial.run()
        late = {result.outcome for result in report.tests} - {Outcome.PASSED} == {Outcome.TIMEOUT}
        if report.verdict == Verdict.FAIL and late and self._slots.count > 1:
            async with self._slots.alone():
                again = await Trial(test, plan, held, self._store, lambda result: None, patient=False).run()
            if again.verdict in PASSES:
                report = again
        if report.verdict in PASSES or trial.unreached:
            async with self._slots.one():
                if not await can_fail(test, plan, held, self._store):
                    return replace(report, verdict=Verdict.INFRA, why=vacuity.sentence(plan.source), tests=())
        if report.verdict in PASSES:
            plan.slowest_s = max(plan.slowest_s, *(result.seconds for result in report.tests))
        return report

    async def _plan(self, text: str, held: IsolationCheck) -> Plan:
        """Candidates of one batch share the listing of their tests; one of ours that went wrong is tried again."""
        key = text, "\0".join(held.layers.environment)
        if key not in self._plans:
            self._plans[key] = asyncio.create_task(self._list(text, held))
            while len(self._plans) > _PLANS_KEPT:
                oldest = next(iter(self._plans))
                if not self._plans[oldest].done():
                    break
                del self._plans[oldest]
        try:
            return await asyncio.shield(self._plans[key])
        except RunnerFault:
            self._plans.pop(key, None)
            raise

    async def _list(self, text: str, held: IsolationCheck) -> Plan:
        async with self._slots.one():
            return await make_plan(text, held, self._store)

    async def _what_holds(self, folder: str) -> IsolationCheck:
        """The strongest layers that were tried and kept what they must, with the environment in ``folder`` shown."""
        if folder not in self._held:
            self._held[folder] = asyncio.create_task(self._look_what_holds(folder))
        try:
            return await asyncio.shield(self._held[folder])
        except BadEnvironment:
            self._held.pop(folder, None)
            raise

    async def _look_what_holds(self, folder: str) -> IsolationCheck:
        packages, notes = environment(folder), []
        program = find_bubblewrap()
        if program:
            held = await self._look(Layers("bubblewrap", program, packages))
            if held.enough:
                return held
            notes.append(f"bubblewrap does not work: {held.note}")
        else:
            notes.append("bubblewrap is not installed")
        if landlock.version() >= landlock.NEEDED and seccomp.program():
            held = await self._look(Layers("landlock", environment=packages))
            if held.enough:
                return replace(held, note=notes[0])
        held = await self._look(Layers(environment=packages))
        return replace(held, note=notes[0] if held.enough else held.note)

    async def _look(self, layers: Layers) -> IsolationCheck:
        """Runs a program known to be right, which tries to get out as well."""
        tests = sample_tests(os.path.abspath(errors.__file__))
        test = RunTests("(sample)", SAMPLE, tests, test_timeout_s=10.0)
        nothing = IsolationCheck(layers, self._groups is not None, frozenset())
        try:
            async with self._slots.one():
                plan = Plan(forms.parse(tests), names_of(tests))
                report = await Trial(test, plan, nothing, self._store, lambda result: None).run()
        except Exception as fault:  # a mistake in this program; whoever asked must hear of it
            traceback.print_exc()
            return replace(nothing, note=repr(fault))
        passed = frozenset(result.id for result in report.tests if result.outcome == Outcome.PASSED)
        missing = (f"{r.id}: {r.why}" for r in report.tests if r.id in MUST_HOLD[layers.kind] - passed)
        note = next(missing, "")
        _log.info("boxes by %s, memory groups %s: %s", layers.kind, self._groups is not None, note or "all of it holds")
        return replace(nothing, passed=passed, note=note)


async def _serve(never: bool) -> None:
    adopt()
    requests = asyncio.StreamReader(limit=_LONGEST_REQUEST)
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)

    def say(answer: Answer) -> None:
        try:
            sys.stdout.buffer.write(to_line(answer))
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            pass  # nobody is listening any more, and standard input is about to end

    # One core stays with the sampler, which the user is waiting for.
    slots = max(1, (os.cpu_count() or 1) - 1)
    try:
        await Service(say, slots, None if never else cgroups.find(), never).serve(requests)
    finally:
        pipe.close()  # else Python complains where PYTHONWARNINGS shows what was not closed


def main() -> None:
    cgroups.enter_scope()
    logs.start_in_child()
    asyncio.run(_serve("--never" in sys.argv[1:]))


if __name__ == "__main__":
    main()
