"""From Generate to the last verdict, with a clock: engines that obey the contract, one runner, one queue."""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
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
from engine.session.effects import Effect, TestPolicy
from engine.session.run import Run
from engine.session.states import RunState

_SILENCE_S = 300.0  # without any event; nothing here takes that long


class BenchRunner(Protocol):
    """The part of ``engine.runner.client.RunnerClient`` that is used."""

    def probe(self) -> None: ...

    def test(self, test: RunTests) -> None: ...

    def close(self) -> None: ...


_Kind = TypeVar("_Kind")
OpenRunner = Callable[[Callable[[Answer], None]], BenchRunner]


class Bench:
    """All sides, loaded and waiting. Whoever answers, a ``session.Run`` takes the code out of the text, knows which
    candidates are the same code and hands over what is to be tested, as in the application.

    ``ready``: what each side said of itself; ``isolation``: what holds around the code that is run.
    """

    def __init__(self, engines: Mapping[str, Engine], choice: ModelChoice, open_runner: OpenRunner, rest_s: float):
        """``rest_s``: before a trial, so that the runner's next boxes are warm, as when a user presses the key."""
        self._inbox: queue.SimpleQueue[Event | Answer] = queue.SimpleQueue()
        self._engines, self._rest_s = engines, rest_s
        self._count = 0
        self.ready: dict[str, Ready] = {}
        for side, engine in engines.items():
            threading.Thread(target=engine.run, args=(self._inbox.put,), daemon=True).start()
            engine.submit(Load(choice))
            answer = self._wait(Ready, LoadFailed)
            if isinstance(answer, LoadFailed):
                engine.submit(Close())
                raise BasslineError(answer.reason)
            assert isinstance(answer, Ready)
            self.ready[side] = answer
        self._runner = open_runner(self._inbox.put)
        self._runner.probe()
        self.isolation = self._wait(Isolation)

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
        run, finished_s, ended_s = self._play(side, request, tests, stop_at_pass)
        outcomes, width = _outcomes(run, finished_s), run.metrics.width if run.metrics else 0
        return Trial(side, request.candidates, turn, run.first_passing_s, ended_s, outcomes, width)

    def play(self, side: str, request: Request, tests: str) -> Run:
        """As ``trial``, and the whole run comes back."""
        return self._play(side, request, tests, stop_at_pass=False)[0]

    def _play(self, side: str, request: Request, tests: str, stop_at_pass: bool) -> tuple[Run, dict[int, float], float]:
        """The run, when each candidate had finished, and when all had ended; seconds since Generate."""
        self._count += 1
        run = Run(f"trial-{self._count}", request, tests)
        policy = TestPolicy(as_finished=True, stop_at_first_pass=stop_at_pass)
        driver, finished_s = RunDriver(run, lambda: policy), dict[int, float]()
        start = time.monotonic()
        self._perform(side, driver.begin())
        while not driver.over:
            message = self._next()
            if isinstance(message, Answer):
                effects = driver.runner_answer(_unattended(message))
            else:
                effects = driver.engine_event(message)
            if isinstance(message, CandidateFinished):
                finished_s[message.candidate] = time.monotonic() - start
            self._perform(side, effects)
        if run.state == RunState.FAILED:
            raise BasslineError(run.reason)
        return run, finished_s, time.monotonic() - start

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
            raise BasslineError(f"Nothing was heard for {_SILENCE_S:.0f} s; start again with --resume.") from None

    def _wait(self, *kinds: type[_Kind]) -> _Kind:
        while not isinstance(message := self._next(), kinds):
            pass
        return message


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
