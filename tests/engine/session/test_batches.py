"""Who fills a batch: every row goes to what is likeliest once all others have failed."""

import pytest

from engine.contract import BadRequest, CandidateFinished, Generate, ModelChoice, Request, RunFinished
from engine.session.arms import BATCH, FRESH, REPAIR, Model, Outlook, chance_of
from engine.session.batches import fill, next_to_correct, repairs_of_each
from engine.session.candidate import Origin
from engine.session.driver import RunDriver
from engine.session.effects import TestPolicy
from engine.session.run import Run
from engine.session.search import asked_of
from tests.engine.session.test_arms import ASSERT, a_run, failing

SMALL = Model(ModelChoice("s"), "Small")


def outlook(run: Run) -> Outlook:
    return Outlook(run, run.request, (SMALL,), 0, 1.0, 64)


def arms_of(origins: list[Origin]) -> list[str]:
    return [origin.arm for origin in origins]


def test_each_row_goes_to_the_likeliest_arm_once_all_before_it_failed() -> None:
    fresh, repair = chance_of(FRESH, "Small"), chance_of(REPAIR, "Small")
    got = fill(outlook(a_run(*[failing()] * 4)), 6)
    failed, planned = 4, {FRESH: 0, REPAIR: 0}
    for _ in range(6):
        arm = FRESH if fresh.after(failed + planned[FRESH]) >= repair.after(planned[REPAIR]) else REPAIR
        planned[arm] += 1
    assert {arm: arms_of(got).count(arm) for arm in (FRESH, REPAIR)} == planned
    assert planned[FRESH] > 0 < planned[REPAIR]
    assert arms_of(got) == [FRESH] * planned[FRESH] + [REPAIR] * planned[REPAIR]


def test_what_is_still_being_written_counts_as_failed() -> None:
    run = a_run(*[failing()] * 2, *[None] * 6)
    assert arms_of(fill(outlook(run), 1)) == [REPAIR]
    assert arms_of(fill(outlook(a_run(failing())), 1)) == [FRESH]


def test_one_arm_alone() -> None:
    run = a_run(*[failing()] * 8)
    assert set(arms_of(fill(outlook(run), 8, (FRESH,)))) == {FRESH}
    assert set(arms_of(fill(outlook(run), 8, (REPAIR,)))) == {REPAIR}
    assert fill(outlook(a_run(None)), 8, (REPAIR,)) == []


def test_repairs_go_round_the_answers_and_begin_with_the_best() -> None:
    run = a_run(failing(), failing(passed=2), failing(passed=1))
    assert [origin.of for origin in fill(outlook(run), 7, (REPAIR,))] == [2, 3, 1, 2, 3, 1, 2]


def test_answers_with_the_same_code_are_one() -> None:
    run = a_run(failing(passed=1), failing(passed=1), same=True)
    assert [origin.of for origin in fill(outlook(run), 3, (REPAIR,))] == [1, 1, 1]


def test_one_answer_is_corrected_so_often_and_no_more() -> None:
    run = a_run(failing())
    assert len(fill(outlook(run), 3 * BATCH, (REPAIR,))) == BATCH
    for number in range(2, 2 + BATCH):
        run.apply(CandidateFinished("r", number, "done", "stop", f"```\nx = {number}\n```", 5, 0, 0, -0.1, 1.0))
        run.candidates[number].origin = Origin(REPAIR, "Small", 1)
    assert next_to_correct(run) is None


@pytest.mark.parametrize("reports", [[], [None, None]])
def test_nothing_to_correct(reports: list[None]) -> None:
    assert next_to_correct(a_run(*reports, request=Request("p", 7, 1))) is None


def ended(run: Run) -> Run:
    run.apply(RunFinished("r", "finished"))
    return run


def test_all_that_failed_are_repaired_as_one_batch_of_a_run_that_has_ended() -> None:
    run = ended(a_run(failing(), failing("assert f(2) == 3", passed=1)))
    driver = RunDriver(run, TestPolicy)
    (asked,) = driver.repair_each(4, seed=99)
    assert isinstance(asked, Generate)
    request = asked.request
    assert (request.prompt, request.seed, request.numbers) == ("write f", 99, range(3, 7))
    assert [run.candidates[number].origin.of for number in request.numbers] == [2, 1, 2, 1]
    answer, told = request.openings[3]
    assert "return 2" in answer.text
    assert "assert f(2) == 3" in told.text
    kept = asked_of(run.decisions, 4)
    assert kept is not None
    assert kept == request.asked_of(4)
    assert ASSERT in kept.prompt


def test_where_nothing_failed_there_is_nothing_to_repair() -> None:
    run = ended(a_run(None, None))
    with pytest.raises(BadRequest):
        repairs_of_each(run, 8, 1)


def test_answers_of_a_completion_are_no_batch() -> None:
    run = ended(a_run(failing(), failing(), request=Request("def f(x):", 7, 2, mode="completion")))
    with pytest.raises(BadRequest, match="chat mode"):
        repairs_of_each(run, 8, 1)
