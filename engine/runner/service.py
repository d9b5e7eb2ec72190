"""The runner service: one headless process between the application and the boxes, JSON lines on standard input/output.

``python -m engine.runner.service``. One thread does everything: it starts the boxes (the kernel ends a box when the
thread that started it ends), hears them, and keeps their clocks. The end of standard input ends every box and it.
"""

import asyncio
import contextlib
import os
import sys
import traceback
from collections.abc import AsyncIterator, Callable

from engine.runner import forms
from engine.runner.layers import MIB, Layers, consent_sentence, find_bubblewrap
from engine.runner.orphans import adopt
from engine.runner.protocol import (
    Answer,
    CancelTest,
    ConsentNeeded,
    Lamps,
    Probe,
    Request,
    Shutdown,
    Test,
    TestFinished,
    TestProgress,
    TestStarted,
    request_from_line,
    to_line,
)
from engine.runner.report import Report, TestResult
from engine.runner.trial import MODE, Plan, RunnerFault, Trial, make_plan

_LONGEST_REQUEST = 64 * MIB
_PLANS_KEPT = 8

# A candidate that is right, and what it must not be able to do: the box is believed after it has been tried.
_SAMPLE = "def answer():\n    return 42\n"
_SAMPLE_TESTS = "assert answer() == 42\n"
_SEAL_TESTS = f"""
import os, socket
assert os.getuid() != 0, "it runs as root"
assert not os.path.exists({os.path.abspath(__file__)!r}), "files of this computer are visible"
assert not os.access("/", os.W_OK), "its root is writable"
assert sum(name.isdigit() for name in os.listdir("/proc")) < 6, "processes of this computer are visible"
assert socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect_ex(("192.0.2.1", 9)) != 0, "there is a network"
"""


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
    """Answers requests through ``say``, with at most ``slots`` boxes at once."""

    def __init__(self, say: Callable[[Answer], None], slots: int):
        self._say, self._slots = say, Slots(slots)
        self._tests: dict[str, asyncio.Task[None]] = {}  # by id
        self._probes: set[asyncio.Task[None]] = set()
        self._plans: dict[str, asyncio.Task[Plan]] = {}  # by the text of the tests, oldest first
        self._samples: dict[Layers, asyncio.Task[str]] = {}

    async def serve(self, requests: asyncio.StreamReader) -> None:
        """Until Shutdown or the end of ``requests``; no box is left then."""
        try:
            while line := await requests.readline():
                request = request_from_line(line)
                if isinstance(request, Shutdown):
                    break
                self._answer(request)
        finally:
            tasks = [*self._tests.values(), *self._probes, *self._plans.values(), *self._samples.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _answer(self, request: Request) -> None:
        if isinstance(request, Probe):
            probe = asyncio.create_task(self._tell_lamps())
            self._probes.add(probe)
            probe.add_done_callback(self._probes.discard)
        elif isinstance(request, Test):
            test = asyncio.create_task(self._test(request))
            self._tests[request.id] = test
            test.add_done_callback(lambda task: self._over(request.id, task))
        elif isinstance(request, CancelTest) and request.id in self._tests:
            self._tests[request.id].cancel()

    def _over(self, id: str, task: asyncio.Task[None]) -> None:
        del self._tests[id]
        if task.cancelled():  # perhaps before its first step, so that it could not say so itself
            self._say(TestFinished(id, Report("infra", MODE, "Stopped before it was finished.")))

    async def _tell_lamps(self) -> None:
        layers, note = await self._layers()
        self._say(Lamps(layers.sealed, layers.lamps, note))

    async def _test(self, test: Test) -> None:
        layers = Layers("")
        try:
            layers, note = await self._layers()
            if not layers.sealed and not test.consent:
                self._say(ConsentNeeded(test.id, consent_sentence(note)))
                return
            if not layers.sealed and (fault := await self._sample(layers)):
                raise RunnerFault(f"A program known to be right does not pass here: {fault}")
            plan = await self._plan(test.tests, layers)
            if doubt := forms.doubt(test.tests, test.solution):
                raise RunnerFault(doubt)
            self._say(TestStarted(test.id, len(plan.ids)))
            report = await self._try(test, plan, layers)
        except (forms.BrokenTests, RunnerFault) as fault:
            report = Report("infra", MODE, str(fault), lamps=layers.lamps)
        except Exception as fault:  # a mistake in this program; a run must not stay open for it
            traceback.print_exc()
            report = Report("infra", MODE, f"The test runner made a mistake: {fault!r}.", lamps=layers.lamps)
        self._say(TestFinished(test.id, report))

    async def _try(self, test: Test, plan: Plan, layers: Layers) -> Report:
        """A candidate that loses by time alone gets one more chance with no other box beside it."""

        def progress(result: TestResult) -> None:
            self._say(TestProgress(test.id, result))

        async with self._slots.one():
            report = await Trial(test, plan, layers, progress).run()
        late = {result.outcome for result in report.tests} - {"passed"} == {"timeout"}
        if report.verdict == "fail" and late and self._slots.count > 1:
            async with self._slots.alone():
                again = await Trial(test, plan, layers, lambda result: None, patient=False).run()
            if again.verdict == "pass":
                return again
        return report

    async def _plan(self, text: str, layers: Layers) -> Plan:
        """Candidates of one batch share the listing of their tests; one of ours that went wrong is tried anew."""
        if text not in self._plans:
            self._plans[text] = asyncio.create_task(self._list(text, layers))
            while len(self._plans) > _PLANS_KEPT:
                oldest = next(iter(self._plans))
                if not self._plans[oldest].done():
                    break
                del self._plans[oldest]
        try:
            return await asyncio.shield(self._plans[text])
        except RunnerFault:
            self._plans.pop(text, None)
            raise

    async def _list(self, text: str, layers: Layers) -> Plan:
        async with self._slots.one():
            return await make_plan(text, layers)

    async def _layers(self) -> tuple[Layers, str]:
        """What holds here, and why it is not more. A sandbox counts when a box was run and kept what it must."""
        path = find_bubblewrap()
        if not path:
            return Layers(""), "bubblewrap is not installed"
        fault = await self._sample(Layers(path))
        return (Layers(""), f"bubblewrap does not work: {fault}") if fault else (Layers(path), "")

    async def _sample(self, layers: Layers) -> str:
        """Empty when a program known to be right passes under ``layers``, otherwise why not. Tried once."""
        if layers not in self._samples:
            self._samples[layers] = asyncio.create_task(self._try_sample(layers))
        return await asyncio.shield(self._samples[layers])

    async def _try_sample(self, layers: Layers) -> str:
        tests = _SAMPLE_TESTS + (_SEAL_TESTS if layers.sealed else "")
        test = Test("(sample)", _SAMPLE, tests, test_timeout_s=10.0)
        try:
            async with self._slots.one():
                report = await Trial(test, await make_plan(tests, layers), layers, lambda result: None).run()
        except Exception as fault:  # a mistake in this program; whoever asked must hear of it
            traceback.print_exc()
            return repr(fault)
        return "" if report.verdict == "pass" else report.why or report.verdict


async def _serve() -> None:
    adopt()
    requests = asyncio.StreamReader(limit=_LONGEST_REQUEST)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)

    def say(answer: Answer) -> None:
        try:
            sys.stdout.buffer.write(to_line(answer))
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            pass  # nobody is listening any more, and standard input is about to end

    # One core stays with the sampler, which the person is waiting for.
    await Service(say, slots=max(1, (os.cpu_count() or 1) - 1)).serve(requests)


if __name__ == "__main__":
    asyncio.run(_serve())
