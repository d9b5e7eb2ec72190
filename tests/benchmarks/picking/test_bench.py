from collections.abc import Callable, Iterator
from functools import partial

import pytest

from benchmarks.picking.bench import Bench
from engine.contract import BasslineError, ModelChoice, Request
from engine.scripted import Script, ScriptedCandidate, ScriptedEngine
from tests.benchmarks.picking.stand_ins import RIGHT, WRONG, ReadingRunner, engine

TESTS = "assert add(1, 2) == 3"
Open = Callable[..., Bench]


@pytest.fixture
def open_bench() -> Iterator[Open]:
    opened: list[Bench] = []

    def open_(played: ScriptedEngine, **runner: object) -> Bench:
        opened.append(Bench({"ours": played}, ModelChoice(), partial(ReadingRunner, **runner), rest_s=0.0))
        return opened[-1]

    yield open_
    for bench in opened:
        bench.close()


def test_the_clock_runs_to_the_verdict_and_not_to_the_text(open_bench):
    bench = open_bench(engine((WRONG, 2), (RIGHT, 8)), seconds=0.2)
    trial = bench.trial("ours", Request("add", 0, 2, goal="first"), TESTS)
    wrong, right = trial.outcomes
    assert [wrong.verdict, right.verdict] == ["fail", "pass"]
    assert wrong.finished_s < right.finished_s
    assert trial.first_pass_s >= right.finished_s + 0.2
    assert trial.ended_s >= trial.first_pass_s


def test_a_candidate_is_tested_while_others_are_still_written(open_bench):
    bench = open_bench(engine((RIGHT, 2), (WRONG, 60)))
    trial = bench.trial("ours", Request("add", 0, 2), TESTS)
    assert trial.first_pass_s < trial.outcomes[1].finished_s
    assert trial.width == 2


def test_the_side_that_writes_in_turn_is_stopped_by_a_pass(open_bench):
    bench = open_bench(engine((RIGHT, 2), (WRONG, 60), step_s=0.02))
    trial = bench.trial("ours", Request("add", 0, 2), TESTS, stop_at_pass=True)
    assert trial.ended_s < 1.0
    assert trial.first_pass_s is not None
    assert [outcome.verdict for outcome in trial.outcomes] == ["pass"]  # what it was still writing is no answer


def test_none_passed_is_none_however_long_it_took(open_bench):
    trial = open_bench(engine((WRONG, 2), (WRONG + "\n", 4))).trial("ours", Request("add", 0, 2), TESTS)
    assert trial.first_pass_s is None
    assert trial.ended_s > trial.outcomes[1].finished_s


def test_the_same_code_is_tested_once_and_counts_for_all_who_wrote_it(open_bench):
    bench = open_bench(engine((RIGHT, 2), ("Here you are.\n\n" + RIGHT, 6)))
    trial = bench.trial("ours", Request("add", 0, 2), TESTS)
    assert [outcome.verdict for outcome in trial.outcomes] == ["pass", "pass"]
    assert len(bench._runner.tested) == 1
    assert bench._runner.tested[0] == "def add(a, b):\n    return a + b\n"


def test_an_answer_without_code_is_no_pass_and_holds_nothing_up(open_bench):
    trial = open_bench(engine((" \n", 1), (RIGHT, 3))).trial("ours", Request("add", 0, 2), TESTS)
    assert [outcome.verdict for outcome in trial.outcomes] == ["", "pass"]


def test_tests_that_would_ask_a_person_count_as_not_passed(open_bench):
    trial = open_bench(engine((RIGHT, 2)), asks=True).trial("ours", Request("add", 0, 1), TESTS)
    assert [outcome.verdict for outcome in trial.outcomes] == ["needs-in-process"]
    assert trial.first_pass_s is None


def test_a_run_that_fails_is_no_figure(open_bench):
    script = Script((ScriptedCandidate(("a", "b", "c", "d", "e")),), step_s=0.0, run_failure="It broke.")
    with pytest.raises(BasslineError, match="It broke"):
        open_bench(ScriptedEngine(script)).trial("ours", Request("add", 0, 1), TESTS)


def test_a_model_that_does_not_load_is_said():
    played = ScriptedEngine(Script((), load_failure="No such model."))
    with pytest.raises(BasslineError, match="No such model"):
        Bench({"ours": played}, ModelChoice(), ReadingRunner, rest_s=0.0)


def test_verdicts_of_an_earlier_trial_do_not_reach_the_next(open_bench):
    bench = open_bench(engine((RIGHT, 2), (WRONG, 30)))
    bench.trial("ours", Request("add", 0, 2), TESTS, stop_at_pass=True)
    bench.forget("ours")
    trial = bench.trial("ours", Request("add", 0, 1, first_candidate=2), TESTS)
    assert trial.first_pass_s is None
    assert trial.n == 1
