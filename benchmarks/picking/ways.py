"""Ways to a candidate that passes: eight at once, until one passes with more or fewer arms, or llama.cpp in turn."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.picking.bench import Bench
from engine.contract import ModelChoice, Request
from engine.session.arms import ARMS, BATCH, FRESH, LARGER, REPAIR, SHOWN_TEST, Budget, Model, best_failing
from engine.session.driver import RunDriver
from engine.session.effects import TestPolicy
from engine.session.search import Search

SMALL, LARGE, PEER_SMALL, PEER_LARGE = "0.5B", "1.5B", "llama.cpp 0.5B", "llama.cpp 1.5B"  # engines
_MOST = 128  # candidates of a search, and of llama.cpp
_OF_TESTS = TestPolicy(as_finished=True, stop_at_first_pass=True)


@dataclass(frozen=True)
class Way:
    """``engine`` holds the model that it begins with. ``arms``: of a search; empty for eight at once.

    ``repairs``: where none of the eight passes, the best one is corrected once, as a user does by hand. ``in_turn``:
    one answer after another. ``after_eight``: begins with the same candidates as *EIGHT*, which may decide it.
    """

    name: str
    engine: str
    arms: tuple[str, ...] = ()
    repairs: bool = False
    in_turn: bool = False
    after_eight: bool = False


EIGHT = Way("0.5B: eight", SMALL)
WAYS = (
    EIGHT,
    Way("0.5B: eight, then one repair by hand", SMALL, repairs=True, after_eight=True),
    Way("0.5B: until one passes, fresh only", SMALL, (FRESH,), after_eight=True),
    Way("0.5B: until one passes, with repair", SMALL, (FRESH, SHOWN_TEST, REPAIR), after_eight=True),
    Way("0.5B: until one passes, then 1.5B", SMALL, tuple(ARMS), after_eight=True),
    Way("1.5B: until one passes", LARGE, (FRESH, SHOWN_TEST, REPAIR)),
    Way("llama.cpp, 0.5B in turn", PEER_SMALL, in_turn=True),
    Way("llama.cpp, 1.5B in turn", PEER_LARGE, in_turn=True),
)


@dataclass(frozen=True)
class Task:
    """What is asked, the ``tests`` that the user has, and ``judge``: those and the ones that nobody saw."""

    name: str
    asked: str
    tests: str
    judge: str


@dataclass(frozen=True)
class Attempt:
    """One way on one task. ``shown_s``: seconds from Generate until a candidate passed the user's tests, None if none
    did; ``solved``: that candidate passes the unseen tests too. ``arm``: which arm asked for it. ``ended_s``: when all
    was over; ``others``: cores that other programs used beforehand."""

    task: str
    way: str
    seed: int
    shown_s: float | None
    solved: bool
    arm: str
    model: str
    candidates: int
    ended_s: float
    others: float

    def within(self, seconds: float) -> bool:
        return self.solved and self.shown_s is not None and self.shown_s <= seconds

    @property
    def decided_by_eight(self) -> bool:
        return self.shown_s is not None and self.candidates <= BATCH


class Solver:
    """``choices``: the model of each engine; ``ladder``: of the searches that may go on with a larger one."""

    def __init__(
        self, bench: Bench, choices: Mapping[str, ModelChoice], ladder: Sequence[Model], cap_s: float, max_tokens: int
    ):
        self._bench, self._choices, self._ladder, self._cap_s = bench, choices, ladder, cap_s
        self._max_tokens = max_tokens

    def attempt(self, way: Way, task: Task, seed: int) -> Attempt:
        """Raises BasslineError when a run fails."""
        bench = self._bench
        bench.forget(way.engine)
        others = bench.rest()
        driver, search = self._driver(way, task, seed)
        seen, run = bench.conduct(way.engine, driver, driver.begin, self._cap_s), driver.run
        start = best_failing(run) if way.repairs and seen.first_pass is None else None
        if start is not None and seen.ended_s < self._cap_s:
            repair = functools.partial(driver.repair, start.number, BATCH, seed + 1)
            again = bench.conduct(way.engine, driver, repair, self._cap_s - seen.ended_s)
            seen = replace(again, ended_s=seen.ended_s + again.ended_s)
        passed = run.candidates[seen.first_pass] if seen.first_pass is not None else None
        solved = passed is not None and bench.verdict(passed.code, task.judge) == "pass"
        if search is not None and (search.loaded or search.decisions[-1].model != search.title):
            # The next task begins with the first model again, also where the time was up while another was loaded.
            bench.load(way.engine, self._choices[way.engine])
        origin = passed.origin if passed else None
        return Attempt(
            task.name,
            way.name,
            seed,
            run.first_passing_s,
            solved,
            origin.arm if origin else "",
            origin.model if origin else "",
            len(run.candidates),
            seen.ended_s,
            others,
        )

    def _driver(self, way: Way, task: Task, seed: int) -> tuple[RunDriver, Search | None]:
        request = Request(task.asked, seed, BATCH, goal="first")
        request = replace(request, sampling=replace(request.sampling, max_tokens=self._max_tokens))
        search = None
        if way.arms:
            ladder = self._ladder if LARGER in way.arms else [Model(self._choices[way.engine], way.engine)]
            search = Search(Budget(_MOST, self._cap_s), ladder, arms=way.arms)
            request = search.first(request)
        elif way.in_turn:
            request = replace(request, candidates=_MOST)
        driver = RunDriver(self._bench.new_run(request, task.tests), lambda: _OF_TESTS, search=search)
        return driver, search
