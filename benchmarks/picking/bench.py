"""From Generate to the last verdict, with a clock: engines that obey the contract, one runner, one queue."""

import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from benchmarks.machine import others_load
from benchmarks.our_engine import FORGET
from benchmarks.picking.records import Outcome, Trial
from engine.contract import (
    BasslineError,
    CandidateFinished,
    Close,
    Closed,
    Engine,
    Event,
    Generate,
    Load,
    LoadFailed,
    Message,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
)
from engine.contract.states import FINISHED
from engine.runner.protocol import Answer, ConsentNeeded, Isolation, RunTests, TestFinished
from engine.runner.report import Report
from engine.runner.verdicts import Verdict
from engine.session.driver import RunDriver
from engine.session.effects import Effect, FirstPass, TestPolicy
from engine.session.run import Run
from engine.session.states import RunState

_SILENCE_S = 300.0  # without any event; nothing here takes that long
_TICK_S = 0.1


class BenchRunner(Protocol):
    """The part of ``engine.runner.client.RunnerClient`` that is used."""

    def probe(self) -> None: ...

    def test(self, test: RunTests) -> None: ...

    def close(self) -> None: ...


@dataclass
class Conducted:
    """When each candidate had finished and when all was over, in seconds; the candidate that ended it by its pass."""

    finished_s: dict[int, float] = field(default_factory=dict)
    ended_s: float = 0.0
    first_pass: int | None = None


_Kind = TypeVar("_Kind")
OpenRunner = Callable[[Callable[[Answer], None]], BenchRunner]


class Bench:
    """All sides, loaded and waiting. Whoever answers, a ``session.Run`` takes the code out of the text, knows which
    candidates are the same code and hands over what is to be tested, as in the application.

    ``ready``: what each side said of itself; ``isolation``: what holds around the code that is run.
    """

    def __init__(
        self,
        engines: Mapping[str, Engine],
        choice: ModelChoice | Mapping[str, ModelChoice],
        open_runner: OpenRunner,
        rest_s: float,
    ):
        """``choice``: of all sides, or of each. ``rest_s``: before a trial, so that the runner's next boxes are warm,
        as when a user presses the key."""
        self._inbox: queue.SimpleQueue[Event | Answer] = queue.SimpleQueue()
        self._engines, self._rest_s = engines, rest_s
        self._count = 0
        self.ready: dict[str, Ready] = {}
        for side, engine in engines.items():
            threading.Thread(target=engine.run, args=(self._inbox.put,), daemon=True).start()
            try:
                self.load(side, choice if isinstance(choice, ModelChoice) else choice[side])
            except BasslineError:
                engine.submit(Close())
                raise
        self._runner = open_runner(self._inbox.put)
        self._runner.probe()
        self.isolation = self._wait(Isolation)

    def load(self, side: str, choice: ModelChoice) -> None:
        """Before a trial, whose clock stands still. Raises BasslineError when it cannot be loaded."""
        self._engines[side].submit(Load(choice))
        answer = self._wait(Ready, LoadFailed)
        if isinstance(answer, LoadFailed):
            raise BasslineError(answer.reason)
        assert isinstance(answer, Ready)
        self.ready[side] = answer

    def rest(self) -> float:
        """Let the machine come to rest; the load of others, in cores."""
        time.sleep(self._rest_s)
        return others_load()

    def forget(self, side: str) -> None:
        self._engines[side].submit(Generate("forget", FORGET))
        self._wait(RunFinished)

    def trial(self, side: str, request: Request, tests: str, turn: int = 0, stop_at_pass: bool = False) -> Trial:
        """Ask one side, and test every candidate the moment it is there. ``stop_at_pass``: want no more after that.

        Raises BasslineError when the run fails.
        """
        run, seen = self._play(side, request, tests, stop_at_pass)
        outcomes, width = _outcomes(run, seen.finished_s), run.metrics.width if run.metrics else 0
        return Trial(side, request.candidates, turn, run.first_passing_s, seen.ended_s, outcomes, width)

    def play(self, side: str, request: Request, tests: str) -> Run:
        """As ``trial``, and the whole run comes back."""
        return self._play(side, request, tests, stop_at_pass=False)[0]

    def _play(self, side: str, request: Request, tests: str, stop_at_pass: bool) -> tuple[Run, Conducted]:
        policy = TestPolicy(as_finished=True, stop_at_first_pass=stop_at_pass)
        driver = RunDriver(self.new_run(request, tests), lambda: policy)
        return driver.run, self.conduct(side, driver, driver.begin)

    def new_run(self, request: Request, tests: str) -> Run:
        self._count += 1
        return Run(f"trial-{self._count}", request, tests)

    def conduct(
        self, side: str, driver: RunDriver, begin: Callable[[], Sequence[Effect]], cap_s: float = math.inf
    ) -> Conducted:
        """Carry messages until the run is over. ``begin`` sets it off, and the clock; after ``cap_s`` it is stopped.

        Raises BasslineError when the run fails.
        """
        seen = Conducted()
        start = last = time.monotonic()
        self._perform(side, begin())
        while not driver.over:
            now = time.monotonic()
            if now - start >= cap_s and driver.run.state != RunState.STOPPING:
                self._perform(side, driver.stop())
            self._perform(side, driver.tick())
            try:
                message = self._inbox.get(timeout=_TICK_S)
            except queue.Empty:
                if now - last > _SILENCE_S:
                    raise _silence() from None
                continue
            last = time.monotonic()
            if isinstance(message, CandidateFinished):
                seen.finished_s[message.candidate] = last - start
            effects = _effects(driver, message)
            seen.first_pass = next((e.candidate for e in effects if isinstance(e, FirstPass)), seen.first_pass)
            self._perform(side, effects)
        if driver.run.state == RunState.FAILED:
            raise BasslineError(driver.run.reason)
        seen.ended_s = time.monotonic() - start
        return seen

    def verdict(self, code: str, tests: str) -> str:
        """Of one solution, outside any clock."""
        self._count += 1
        self._runner.test(RunTests(f"verdict-{self._count}", code, tests))
        answer = self._wait(TestFinished, ConsentNeeded)
        return answer.report.verdict if isinstance(answer, TestFinished) else "needs-in-process"

    def close(self) -> None:
        for engine in self._engines.values():
            engine.submit(Close())
            self._wait(Closed)
        self._runner.close()

    def _perform(self, side: str, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, RunTests):
                self._runner.test(effect)
            elif isinstance(effect, Message):
                self._engines[side].submit(effect)

    def _next(self) -> Event | Answer:
        try:
            return self._inbox.get(timeout=_SILENCE_S)
        except queue.Empty:
            raise _silence() from None

    def _wait(self, *kinds: type[_Kind]) -> _Kind:
        while not isinstance(message := self._next(), kinds):
            pass
        return message


def _silence() -> BasslineError:
    return BasslineError(f"Nothing was heard for {_SILENCE_S:.0f} s; start again with --resume.")


def _effects(driver: RunDriver, message: Event | Answer) -> list[Effect]:
    if isinstance(message, Answer):
        return driver.runner_answer(_unattended(message))
    return driver.engine_event(message)


def _unattended(answer: Answer) -> Answer:
    """Nobody is there to agree to anything: tests that need it count as not passed."""
    if isinstance(answer, ConsentNeeded):
        return TestFinished(answer.id, Report(Verdict.NEEDS_IN_PROCESS, "split", answer.sentence))
    return answer


def _outcomes(run: Run, finished_s: Mapping[int, float]) -> list[Outcome]:
    """Of the candidates that ended by themselves or at the limit of tokens."""
    return [
        Outcome(finished_s[n], c.tokens, c.mean_logprob, c.report.verdict if c.report else "")
        for n, c in sorted(run.candidates.items())
        if c.state in FINISHED
    ]
