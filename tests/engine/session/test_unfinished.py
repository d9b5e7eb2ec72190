"""A run that was killed, stopped or failed goes on from the history: nothing is lost, and nothing is written twice."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.contract import (
    Add,
    CandidateFinished,
    Generate,
    Load,
    LoadFailed,
    Ready,
    Request,
    RunFinished,
    TextAdded,
)
from engine.runner.protocol import CancelTests, ConsentNeeded, RunTests, TestFinished
from engine.session.arms import BATCH, FRESH, REPAIR, Budget
from engine.session.candidate import ONCE, Origin
from engine.session.driver import RunDriver
from engine.session.effects import TestPolicy
from engine.session.journal import Journal
from engine.session.recorder import Recorder
from engine.session.run import Run
from engine.session.search import Search
from engine.session.unfinished import owed
from tests.engine.session.world import FAIL, LARGE, PASS, SMALL, WORSE, World

ALL_ARMS = (FRESH, "told", REPAIR, "larger model")
READY = Ready("m", "cpu", "int8", 4096)


def text_of(model: str, request: Request, number: int) -> str:
    """What a model writes: it depends on all that is asked, on the seed and on the number, and on nothing else."""
    asked = hash((model, request.prompt, request.turns, request.seed, number)) % 10**9
    return f"```python\ndef f(): return {asked}\n```"


class Machine(World):
    """A world whose models write by what they are asked, and which notes what was asked of whom."""

    def __post_init__(self) -> None:
        self.numbers_asked: list[int] = []
        self.requests: dict[int, Request] = {}  # what each candidate was asked, as if alone
        super().__post_init__()

    def _engine_hears(self, message: object) -> None:
        before = list(self.due) if isinstance(message, Add) else []
        if isinstance(message, Generate):
            self.requests |= {number: message.request.asked_of(number) for number in message.request.numbers}
        elif isinstance(message, Add):
            base = replace(self.asked[-1].request, candidates=message.count, first_candidate=self.last + 1)
            base = replace(base, openings=dict.fromkeys(base.numbers, message.opening) if message.opening else {})
            self.requests |= {number: base.asked_of(number) for number in base.numbers}
        super()._engine_hears(message)  # type: ignore[arg-type]
        if isinstance(message, Generate | Add):
            self.numbers_asked += self.due[len(before) :]

    def expected(self) -> str:
        number = self.due[0]
        return text_of(self.search.title, self.requests[number], number)

    def begin_one(self) -> None:
        """The first words of the next candidate."""
        self.now += 0.1
        words = TextAdded(self.run.name, self.due[0], self.expected()[:20], 3, 0.1)
        self.perform(self.driver.engine_event(words))

    def loading(self) -> bool:
        return bool(self.sent) and isinstance(self.sent[-1], Load) and self.driver._proposal is not None

    def step(self) -> bool:
        """What comes next by itself; false when all is over."""
        if self.tests:
            self.judge(FAIL if self.now % 2 < 1 else WORSE)
        elif self.loading():
            self.perform(self.driver.engine_event(READY))
        elif self.due:
            self.write(0.25, self.expected())
        elif self.engine_runs:
            self.end_leg("stopped" if self.run.state == "stopping" else "finished")
        else:
            return False
        return True


@contextmanager
def history() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "history.sqlite"


def lives(data: st.DataObject, file: Path, world: Machine, recorder: Recorder, id: int | None, most: int) -> int | None:
    """The program until somebody kills it; the number of the run in the history, None before it is there."""
    if id is None:
        recorder.begin(world.run)
    else:
        recorder.resume(world.run, id)
        recorder.note(world.run)
    for _ in range(data.draw(st.integers(0, most))):
        if world.due and data.draw(st.booleans()):
            world.begin_one()
        elif not world.step():
            break
        recorder.note(world.run)
    assert recorder.flush()
    return id if id is not None else recorder.id_of(world.run)


def ended(run: Run) -> dict[int, str]:
    return {n: c.text for n, c in run.candidates.items() if c.state in ("done", "cut")}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_search_that_is_killed_at_any_moment_becomes_what_it_would_have_been(data: st.DataObject) -> None:
    """However often, wherever: the same candidates with the same texts as in one go, each finished once."""
    budget = Budget(data.draw(st.integers(1, 30)), 1e6)
    whole = Machine(budget)
    while whole.step():
        pass
    with history() as file:
        world, id = Machine(budget), None
        for _ in range(data.draw(st.integers(1, 3))):
            recorder = Recorder(file)
            id = lives(data, file, world, recorder, id, 60)
            recorder.close()  # what is in the file is there already
            assert id is not None
            journal = Journal(file)
            kept = journal.load(id).run
            journal.close()
            done = ended(world.run)
            assert ended(kept) == done
            verdicts = {n: c.report for n, c in world.run.candidates.items() if c.report}
            assert {n: c.report for n, c in kept.candidates.items() if c.report} == verdicts
            world = Machine(budget, now=1000.0, past=kept)
            assert not set(world.numbers_asked) & set(done)
            first = {owed_number for part in world.driver._owed for owed_number in part.request.numbers}
            assert not first & set(done)
        while world.step():
            assert not set(world.numbers_asked) & set(done)
        assert len(world.numbers_asked) == len(set(world.numbers_asked))
        assert ended(world.run) == ended(whole.run)
        assert {n: c.seed for n, c in world.run.candidates.items()} == {
            n: c.seed for n, c in whole.run.candidates.items()
        }


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_with_every_arm_and_two_models_nothing_is_lost_and_nothing_repeated(data: st.DataObject) -> None:
    budget = Budget(data.draw(st.integers(1, 60)), 1e6)
    with history() as file:
        world, id = Machine(budget, (SMALL, LARGE), ALL_ARMS), None
        recorder = Recorder(file)
        id = lives(data, file, world, recorder, id, 250)
        recorder.close()
        assert id is not None
        journal = Journal(file)
        kept = journal.load(id).run
        done, unfinished = ended(world.run), set(world.run.candidates) - set(ended(world.run))
        origins = {n: c.origin for n, c in world.run.candidates.items()}
        assert ended(kept) == done
        assert {n: c.origin for n, c in kept.candidates.items()} == origins
        after = Machine(budget, (SMALL, LARGE), ALL_ARMS, now=500.0, past=kept)
        written = False
        while after.step():
            for message in after.asked if not written else ():
                if unfinished & set(message.request.numbers):
                    written = True
                    number = message.request.first_candidate
                    before, again = world.requests[number], message.request.asked_of(number)
                    assert (again.prompt, again.turns, again.seed) == (before.prompt, before.turns, before.seed)
        assert not set(after.numbers_asked) & set(done)
        assert len(after.numbers_asked) == len(set(after.numbers_asked))
        assert {n: c.text for n, c in after.run.candidates.items() if n in done} == done
        assert all(after.run.candidates[n].origin == origins[n] for n in origins)
        assert len(after.run.candidates) <= budget.candidates
        assert sorted(after.run.candidates) == list(range(1, len(after.run.candidates) + 1))
        assert all(c.state == "done" for c in after.run.candidates.values())
        journal.close()


def a_run(count: int, finished: dict[int, str], state: str = "stopped") -> Run:
    """One of ``count`` candidates, of which only some were written to their end."""
    run = Run("r", Request("write f", 7, count), "assert f() == 2")
    for number, text in finished.items():
        run.apply(TextAdded("r", number, text[:5], 1, 0.1))
        run.apply(CandidateFinished("r", number, "done", "stop", text, 5, 0, 0, -0.1, 0.5 * number))
    run.apply(RunFinished("r", state))
    return run


def numbers(effects: list[object]) -> list[range]:
    return [effect.request.numbers for effect in effects if isinstance(effect, Generate)]


def test_gaps_are_asked_for_one_after_another() -> None:
    run = a_run(8, {2: "a = 1", 3: "b = 1", 6: "c = 1"})
    assert [part.request.numbers for part in owed(run)] == [range(1, 2), range(4, 6), range(7, 9)]
    driver = RunDriver(run, TestPolicy)
    asked = numbers(driver.go_on())
    assert [run.candidates[n].state for n in range(1, 9)] == [
        *("queued", "done", "done", "queued", "queued", "done", "queued", "queued")
    ]
    while driver.continues or not run.ended:
        for number in asked[-1]:
            driver.engine_event(CandidateFinished("r", number, "done", "stop", f"x = {number}", 5, 0, 0, -0.1, 0.5))
        asked += numbers(driver.engine_event(RunFinished("r", "finished")))
    assert asked == [range(1, 2), range(4, 6), range(7, 9)]
    assert driver.over
    assert sorted(run.candidates) == list(range(1, 9))
    assert all(c.state == "done" for c in run.candidates.values())
    assert run.candidates[2].text == "a = 1"


def test_a_run_in_which_all_have_finished_owes_nothing() -> None:
    run = a_run(2, {1: "a = 1", 2: "b = 1"}, "finished")
    assert owed(run) == []
    assert RunDriver(run, TestPolicy).go_on() == []


def test_words_of_one_that_was_cut_off_count_for_nothing_until_it_is_written() -> None:
    """Also where another candidate was like it: that one is tested for itself."""
    run = Run("r", Request("write f", 7, 2), "assert f() == 2")
    run.apply(CandidateFinished("r", 1, "stopped", "cancelled", "def f(): return 1", 3, 0, 0, -0.1, 0.2))
    run.apply(CandidateFinished("r", 2, "done", "stop", "def f(): return 1", 3, 0, 0, -0.1, 0.4))
    assert run.candidates[2].same_as is not None
    run.apply(RunFinished("r", "stopped"))
    driver = RunDriver(run, lambda: TestPolicy(as_finished=True))
    effects = driver.go_on()
    assert [effect.id.split("/")[1] for effect in effects if isinstance(effect, RunTests)] == ["2"]
    assert numbers(effects) == [range(1, 2)]
    assert run.candidates[2].same_as is None
    assert run.candidates[1].text == ""


def test_more_while_a_gap_is_written_come_behind_all_others() -> None:
    run = a_run(4, {2: "a = 1", 3: "b = 1", 4: "c = 1"})
    driver = RunDriver(run, TestPolicy)
    driver.go_on()
    assert driver.more(2) == []  # an engine would number them 2 and 3
    driver.engine_event(CandidateFinished("r", 1, "done", "stop", "d = 1", 5, 0, 0, -0.1, 0.5))
    assert numbers(driver.engine_event(RunFinished("r", "finished"))) == [range(5, 7)]


def test_more_neighbours_than_one_request_may_ask_for_are_several() -> None:
    run = a_run(100, {1: "a = 1"})
    run.reopen(run.more(100))
    run.apply(RunFinished("r", "stopped"))
    assert [part.request.numbers for part in owed(run)] == [range(2, 130), range(130, 201)]
    driver = RunDriver(run, TestPolicy)
    assert numbers(driver.go_on()) == [range(2, 130)]
    assert numbers(driver.engine_event(RunFinished("r", "finished"))) == [range(130, 201)]


@pytest.mark.parametrize("search", [None, Search(Budget(), (SMALL,), arms=(FRESH,))])
def test_a_test_of_what_was_cut_off_says_nothing_about_what_is_written_in_its_place(search: Search | None) -> None:
    """Another one has the same code, and shared the verdict that was to come: it is tested for itself."""
    run = Run("r", Request("write f", 7, 3), "assert f() == 2")
    driver = RunDriver(run, lambda: TestPolicy(as_finished=True))
    driver.begin()
    (test,) = driver.engine_event(ended_with(1, "def f(): return 1", "stopped"))
    assert isinstance(test, RunTests)
    assert driver.engine_event(ended_with(2, "def f(): return 1")) == []
    driver.engine_event(RunFinished("r", "stopped"))
    effects = driver.go_on(search)
    assert effects[0] == CancelTests(test.id)
    assert [e.id.split("/")[1] for e in effects if isinstance(e, RunTests)] == ["2"]
    assert driver.runner_answer(TestFinished(test.id, PASS)) == []
    assert [run.candidates[n].report for n in (1, 2)] == [None, None]


def test_a_candidate_that_waits_for_consent_is_not_tested_once_it_is_written_again() -> None:
    run = Run("r", Request("write f", 7, 2), "assert f() == 2")
    driver = RunDriver(run, lambda: TestPolicy(as_finished=True))
    driver.begin()
    (test,) = driver.engine_event(ended_with(1, "def f(): return 1", "stopped"))
    assert isinstance(test, RunTests)
    driver.runner_answer(ConsentNeeded(test.id, "No sandbox."))
    driver.engine_event(RunFinished("r", "stopped"))
    assert numbers(driver.go_on()) == [range(1, 3)]
    assert driver.answer_consent(given=True) == []


def ended_with(number: int, code: str, state: str = "done") -> CandidateFinished:
    reason = "stop" if state == "done" else "cancelled"
    return CandidateFinished("r", number, state, reason, code, 3, 0, 0, -0.1, 0.5)


class TestMoreThatCameTooLate:
    """An engine forgets what it is asked to add when it has just ended the run."""

    def driver(self, policy: TestPolicy = TestPolicy()) -> RunDriver:  # noqa: B008 - it is frozen
        driver = RunDriver(Run("r", Request("write f", 7, 2), "assert f() == 2"), lambda: policy)
        driver.begin()
        driver.engine_event(ended_with(1, "a = 1"))
        assert driver.more(2) == [Add("r", 2)]
        assert driver.more(1) == [Add("r", 1)]
        return driver

    def test_they_are_asked_for_once_more_and_written(self) -> None:
        driver = self.driver()
        driver.engine_event(ended_with(2, "b = 1"))
        (asked,) = driver.engine_event(RunFinished("r", "finished"))
        assert isinstance(asked, Generate)
        assert (asked.request.numbers, asked.request.seed, asked.request.prompt) == (range(3, 6), 7, "write f")
        assert driver.continues
        for number in (3, 4, 5):
            driver.engine_event(ended_with(number, f"c = {number}"))
        assert driver.engine_event(RunFinished("r", "finished")) == []
        assert driver.over
        assert [driver.run.candidates[n].state for n in range(1, 6)] == ["done"] * 5

    def test_those_that_the_engine_did_take_up_are_not(self) -> None:
        driver = self.driver()
        for number in (2, 3, 4):
            driver.engine_event(ended_with(number, f"c = {number}"))
        assert numbers(driver.engine_event(RunFinished("r", "finished"))) == [range(5, 6)]

    def test_one_that_the_user_stopped_before_it_began_stays_as_it_is(self) -> None:
        driver = self.driver()
        for number in (2, 3, 5):
            driver.engine_event(ended_with(number, f"c = {number}"))
        driver.engine_event(ended_with(4, "", "stopped"))
        assert driver.engine_event(RunFinished("r", "finished")) == []
        assert driver.over

    @pytest.mark.parametrize("outcome", ["stopped", "budget", "failed"])
    def test_a_run_that_was_ended_asks_for_no_more(self, outcome: str) -> None:
        driver = self.driver()
        assert driver.engine_event(RunFinished("r", outcome)) == []
        assert driver.over

    @pytest.mark.parametrize("outcome", ["stopped", "finished"])
    def test_nor_does_one_that_is_asked_to_stop(self, outcome: str) -> None:
        """The engine may have finished before it heard of that."""
        driver = self.driver()
        driver.stop()
        driver.engine_event(ended_with(2, "b = 1"))
        assert driver.engine_event(RunFinished("r", outcome)) == []
        assert driver.over

    def test_an_engine_that_never_takes_them_up_is_not_asked_for_ever(self) -> None:
        driver = self.driver()
        driver.engine_event(RunFinished("r", "finished"))
        assert driver.engine_event(RunFinished("r", "finished")) == []
        assert driver.over


def test_stop_ends_what_is_owed_too() -> None:
    run = a_run(5, {2: "a = 1", 4: "b = 1"})
    driver = RunDriver(run, TestPolicy)
    driver.go_on()
    driver.stop()
    driver.engine_event(RunFinished("r", "stopped"))
    assert driver.over


def test_a_failure_ends_it_and_it_can_go_on_once_more() -> None:
    run = a_run(5, {2: "a = 1", 4: "b = 1"})
    driver = RunDriver(run, TestPolicy)
    driver.go_on()
    assert driver.engine_event(RunFinished("r", "failed", None, "no memory")) == []
    assert driver.over
    assert [part.request.numbers for part in owed(run)] == [range(1, 2), range(3, 4), range(5, 6)]
    assert numbers(driver.go_on()) == [range(1, 2)]


def test_a_pass_among_what_is_written_again_ends_the_search() -> None:
    run = a_run(4, {2: "a = 1"})
    driver = RunDriver(run, TestPolicy)
    search = Search(Budget(), (SMALL,), arms=(FRESH,))
    (test,) = driver.go_on(search)
    assert isinstance(test, RunTests)
    (asked,) = driver.runner_answer(TestFinished(test.id, FAIL))
    assert isinstance(asked, Generate)
    (test,) = driver.engine_event(CandidateFinished("r", 1, "done", "stop", "def f(): return 2", 5, 0, 0, -0.1, 0.5))
    assert isinstance(test, RunTests)
    driver.runner_answer(TestFinished(test.id, PASS))
    driver.engine_event(RunFinished("r", "stopped"))
    assert driver.over
    assert run.candidates[1].origin == Origin(FRESH, "Small")
    assert run.candidates[3].origin != ONCE


def test_the_model_that_was_writing_is_loaded_again() -> None:
    run = a_run(BATCH, {n: f"a = {n}" for n in range(1, BATCH + 1)})
    request = replace(run.request, candidates=4, first_candidate=BATCH + 1)
    for candidate in run.candidates.values():
        candidate.origin = Origin(FRESH, "Small")
        run.queue_test(candidate.number)
        run.record(candidate.number, FAIL, 1.0)
    run.reopen(request, Origin(FRESH, "Large"))
    run.apply(RunFinished("r", "stopped"))
    driver = RunDriver(run, TestPolicy)
    assert driver.go_on(Search(Budget(), (SMALL, LARGE))) == [Load(LARGE.choice)]
    assert numbers(driver.engine_event(READY)) == [request.numbers]
    assert run.candidates[BATCH + 1].origin == Origin(FRESH, "Large")
    driver = RunDriver(run, TestPolicy)
    driver.engine_event(RunFinished("r", "stopped"))
    again = driver.go_on(Search(Budget(), (SMALL, LARGE)))
    assert again == [Load(LARGE.choice)]
    (load_small,) = driver.engine_event(LoadFailed("It is gone."))
    assert load_small == Load(SMALL.choice)  # another way, without it


def test_time_goes_on_where_it_was() -> None:
    run = a_run(2, {1: "def f(): return 1"})
    assert run.candidates[1].finished_s == 0.5
    now = 100.0
    driver = RunDriver(run, lambda: TestPolicy(as_finished=True), clock=lambda: now)
    (test, _) = driver.go_on()
    assert isinstance(test, RunTests)
    now = 103.0
    driver.engine_event(CandidateFinished("r", 2, "done", "stop", "def f(): return 2", 5, 0, 0, -0.1, 3.0))
    assert run.candidates[2].finished_s == pytest.approx(3.5)
    driver.runner_answer(TestFinished(test.id, PASS))
    assert run.first_passing_s == pytest.approx(3.5)


def test_candidates_that_never_began_leave_the_history(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history.sqlite")
    run = a_run(4, {1: "a = 1"})
    recorder.begin(run)
    recorder.flush()
    run.withdraw([3, 4])
    recorder.note(run)
    recorder.flush()
    id = recorder.id_of(run)
    recorder.close()
    assert id is not None
    journal = Journal(tmp_path / "history.sqlite")
    assert sorted(journal.load(id).run.candidates) == [1, 2]
    journal.close()


def a_search_cut_off_by_the_larger_model() -> Run:
    """Two were asked of it, in different words, when the program was killed."""
    run = Run("r", Request("write f", 7, 2), "assert f() == 2")
    for number, arm in ((1, FRESH), (2, "told")):
        run.candidates[number].origin = Origin(arm, LARGE.title)
    run.apply(RunFinished("r", "stopped"))
    return run


def test_what_is_owed_is_written_by_another_model_where_its_own_cannot_be_loaded() -> None:
    world = Machine(Budget(2), (SMALL, LARGE), (FRESH,), past=a_search_cut_off_by_the_larger_model())
    assert isinstance(world.sent[-1], Load)
    world.perform(world.driver.engine_event(LoadFailed("no memory")))
    while world.step():
        pass
    assert world.driver.over
    assert sorted(world.numbers_asked) == [1, 2]
    assert [world.run.candidates[number].state for number in (1, 2)] == ["done", "done"]
    assert [world.run.candidates[number].origin for number in (1, 2)] == [
        Origin(FRESH, "Small"),
        Origin("told", "Small"),
    ]
    assert {decision["model"] for decision in world.run.decisions} == {"Small"}


def test_what_is_owed_by_a_model_that_is_gone_is_told_of_the_one_that_writes_it() -> None:
    world = Machine(Budget(2), (SMALL,), (FRESH,), past=a_search_cut_off_by_the_larger_model())
    while world.step():
        pass
    assert [world.run.candidates[number].origin for number in (1, 2)] == [
        Origin(FRESH, "Small"),
        Origin("told", "Small"),
    ]
    assert {decision["model"] for decision in world.run.decisions} == {"Small"}


def test_a_search_ends_where_no_model_can_be_loaded() -> None:
    world = Machine(Budget(2), (SMALL, LARGE), (FRESH,), past=a_search_cut_off_by_the_larger_model())
    for _ in range(2):
        assert not world.driver.over
        world.perform(world.driver.engine_event(LoadFailed("no memory")))
    assert world.driver.over
    assert world.numbers_asked == []
