"""A run that was stopped or killed goes on: with whom, within which budget, and what it takes along."""

from pathlib import Path

import pytest

from engine.contract import (
    CandidateFinished,
    CandidateState,
    Generate,
    Load,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
    Sampling,
    TextAdded,
)
from engine.runner.protocol import RunTests, TestFinished
from engine.runner.report import Report, TestResult
from engine.session.arms import BATCH, FRESH, LARGER, Budget, Model
from engine.session.candidate import Origin
from engine.session.driver import RunDriver
from engine.session.effects import Effect, TestPolicy
from engine.session.journal import Journal
from engine.session.recorder import Recorder
from engine.session.resume import elapsed_s, search_of
from engine.session.run import Run
from engine.session.search import Search, costs

PASS = Report("pass", "split", tests=(TestResult("1", "passed"),))
FAIL = Report("fail", "split", tests=(TestResult("1", "failed", "assert f() == 2, where 1"),))
SMALL, LARGE = Model(ModelChoice("small"), "Small"), Model(ModelChoice("large"), "Large", speed=2.0, load_s=3.0)
READY = Ready("m", "cpu", "int8", 4096)


class Desk:
    """A driver with a clock that is moved; what is tested is judged at once, and every candidate takes a second."""

    def __init__(self, run: Run, search: Search | None = None, began: float = 50.0, report: Report = FAIL):
        self.now, self.run, self.report = began, run, report
        self.driver = RunDriver(run, TestPolicy, search=search, clock=lambda: self.now)
        self.sent: list[Effect] = []

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, RunTests):
                self.perform(self.driver.runner_answer(TestFinished(effect.id, self.report)))
            else:
                self.sent.append(effect)

    def write(self, number: int, code: str = "", ends: bool = True) -> None:
        text = code or f"def f(): return {number + 10}"
        self.now += 1.0
        at_s = self.driver._time.leg_s
        self.perform(self.driver.engine_event(TextAdded(self.run.name, number, text[:5], 3, at_s - 0.5)))
        if ends:
            done = CandidateFinished(self.run.name, number, "done", "stop", text, 5, 0, 0, -0.1, at_s)
            self.perform(self.driver.engine_event(done))

    @property
    def asked(self) -> Request:
        last = self.sent[-1]
        assert isinstance(last, Generate)
        return last.request


def a_killed_search(path: Path, ladder: tuple[Model, ...] = (SMALL,), request: Request | None = None) -> Run:
    """Three candidates were done, a fourth half written, and four had not begun when the process died."""
    search = Search(Budget(), ladder, arms=(FRESH,))
    run = Run("r", search.first(request or Request("write f", 7)), "assert f() == 2")
    recorder, desk = Recorder(path), Desk(run, search)
    desk.perform(desk.driver.begin())
    recorder.begin(run)
    for number in (1, 2, 3):
        desk.write(number)
    desk.write(4, ends=False)
    recorder.note(run)
    assert recorder.close()
    journal = Journal(path)
    journal.end_unfinished()
    kept = journal.load(1).run
    journal.close()
    return kept


def fresh_of(run: Run, budget: Budget | None = None) -> Search:
    return search_of(run, (SMALL,), budget or Budget(), arms=(FRESH,))


@pytest.fixture
def killed(tmp_path: Path) -> Run:
    return a_killed_search(tmp_path / "history.sqlite")


def test_a_killed_search_writes_what_was_cut_off_first_with_the_same_seeds(killed: Run) -> None:
    desk = Desk(killed, began=1000.0)
    desk.perform(desk.driver.go_on(fresh_of(killed, Budget(candidates=10))))
    assert (desk.asked.prompt, desk.asked.seed, desk.asked.goal) == ("write f", 7, "first")
    assert desk.asked.numbers == range(4, 4 + BATCH)
    states = [killed.candidates[number].state for number in sorted(killed.candidates)]
    assert states == ["done", "done", "done"] + ["queued"] * BATCH
    assert [killed.candidates[n].report == FAIL for n in (1, 2, 3)] == [True] * 3


def test_its_times_go_on_where_they_ended(killed: Run) -> None:
    stood_at = elapsed_s(killed)
    assert stood_at == 4.0 - 0.5  # the first text of the fourth
    desk = Desk(killed, began=1000.0)
    desk.perform(desk.driver.go_on(fresh_of(killed)))
    desk.write(4)
    assert killed.candidates[4].finished_s == stood_at + 1.0
    assert killed.decisions[-1]["at_s"] == pytest.approx(stood_at)


def test_what_passes_between_opening_and_going_on_is_no_part_of_it(killed: Run) -> None:
    """A model is loaded in between."""
    stood_at, desk = elapsed_s(killed), Desk(killed, began=1000.0)
    desk.now += 30.0
    desk.perform(desk.driver.go_on(fresh_of(killed)))
    desk.write(4)
    assert killed.candidates[4].finished_s == stood_at + 1.0


def test_the_budget_counts_from_now_on(killed: Run) -> None:
    search = fresh_of(killed, Budget(candidates=10, seconds=5.0))
    desk = Desk(killed, began=1000.0)
    desk.perform(desk.driver.go_on(search))
    assert search.left(killed) == 4 + 10 - (3 + BATCH)  # four had begun
    desk.now += 4.9
    assert desk.driver.tick() == []
    desk.now += 0.2
    assert desk.driver.tick() != []


def test_decisions_of_before_stay_on_record(killed: Run) -> None:
    before = list(killed.decisions)
    desk = Desk(killed)
    desk.perform(desk.driver.go_on(fresh_of(killed)))
    assert killed.decisions[: len(before)] == before
    assert len(killed.decisions) > len(before)


def test_temperatures_are_walked_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    own = {number: Sampling(temperature=number / 10) for number in (1, 2, 3)}
    killed = a_killed_search(tmp_path / "h", request=Request("write f", 7, 3, overrides=own))
    desk = Desk(killed)
    search = fresh_of(killed, Budget(candidates=100))
    desk.perform(desk.driver.go_on(search))
    assert [desk.asked.sampling_of(n).temperature for n in (5, 6)] == [0.2, 0.3]
    later = search.decisions[0].request  # of which fresh ones are made
    assert [later.sampling_of(n).temperature for n in (65, 66, 67)] == [0.2, 0.3, 0.1]


def test_the_model_that_wrote_last_goes_on(tmp_path: Path) -> None:
    search = Search(Budget(), (SMALL, LARGE), arms=(LARGER,))
    run = Run("r", search.first(Request("write f", 7, 1)), "assert f() == 2")
    desk = Desk(run, search)
    desk.perform(desk.driver.begin())
    for number in range(1, BATCH + 1):
        desk.write(number)
    desk.perform(desk.driver.engine_event(RunFinished("r", "finished")))
    assert desk.sent[-1] == Load(LARGE.choice)
    desk.perform(desk.driver.engine_event(READY))
    desk.write(BATCH + 1)
    desk.perform(desk.driver.stop())
    desk.perform(desk.driver.engine_event(RunFinished("r", "stopped")))
    later = search_of(run, (SMALL, LARGE), Budget())
    assert (later.loaded, later.title) == (1, "Large")
    assert search_of(run, (SMALL,), Budget()).loaded == 0  # it was removed meanwhile


def test_what_candidates_cost_before_tells_what_others_will(killed: Run) -> None:
    assert costs(killed) == ({"Small": 1.5}, {"Small": 3})  # half a second each, one after another


def test_candidates_written_side_by_side_cost_the_time_once() -> None:
    run = Run("r", Request("p", 7, 3))
    for number, (start, end) in {1: (0.0, 4.0), 2: (1.0, 3.0), 3: (6.0, 8.0)}.items():
        run.apply(TextAdded("r", number, "x", 1, start))
        run.apply(CandidateFinished("r", number, "done", "stop", "x", 5, 0, 0, -0.1, end))
        run.candidates[number].origin = Origin(FRESH, "Small")
    assert costs(run) == ({"Small": 6.0}, {"Small": 3})


def test_a_run_that_asked_once_can_go_on_too(tmp_path: Path) -> None:
    run = Run("r", Request("write f", 7, 2, time_budget_s=3.0), "assert f() == 2")
    desk = Desk(run)
    desk.perform(desk.driver.begin())
    desk.write(1)
    desk.perform(desk.driver.stop())
    desk.perform(desk.driver.engine_event(RunFinished("r", "stopped")))
    desk.report = PASS
    desk.perform(desk.driver.go_on(search_of(run, (SMALL,), Budget())))
    assert (run.candidates[1].passed, desk.driver.over) == (True, True)  # it had not been tested yet
    assert run.candidates[2].state == CandidateState.STOPPED  # and is not written any more
