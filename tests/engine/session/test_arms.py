"""What each way of going on expects and asks for, and which comes first."""

import pytest

from engine.contract import CandidateFinished, ModelChoice, Request, Sampling
from engine.runner.report import Report, TestResult
from engine.session.arms import (
    ARMS,
    FRESH,
    LARGER,
    REPAIR,
    SHOWN_TEST,
    Model,
    Outlook,
    Proposal,
    best_failing,
    proposals,
)
from engine.session.candidate import Origin
from engine.session.run import Run

SMALL, LARGE = Model(ModelChoice("s"), "Small"), Model(ModelChoice("l"), "Large", speed=3.0, load_s=20.0)
ASSERT = "assert f(1) == 2"


def failing(why: str = ASSERT, passed: int = 0) -> Report:
    tests = [TestResult(str(n), "passed") for n in range(passed)]
    return Report("fail", "split", why, (*tests, TestResult("last", "failed", why)))


def a_run(*reports: Report | None, request: Request | None = None, same: bool = False) -> Run:
    """One candidate for each report, all of them fresh ones of the small model."""
    run = Run("r", request or Request("write f", 7, len(reports)), "assert f(1) == 2")
    for number, report in enumerate(reports, 1):
        text = f"```python\ndef f(x): return {0 if same else number}\n```"
        run.apply(CandidateFinished("r", number, "done", "stop", text, 5, 0, 0, -0.1, 1.0))
        run.candidates[number].origin = Origin(FRESH, "Small")
        if report is not None:
            run.queue_test(number)
            run.record(number, report, 1.0)
    return run


def outlook(run: Run, seconds: float = 2.0) -> Outlook:
    return Outlook(run, run.request, (SMALL, LARGE), 0, seconds, 8)


def one(arm: str, now: Outlook) -> Proposal:
    (proposal,) = ARMS[arm](now)
    return proposal


def test_every_failure_lowers_what_is_expected() -> None:
    chances = [one(FRESH, outlook(a_run(*[failing()] * count))).chance for count in (1, 2, 8)]
    assert chances == sorted(chances, reverse=True)
    assert len(set(chances)) == 3


def test_who_has_no_verdict_yet_has_not_failed() -> None:
    run = a_run(failing(), None, None)
    assert outlook(run).failed(FRESH, "Small") == 1
    assert outlook(run).failed(FRESH, "Large") == 0


def test_a_model_that_is_not_loaded_is_paid_for() -> None:
    larger = one(LARGER, outlook(a_run(failing())))
    assert (larger.seconds, larger.load_s) == (6.0, 20.0)
    assert larger.worth == pytest.approx((1 - (1 - larger.chance) ** 8) / (20.0 + 8 * 6.0))


def test_the_best_comes_first_even_where_no_time_has_passed() -> None:
    for seconds in (2.0, 0.0):
        found = proposals(outlook(a_run(failing(), failing()), seconds))
        assert {proposal.origin.arm for proposal in found} == {FRESH, SHOWN_TEST, REPAIR}
        assert [p.worth for p in found] == sorted((p.worth for p in found), reverse=True)


def test_told_is_the_assert_that_most_failed_whatever_its_values() -> None:
    other = "assert f(2) == 3, where f(2) gave 9"
    run = a_run(failing(other), failing(f"{ASSERT}, where f(1) gave 5"), failing(f"{ASSERT}, where f(1) gave 6"))
    prompt = one(SHOWN_TEST, outlook(run)).request.prompt
    assert ASSERT in prompt
    assert "gave" not in prompt
    assert "f(2)" not in prompt


def test_a_completion_is_not_told_anything() -> None:
    run = a_run(failing(), request=Request("def f(x):", 7, 1, mode="completion", sampling=Sampling()))
    assert list(ARMS[SHOWN_TEST](outlook(run))) == []


def test_what_is_like_a_corrected_one_is_not_corrected_again() -> None:
    run = a_run(failing(passed=2), failing(passed=2), same=True)
    assert run.candidates[2].group == run.candidates[1].group
    assert best_failing(run) is run.candidates[1]
    run.candidates[2].origin = Origin(REPAIR, "Small", 1)
    assert best_failing(run) is None
