"""What follows after what in a run; the clock is moved by hand, and the engine and the runner are lists of events."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.contract import (
    Add,
    BadRequest,
    Cancel,
    CandidateFinished,
    Generate,
    Request,
    RunFinished,
    RunStarted,
    TextAdded,
)
from engine.runner.protocol import (
    CancelTests,
    ConsentNeeded,
    Isolation,
    RunTests,
    TestFinished,
    TestProgress,
    TestStarted,
)
from engine.runner.report import Report, TestResult
from engine.session.driver import RunDriver
from engine.session.effects import ConsentQuestion, Effect, FirstPass, RefusedTests, TestPolicy
from engine.session.run import Run

PASS, FAIL = Report("pass", "split"), Report("fail", "split", why="assert 1 == 2")
TESTS = "assert f() == 1"
BY_HAND, AS_FINISHED = TestPolicy(), TestPolicy(as_finished=True)
UNTIL_PASS = TestPolicy(stop_at_first_pass=True)


@dataclass
class Desk:
    """A run's driver with everything around it that a test moves by hand."""

    count: int = 3
    policy: TestPolicy = AS_FINISHED
    tests: str = TESTS
    consents: set[str] = field(default_factory=set)
    now: float = 100.0

    def __post_init__(self) -> None:
        self.run = Run("r", Request("write f", 7, self.count), self.tests)
        self.driver = RunDriver(
            self.run,
            lambda: self.policy,
            tests=lambda: self.tests,
            consents=self.consents,
            environment="/env",
            clock=lambda: self.now,
        )
        self.begun = self.driver.begin()

    def ends(self, number: int, code: str = "", state: str = "done") -> list[Effect]:
        text = code or f"```python\ndef f(): return {number}\n```"
        return self.driver.engine_event(CandidateFinished("r", number, state, "end", text, 5, 0, 0, -0.1, 1.0))

    def engine_ends(self, outcome: str = "finished") -> list[Effect]:
        return self.driver.engine_event(RunFinished("r", outcome))

    def judged(self, test: Effect, report: Report = PASS) -> list[Effect]:
        assert isinstance(test, RunTests)
        return self.driver.runner_answer(TestFinished(test.id, report))

    def states(self) -> list[str]:
        return [self.run.candidates[n].test_state for n in sorted(self.run.candidates)]


def only(effects: list[Effect]) -> RunTests:
    (test,) = effects
    assert isinstance(test, RunTests)
    return test


def test_a_run_begins_with_one_leg() -> None:
    desk = Desk()
    assert desk.begun == [Generate("r", desk.run.request)]
    assert [leg.request for leg in desk.driver.legs] == [desk.run.request]


def test_a_candidate_is_tested_the_moment_it_finishes() -> None:
    desk = Desk()
    assert desk.driver.engine_event(RunStarted("r", 5, (1, 2, 3), 7)) == []
    assert desk.driver.engine_event(TextAdded("r", 2, "```python\ndef f", 3, 0.1)) == []
    test = only(desk.ends(2))
    assert (test.solution, test.tests, test.environment) == ("def f(): return 2\n", TESTS, "/env")
    assert (test.consent, test.same_process) == (False, False)
    assert desk.states() == ["not run", "queued", "not run"]


def test_by_hand_nothing_is_tested_until_the_user_asks_and_then_the_whole_run() -> None:
    desk = Desk(policy=BY_HAND)
    assert desk.ends(1) == []
    assert len(desk.driver.run_tests()) == 1
    assert len(desk.ends(2)) == 1  # asked for in mid-run, it means all of this run
    assert len(desk.ends(3)) == 1


def test_what_the_user_switches_on_holds_for_candidates_that_ended_before() -> None:
    desk = Desk(policy=BY_HAND)
    desk.ends(1)
    assert desk.driver.policy_changed() == []
    desk.policy = AS_FINISHED
    assert len(desk.driver.policy_changed()) == 1


def test_the_verdicts_time_counts_from_the_beginning_of_the_run() -> None:
    desk = Desk(now=50.0)
    test = only(desk.ends(1))
    desk.now = 52.5
    desk.judged(test)
    assert desk.run.first_passing_s == 2.5


def test_progress_moves_the_candidates_count() -> None:
    desk = Desk(count=1)
    test = only(desk.ends(1))
    desk.driver.runner_answer(TestStarted(test.id, 2))
    desk.driver.runner_answer(TestProgress(test.id, TestResult("a", "passed")))
    assert desk.run.candidates[1].tests_label == "running 1 of 2"


def test_a_first_pass_ends_the_run_and_is_told() -> None:
    desk = Desk(policy=UNTIL_PASS)
    wrong, right = only(desk.ends(1)), only(desk.ends(2))
    assert desk.judged(wrong, FAIL) == []
    assert desk.judged(right) == [Cancel("r"), FirstPass(2, stopped=True)]
    assert desk.ends(3, state="stopped") == []  # what a stop cuts off is not tested
    desk.engine_ends("stopped")
    assert desk.driver.over


def test_a_second_pass_stops_nothing_more() -> None:
    desk = Desk(policy=UNTIL_PASS)
    first, second = only(desk.ends(1)), only(desk.ends(2))
    desk.judged(first)
    assert desk.judged(second) == [FirstPass(2, stopped=False)]


def test_a_pass_after_the_end_stops_nothing() -> None:
    desk = Desk(count=1, policy=UNTIL_PASS)
    test = only(desk.ends(1))
    desk.engine_ends()
    assert desk.judged(test) == [FirstPass(1, stopped=False)]


def test_a_soft_pass_is_no_first_pass() -> None:
    desk = Desk(policy=UNTIL_PASS)
    assert desk.judged(only(desk.ends(1)), Report("pass-soft", "split")) == []


def test_stop_ends_the_run_and_every_test() -> None:
    desk = Desk()
    first, second = only(desk.ends(1)), only(desk.ends(2))
    desk.judged(first, FAIL)
    assert desk.driver.stop() == [Cancel("r"), CancelTests(second.id)]
    assert desk.states() == ["failed", "not run", "not run"]
    assert desk.ends(3, state="stopped") == []
    assert desk.driver.stop()[0] == Cancel("r")  # asked for again, it is said again
    desk.engine_ends("stopped")
    assert desk.driver.stop() == []


def test_the_last_words_of_a_cancelled_test_are_no_verdict() -> None:
    desk = Desk(count=1)
    test = only(desk.ends(1))
    assert desk.driver.cancel_tests() == [CancelTests(test.id)]
    again = only(desk.driver.run_tests())
    assert again.id != test.id
    desk.judged(test, FAIL)
    assert desk.states() == ["queued"]
    desk.judged(again)
    assert desk.states() == ["passed"]


def test_other_tests_void_verdicts_and_end_what_is_on_its_way() -> None:
    desk = Desk(policy=BY_HAND)
    desk.ends(1)
    desk.ends(2)
    first, second = desk.driver.run_tests()
    desk.judged(first, FAIL)
    desk.tests = "assert f() == 2"
    assert isinstance(second, RunTests)
    cancelled, *tests = desk.driver.run_tests()
    assert cancelled == CancelTests(second.id)
    assert [test.tests for test in tests if isinstance(test, RunTests)] == ["assert f() == 2"] * 2
    desk.judged(second)
    assert desk.states() == ["queued", "queued", "not run"]


def test_tests_that_cannot_be_used_are_refused_once_and_again_when_asked() -> None:
    desk = Desk()
    desk.tests = "assert f( =="
    (refused,) = desk.ends(1)
    assert isinstance(refused, RefusedTests)
    assert refused.sentence.startswith("Your tests do not parse: line 1")
    assert desk.ends(2) == []
    assert desk.driver.run_tests() == [refused]
    assert desk.states() == ["not run"] * 3
    desk.tests = TESTS
    assert len(desk.ends(3)) == 3


def test_tests_that_could_never_be_used_are_refused_as_well() -> None:
    desk = Desk(tests="assert f( ==")
    (refused,) = desk.ends(1)
    assert isinstance(refused, RefusedTests)
    assert desk.ends(2) == []


def test_consent_is_asked_once_for_all_that_wait() -> None:
    desk = Desk()
    first, second = only(desk.ends(1)), only(desk.ends(2))
    asked = desk.driver.runner_answer(ConsentNeeded(first.id, "No sandbox."))
    assert asked == [ConsentQuestion("consent", "No sandbox.")]
    assert desk.driver.runner_answer(ConsentNeeded(second.id, "No sandbox.")) == []
    again = desk.driver.answer_consent(given=True)
    assert [(test.consent, test.same_process) for test in again if isinstance(test, RunTests)] == [(True, False)] * 2
    assert only(desk.ends(3)).consent
    assert desk.consents == {"consent"}


def test_a_candidate_that_asks_after_the_user_has_agreed_is_tested_at_once() -> None:
    desk = Desk()
    test = only(desk.ends(1))
    desk.consents.add("same_process")
    again = only(desk.driver.runner_answer(ConsentNeeded(test.id, "They share.", "same_process")))
    assert again.same_process


def test_without_consent_nothing_is_tested_until_the_user_asks() -> None:
    desk = Desk()
    test = only(desk.ends(1))
    desk.driver.runner_answer(ConsentNeeded(test.id, "No sandbox."))
    desk.driver.answer_consent(given=False)
    assert desk.ends(2) == []
    assert desk.states() == ["not run"] * 3
    assert len(desk.driver.run_tests()) == 2


def test_a_yes_to_old_tests_tests_nobody_twice() -> None:
    desk = Desk(policy=BY_HAND)
    desk.ends(1)
    desk.driver.runner_answer(ConsentNeeded(only(desk.driver.run_tests()).id, "No sandbox."))
    desk.tests = "assert f() == 2"
    assert [type(effect) for effect in desk.driver.run_tests()] == [CancelTests, RunTests]
    assert desk.driver.answer_consent(given=True) == []


def test_isolation_and_answers_of_other_runs_change_nothing() -> None:
    desk = Desk(count=1)
    desk.ends(1)
    assert desk.driver.runner_answer(Isolation(True)) == []
    assert desk.driver.runner_answer(TestFinished("other/1/1", PASS)) == []
    assert desk.states() == ["queued"]


def test_corrections_join_a_run_with_its_budget_of_time() -> None:
    desk = Desk(count=2)
    desk.run.request = replace(desk.run.request, time_budget_s=30.0)
    for number in (1, 2):
        desk.judged(only(desk.ends(number)), FAIL)
    desk.engine_ends()
    (generate,) = desk.driver.repair(2, 4, seed=9)
    assert isinstance(generate, Generate)
    request = generate.request
    assert (request.numbers, request.seed, request.time_budget_s) == (range(3, 7), 9, 30.0)
    assert {desk.run.candidates[number].origin.of for number in request.numbers} == {2}


def test_more_joins_a_run_that_goes_on_and_reopens_one_that_ended() -> None:
    desk = Desk(count=2)
    assert desk.driver.more(2) == [Add("r", 2)]
    for number in range(1, 5):
        desk.ends(number)
    desk.engine_ends()
    (generate,) = desk.driver.more(1)
    assert isinstance(generate, Generate)
    assert generate.request.numbers == range(5, 6)
    assert len(desk.driver.legs) == 2
    with pytest.raises(BadRequest):
        desk.driver.more(1000)
    assert not desk.driver.over


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_nothing_is_lost_and_nothing_is_judged_twice_whatever_the_order(data: st.DataObject) -> None:
    """Ends, verdicts, questions, Stop, other tests and Run tests in any order."""
    policy = data.draw(st.sampled_from([BY_HAND, AS_FINISHED, UNTIL_PASS]))
    desk = Desk(count=data.draw(st.integers(1, 4)), policy=policy)
    due = list(range(1, desk.count + 1))
    on_way: dict[str, RunTests] = {}
    asked: list[ConsentQuestion] = []

    def perform(effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, RunTests):
                assert effect.id not in on_way
                assert desk.run.number_of(effect.id) is not None
                on_way[effect.id] = effect
            elif isinstance(effect, CancelTests):
                on_way.pop(effect.id, None)
            elif isinstance(effect, ConsentQuestion):
                asked.append(effect)

    for _ in range(data.draw(st.integers(0, 25))):
        match data.draw(st.sampled_from(["end", "verdict", "verdict", "consent", "answer", "tests", "run", "stop"])):
            case "end" if due:
                state = "stopped" if desk.run.state == "stopping" else "done"
                perform(desk.ends(due.pop(0), state=state))
            case "verdict" if on_way:
                test = on_way.pop(data.draw(st.sampled_from(sorted(on_way))))
                perform(desk.judged(test, data.draw(st.sampled_from([PASS, FAIL]))))
            case "consent" if on_way:
                test = on_way.pop(data.draw(st.sampled_from(sorted(on_way))))
                perform(desk.driver.runner_answer(ConsentNeeded(test.id, "No sandbox.")))
            case "answer" if asked:
                asked.pop()
                perform(desk.driver.answer_consent(data.draw(st.booleans())))
            case "tests":
                desk.tests = data.draw(st.sampled_from([TESTS, "assert f() == 2", "assert ("]))
            case "run":
                perform(desk.driver.run_tests())
            case "stop":
                perform(desk.driver.stop())
        in_test = {n for n, c in desk.run.candidates.items() if c.test_state in ("queued", "running")}
        covered = {desk.run.number_of(id) for id in on_way}
        assert covered <= in_test  # every test that is on its way counts, and none for a candidate that has a verdict
        if not asked:
            assert covered == in_test
    while due:
        perform(desk.ends(due.pop(0), state="stopped" if desk.run.state == "stopping" else "done"))
    perform(desk.engine_ends("stopped" if desk.run.state == "stopping" else "finished"))
    while asked or on_way:
        if asked:
            asked.pop()
            perform(desk.driver.answer_consent(given=True))
        for id in sorted(on_way):
            if id in on_way:
                perform(desk.judged(on_way.pop(id), FAIL))
    assert desk.driver.over
    assert all(c.ended for c in desk.run.candidates.values())
