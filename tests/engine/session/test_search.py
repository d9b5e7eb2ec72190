"""Until one passes: budgets, arms, models, and what is recorded; the engine is a list of events."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.contract import (
    Add,
    BadRequest,
    Cancel,
    CandidateFinished,
    Generate,
    Load,
    LoadFailed,
    Ready,
    Request,
    RunFinished,
    Sampling,
    TextAdded,
)
from engine.runner.protocol import CancelTests, ConsentNeeded, RunTests, TestFinished
from engine.runner.report import Report
from engine.session.arms import BATCH, FRESH, REPAIR, Budget
from engine.session.candidate import Origin
from engine.session.driver import RunDriver
from engine.session.effects import FirstPass, RefusedTests, TestPolicy
from engine.session.run import Run
from engine.session.search import Decision, Search, asked_of
from tests.engine.session.world import FAIL, LARGE, PASS, SMALL, WORSE, World

READY = Ready("m", "cpu", "int8", 4096)


def test_it_begins_with_a_batch_and_keeps_the_batch_full() -> None:
    world = World()
    assert world.asked[0].request.candidates == BATCH
    world.write()
    assert not any(isinstance(message, Add) for message in world.sent)  # its verdict may be the pass
    world.judge()
    world.write()
    world.judge()
    assert [message for message in world.sent if isinstance(message, Add)] == [Add("r", 1), Add("r", 1)]
    assert sum(not c.ended for c in world.run.candidates.values()) == BATCH


def test_a_pass_ends_it_at_once() -> None:
    world = World()
    world.write()
    world.judge(PASS)
    assert world.sent[-1] == Cancel("r")
    assert world.told == [FirstPass(1, stopped=True)]
    world.end_leg("stopped")
    assert world.driver.over
    assert len(world.asked) == 1


def test_the_most_candidates_are_kept_to_the_candidate() -> None:
    world = World(Budget(candidates=21))
    world.play()
    assert len(world.run.candidates) == 21
    assert all(c.report == FAIL for c in world.run.candidates.values())
    assert not any(isinstance(message, Cancel) for message in world.sent)


def test_fewer_than_a_batch_are_no_more() -> None:
    world = World(Budget(candidates=3))
    world.play()
    assert sorted(world.run.candidates) == [1, 2, 3]


def test_more_candidates_than_one_request_may_have() -> None:
    world = World(Budget(candidates=200))
    world.play(most=2000)
    assert len(world.run.candidates) == 200


def test_the_time_is_kept_to_the_second() -> None:
    world = World(Budget(seconds=5.0))
    world.write(seconds=4.9)
    assert world.driver.tick() == []
    world.now += 0.2
    effects = world.driver.tick()
    assert effects[0] == Cancel("r")
    assert any(isinstance(effect, CancelTests) for effect in effects)  # also what is in test
    assert not world.driver.searching


def test_the_time_begins_with_the_first_candidates_and_not_while_their_model_loads() -> None:
    now = 0.0
    search = Search(Budget(seconds=5.0), (SMALL,), arms=(FRESH,))
    driver = RunDriver(
        Run("r", search.first(Request("p", 7)), "assert f()"), TestPolicy, search=search, clock=lambda: now
    )
    now = 1000.0
    assert driver.tick() == []
    assert driver.searching
    driver.begin()
    now = 1004.9
    assert driver.tick() == []
    now = 1005.0
    assert driver.tick() == [Cancel("r")]


def test_an_add_that_came_too_late_loses_no_number() -> None:
    """The engine had just ended the run when more were asked for."""
    world = World(Budget(candidates=30))
    for _ in range(BATCH):
        world.write()
    world.end_leg()  # forgets what was added
    while world.tests:
        world.judge()
    assert world.asked[1].request.first_candidate == BATCH + 1
    world.play()
    assert sorted(world.run.candidates) == list(range(1, 31))
    assert all(c.report is not None for c in world.run.candidates.values())


def test_one_that_was_stopped_after_it_had_begun_stays() -> None:
    world = World(Budget(candidates=BATCH))
    number = world.due.pop(0)
    world.perform(world.driver.engine_event(TextAdded("r", number, "def", 1, 0.1)))
    ended = CandidateFinished("r", number, "stopped", "cancelled", "def", 1, 0, 0, -0.1, 0.5)
    world.perform(world.driver.engine_event(ended))
    world.play()
    assert sorted(world.run.candidates) == list(range(1, BATCH + 1))


def test_tests_that_may_not_run_end_the_search() -> None:
    world = World()
    world.write()
    world.perform(world.driver.runner_answer(ConsentNeeded(world.tests.pop(0).id, "No sandbox.")))
    world.perform(world.driver.answer_consent(given=False))
    assert not world.driver.searching


def test_the_time_counts_from_where_the_search_began() -> None:
    now = 0.0
    run = Run("r", Request("write f", 7, 1), "assert f() == 2")
    driver = RunDriver(run, TestPolicy, clock=lambda: now)
    driver.begin()
    driver.engine_event(CandidateFinished("r", 1, "done", "stop", "def f(): return 1", 5, 0, 0, -0.1, 0.5))
    driver.engine_event(RunFinished("r", "finished"))
    now = 100.0
    (test,) = driver.go_on(Search(Budget(seconds=60.0), (SMALL,), arms=(FRESH,)))
    assert isinstance(test, RunTests)
    (asked,) = driver.runner_answer(TestFinished(test.id, FAIL))
    assert isinstance(asked, Generate)
    now = 159.0
    assert driver.tick() == []
    now = 160.0
    assert driver.tick() == [Cancel("r")]


def test_who_was_corrected_stays_known_when_a_search_begins() -> None:
    run = Run("r", Request("write f", 7, 1), "assert f() == 2")
    search = Search(Budget(), (SMALL,), arms=(FRESH,))
    corrected = Origin(REPAIR, "", 1)
    run.apply(RunFinished("r", "finished"))
    run.reopen(replace(run.request, first_candidate=2), corrected)
    search.resume(run)
    assert [run.candidates[number].origin for number in (1, 2)] == [Origin(FRESH, "Small"), corrected]


def test_a_new_leg_waits_for_the_last_verdict() -> None:
    world = World(Budget(candidates=BATCH * 2), arms=(REPAIR,))
    while world.due:
        world.write()
    while len(world.tests) > 1:
        world.judge()
    world.end_leg()
    assert len(world.asked) == 1  # it may be the pass
    world.judge()
    assert len(world.asked) == 2


def test_times_count_from_the_beginning_of_the_search() -> None:
    world = World(Budget(candidates=BATCH + 1), arms=("told",))
    world.play()
    assert world.run.candidates[1].finished_s == 0.5  # as the engine says it
    assert world.run.candidates[BATCH + 1].finished_s == 0.5 * BATCH + 0.5


@pytest.mark.parametrize("ends", ["pass", "stop", "time"])
def test_the_last_words_of_a_later_leg_keep_its_times(ends: str) -> None:
    """They come when the search is over already."""
    world = judged_at_the_end(World(Budget(candidates=BATCH * 2), arms=("told",)))
    world.write()
    number = world.due[0]
    world.perform(world.driver.engine_event(TextAdded("r", number, "def", 1, 0.6)))
    if ends == "pass":
        world.judge(PASS)
    elif ends == "stop":
        world.perform(world.driver.stop())
    else:
        world.now += 1000.0
        world.perform(world.driver.tick())
    assert not world.driver.searching
    done = CandidateFinished("r", number, "stopped", "cancelled", "def", 1, 0, 0, -0.1, 0.7)
    world.perform(world.driver.engine_event(done))
    candidate = world.run.candidates[number]
    assert candidate.started_s == pytest.approx(0.5 * BATCH + 0.6)
    assert candidate.finished_s == pytest.approx(0.5 * BATCH + 0.7)


def judged_at_the_end(world: World, best: int = 4) -> World:
    """A batch is written, and then judged: candidate ``best`` fails least."""
    while world.due:
        world.write()
    world.end_leg()
    for number in range(1, BATCH + 1):
        world.judge(FAIL if number == best else WORSE)
    return world


def test_repairs_say_whose_they_are_and_begin_with_the_best() -> None:
    world = judged_at_the_end(World(Budget(candidates=BATCH + 2), arms=(REPAIR,)))
    request = world.asked[1].request
    assert request.numbers == range(BATCH + 1, BATCH + 3)
    assert (request.prompt, request.turns) == ("write f", ())
    answer, asked = request.openings[BATCH + 1]
    assert "return 14" in answer.text
    assert "assert f() == 2" in asked.text
    assert "return 11" in request.openings[BATCH + 2][0].text  # another answer, not the same one again
    assert [world.run.candidates[n].origin.of for n in request.numbers] == [4, 1]
    world.play()
    assert world.run.result()["candidates"][-1]["origin"] == {"arm": REPAIR, "model": "Small", "of": 1}


def test_repairs_and_fresh_candidates_fill_one_batch() -> None:
    world = judged_at_the_end(World(Budget(candidates=BATCH * 2), arms=(FRESH, REPAIR)))
    request = world.asked[1].request
    arms = [world.run.candidates[number].origin.arm for number in request.numbers]
    assert set(arms) == {FRESH, REPAIR}
    assert arms == sorted(arms, key=lambda arm: arm == REPAIR)  # who reads nothing begins
    assert [number for number, arm in zip(request.numbers, arms, strict=True) if arm == REPAIR] == list(
        request.openings
    )
    corrected = [world.run.candidates[number].origin.of for number in request.openings]
    assert len(set(corrected)) == len(corrected)


def test_a_repair_joins_the_fresh_ones_that_are_being_written() -> None:
    world = World(Budget(candidates=40), arms=(FRESH, REPAIR))
    while not any(isinstance(message, Add) and message.opening for message in world.sent):
        world.judge() if world.tests else world.write()
    assert len(world.asked) == 1  # nobody waited for the batch to end
    repairs = [c for c in world.run.candidates.values() if c.origin.arm == REPAIR]
    assert repairs
    assert all(c.origin.of in world.run.candidates for c in repairs)
    world.play()
    assert sorted(world.run.candidates) == list(range(1, 41))


def test_a_completion_is_repaired_in_a_conversation_of_its_own() -> None:
    world = World(Budget(candidates=BATCH + 3), arms=(REPAIR,), request=Request("def f():", 7, mode="completion"))
    judged_at_the_end(world)
    request = world.asked[1].request
    assert request.mode == "chat"
    assert request.openings == {}
    assert {world.run.candidates[n].origin for n in request.numbers} == {Origin(REPAIR, "Small", 4)}


def test_the_record_tells_what_every_candidate_was_asked() -> None:
    """So a replay of the record gives the same candidates: a text depends on what is asked, seed and number alone."""
    world = World(Budget(candidates=60), (SMALL, LARGE), (FRESH, "told", REPAIR))
    asked: dict[int, Request] = {}
    seen = 0
    while not world.driver.over:
        if world.tests:
            world.judge()
        elif world.due:
            world.write()
        elif world.engine_runs:
            world.end_leg()
        for message in world.sent[seen:]:  # as the engine understands them
            if isinstance(message, Generate):
                leg, last = message.request, message.request.numbers[-1]
                asked |= {number: leg.asked_of(number) for number in leg.numbers}
            elif isinstance(message, Add) and world.engine_runs:
                for number in range(last + 1, last + 1 + message.count):
                    openings = {number: message.opening} if message.opening else {}
                    asked[number] = replace(leg, openings=openings).asked_of(number)
                last += message.count
        seen = len(world.sent)
    kept = json.loads(json.dumps(world.run.decisions))

    def said(request: Request) -> tuple[object, ...]:
        return request.prompt, request.turns, request.seed, request.system, request.speculation

    assert sorted(world.run.candidates) == list(range(1, 61))
    for number in world.run.candidates:
        found = asked_of(kept, number)
        assert found is not None
        assert said(found) == said(asked[number])
        assert found.sampling_of(number) == asked[number].sampling_of(number)
    assert {c.origin.arm for c in world.run.candidates.values()} >= {FRESH, REPAIR}


def test_a_repair_that_came_too_late_is_not_recorded() -> None:
    world = World(Budget(candidates=40), arms=(FRESH, REPAIR))
    while not any(isinstance(message, Add) and message.opening for message in world.sent):
        world.judge() if world.tests else world.write()
    late = max(world.run.candidates)
    assert world.search.decisions[-1].joins
    world.end_leg()  # the engine had just ended the run
    while world.tests:
        world.judge()
    assert not any(decision.joins and late in decision.request.numbers for decision in world.search.decisions)
    world.play()
    assert sorted(world.run.candidates) == list(range(1, 41))


def test_the_next_model_is_loaded_and_asked_when_the_first_does_not_get_there() -> None:
    world = World(Budget(candidates=200, seconds=1e6), (SMALL, LARGE), (FRESH, "larger model"))
    while not any(isinstance(message, Load) for message in world.sent):
        if world.tests:
            world.judge()
        elif world.due:
            world.write()
        else:
            world.end_leg()
    assert world.sent[-1] == Load(LARGE.choice)
    assert not world.driver.over
    ready = Ready("Large", "cpu", "int8", 4096)
    world.perform(world.driver.engine_event(ready))
    number = world.asked[-1].request.first_candidate
    assert world.run.candidates[number].origin == Origin(FRESH, "Large")
    assert world.driver.legs[-1].provenance.choice == LARGE.choice
    assert world.asked[-1].request.prompt == "write f"


def test_a_model_that_cannot_be_loaded_is_given_up_and_the_old_one_goes_on() -> None:
    world = World(Budget(candidates=200, seconds=1e6), (SMALL, LARGE), (FRESH, "larger model"))
    while not any(isinstance(message, Load) for message in world.sent):
        world.judge() if world.tests else world.write() if world.due else world.end_leg()
    world.perform(world.driver.engine_event(LoadFailed("too large")))
    assert world.sent[-1] == Load(SMALL.choice)
    world.perform(world.driver.engine_event(Ready("Small", "cpu", "int8", 4096)))
    asked = len(world.asked)
    world.play(most=5000)
    assert [message for message in world.sent if message == Load(LARGE.choice)] == [Load(LARGE.choice)]
    assert [decision.request for decision in world.search.decisions] == [message.request for message in world.asked]
    assert all(c.origin.model == "Small" for c in world.run.candidates.values())
    assert asked > 1


def test_stop_while_a_model_loads_ends_the_search() -> None:
    world = World(Budget(candidates=200, seconds=1e6), (SMALL, LARGE), (FRESH, "larger model"))
    while not any(isinstance(message, Load) for message in world.sent):
        world.judge() if world.tests else world.write() if world.due else world.end_leg()
    assert world.driver.stop() == [Cancel()]
    assert world.driver.engine_event(LoadFailed("cancelled", cancelled=True)) == []
    assert world.driver.over


def waits_for_the_larger_model(budget: Budget | None = None) -> World:
    """Nobody has answered yet whether it may be loaded, or it is being loaded."""
    budget = budget or Budget(candidates=200, seconds=1e6)
    world = World(budget, (SMALL, LARGE), (FRESH, "larger model"))
    while not any(isinstance(message, Load) for message in world.sent):
        world.judge() if world.tests else world.write() if world.due else world.end_leg()
    return world


@pytest.mark.parametrize("late", [READY, LoadFailed("The user did not want it."), None])
def test_more_are_written_before_a_larger_model_is_asked(late: Ready | LoadFailed | None) -> None:
    world = waits_for_the_larger_model()
    first = max(world.run.candidates) + 1
    decisions = list(world.search.decisions)
    world.perform(world.driver.more(2))
    assert world.asked[-1].request.numbers == range(first, first + 2)
    assert [decision.request for decision in decisions[:-1]] == [d.request for d in world.search.decisions]
    if late is not None:  # the question of before is answered, or its load ends
        assert world.driver.engine_event(late) == []
    while world.due or world.tests:
        world.judge() if world.tests else world.write()
    world.end_leg()
    assert world.sent[-1] == Load(LARGE.choice)  # it thinks again
    world.perform(world.driver.engine_event(READY))
    numbers = world.asked[-1].request.numbers
    assert numbers.start == max(n for n, c in world.run.candidates.items() if c.ended) + 1
    world.play(most=5000)
    assert sorted(world.run.candidates) == list(range(1, 201))


def test_more_than_can_be_leaves_the_larger_model_waiting() -> None:
    world = waits_for_the_larger_model()
    with pytest.raises(BadRequest):
        world.driver.more(1000)
    world.perform(world.driver.engine_event(READY))
    assert world.run.candidates[world.asked[-1].request.first_candidate].origin == Origin(FRESH, "Large")


def test_the_time_ends_while_a_larger_model_is_waited_for() -> None:
    world = waits_for_the_larger_model(Budget(candidates=200, seconds=100.0))
    world.now = 10.0 + 99.9
    assert world.driver.tick() == []
    world.now = 10.0 + 100.0
    assert world.driver.tick() == [Cancel()]
    assert world.driver.over


@pytest.mark.parametrize("answer", [READY, LoadFailed("no room")])
def test_a_model_that_comes_when_the_time_is_up_is_asked_nothing(answer: Ready | LoadFailed) -> None:
    world = waits_for_the_larger_model(Budget(candidates=200, seconds=100.0))
    asked, decisions = len(world.asked), len(world.run.decisions)
    world.now = 10.0 + 100.0
    world.perform(world.driver.engine_event(answer))
    assert world.driver.over
    assert (len(world.asked), len(world.run.decisions)) == (asked, decisions)
    assert not isinstance(world.sent[-1], Cancel)  # nothing is under way


def test_a_run_that_fails_is_the_end() -> None:
    world = World()
    world.write()
    world.judge()
    world.end_leg("failed")
    assert world.driver.over
    assert len(world.asked) == 1


@pytest.mark.parametrize("arms", [(FRESH, REPAIR), (FRESH, REPAIR, "told")])
def test_every_decision_is_recorded_with_what_it_was_made_from_and_reads_back(arms: tuple[str, ...]) -> None:
    world = World(Budget(candidates=BATCH * 3), arms=arms)
    world.play()
    decisions = world.search.decisions
    assert [d.request for d in decisions if not d.joins] == [message.request for message in world.asked]
    assert all(set(d.considered.values()) for d in decisions[1:] if not d.joins)
    assert any(d.joins or d.origins for d in decisions)
    assert [Decision.from_dict(d.to_dict()) for d in decisions] == [
        replace(d, at_s=round(d.at_s, 3)) for d in decisions
    ]


def test_a_range_of_temperatures_is_walked_by_the_candidates_number() -> None:
    warm, cool = Sampling(temperature=1.0), Sampling(temperature=0.2)
    request = Search(Budget(candidates=20), (SMALL,)).first(Request("p", 7, 2, overrides={1: cool, 2: warm}))
    assert [request.sampling_of(n).temperature for n in (1, 2, 3, 20)] == [0.2, 1.0, 0.2, 1.0]


@pytest.mark.parametrize("bad", [(0, 1.0), (-1, 1.0), (10_001, 1.0), (8, 0.0), (8, float("nan")), (8, float("inf"))])
def test_budgets_that_cannot_be(bad: tuple[int, float]) -> None:
    with pytest.raises(BadRequest):
        Budget(*bad)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_whatever_happens_budgets_hold_and_no_candidate_is_lost(data: st.DataObject) -> None:
    """Verdicts, ends, lost Adds, Stop and time in any order, with every arm."""
    budget = Budget(data.draw(st.integers(1, 40)), data.draw(st.floats(0.5, 60)))
    world = World(budget, (SMALL, LARGE), (FRESH, "told", REPAIR, "larger model"))
    written = more = 0
    for _ in range(data.draw(st.integers(0, 120))):
        loading = bool(world.sent) and isinstance(world.sent[-1], Load) and not world.driver.over
        actions = ["write", "write", "judge", "judge", "end", "time", "load", "stop", "more"]
        match data.draw(st.sampled_from(actions)):
            case "write" if world.due:
                world.write(0.1)
                written += 1
            case "judge" if world.tests:
                world.judge(data.draw(st.sampled_from([FAIL, FAIL, FAIL, WORSE, PASS])))
            case "end" if world.engine_runs and (not world.due or world.run.state == "stopping"):
                world.end_leg("stopped" if world.run.state == "stopping" else "finished")
            case "time":
                world.now += 1.0
                world.perform(world.driver.tick())
            case "load" if loading:
                world.perform(world.driver.engine_event(data.draw(st.sampled_from([READY, LoadFailed("no room")]))))
            case "stop" if data.draw(st.integers(0, 9)) == 0:
                world.perform(world.driver.stop())
            case "more" if world.driver.searching and world.run.state != "stopping":
                world.perform(world.driver.more(1))
                more += 1
        assert len(world.run.candidates) <= budget.candidates + more
        assert sum(c.ended and c.text != "" for c in world.run.candidates.values()) == written
        if world.now - 10.0 > budget.seconds + 1.0:
            assert not world.driver.searching
    numbers = sorted(world.run.candidates)
    assert numbers == list(range(1, len(numbers) + 1))


def test_tests_that_never_give_a_verdict_end_the_search_and_are_told_of() -> None:
    world = World(arms=(FRESH,))
    nothing = Report("infra", "split", "Your tests do not load.")
    for _ in range(2):
        world.write()
        world.judge(nothing)
    assert world.driver.searching  # two may be an accident
    world.write()
    test = world.tests.pop(0)
    effects = world.driver.runner_answer(TestFinished(test.id, nothing))
    assert effects[:2] == [RefusedTests("Your tests do not load."), Cancel("r")]
    assert not world.driver.searching


def test_one_verdict_says_that_tests_work() -> None:
    world = World(arms=(FRESH,))
    world.write()
    world.judge(FAIL)
    for _ in range(4):
        world.write()
        world.judge(Report("infra", "split", "The runner ended."))
    assert world.driver.searching
