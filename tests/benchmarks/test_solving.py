"""The benchmark of ways to a candidate that passes: on recorded answers and a runner that judges by reading."""

import json
from dataclasses import replace

import pytest

from benchmarks import solving
from benchmarks.humaneval_problems import Problem, split
from benchmarks.picking.bench import Bench
from benchmarks.picking.solved import difference, figures, print_tables, wilson
from benchmarks.picking.ways import EIGHT, LARGE, SMALL, WAYS, Attempt, Solver, Task
from benchmarks.solving import Attempts, measure, parse
from engine.contract import BasslineError, ModelChoice
from engine.session.arms import Model
from tests.benchmarks.picking.stand_ins import RIGHT, WRONG, ReadingRunner, engine

TASK = Task("add", "Write add.", "assert add(1, 2) == 3\n", "assert add(1, 2) == 3\nassert add(2, 2) == 4\n")
BY_NAME = {way.name: way for way in WAYS}
FRESH_ONLY = BY_NAME["0.5B: until one passes, fresh only"]
BY_HAND = BY_NAME["0.5B: eight, then one repair by hand"]
THEN_LARGE = BY_NAME["0.5B: until one passes, then 1.5B"]


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setattr("benchmarks.picking.bench.others_load", lambda: 0.0)


class JudgingRunner(ReadingRunner):
    """Solutions with ``int`` pass the user's tests and not those that only judge."""

    def test(self, test) -> None:
        unseen = "add(2, 2)" in test.tests
        super().test(replace(test, solution="") if unseen and "int" in test.solution else test)


@pytest.fixture
def open_solver(quiet):
    opened = []

    def open_(*small: str, large: str = RIGHT, cap_s: float = 20.0) -> Solver:
        played = {SMALL: _engine(small), LARGE: _engine((large,))}
        choices = {side: ModelChoice(side) for side in played}
        opened.append(Bench(played, choices, JudgingRunner, rest_s=0.0))
        ladder = [Model(choices[SMALL], SMALL), Model(choices[LARGE], LARGE, speed=2.0)]
        return Solver(opened[-1], choices, ladder, cap_s, 64)

    yield open_
    for bench in opened:
        bench.close()


def _engine(texts):
    return engine(*((text, 2 + at) for at, text in enumerate(texts)), step_s=0.001)


def _attempt(way=EIGHT, shown_s=None, solved=False, task="add", seed=0, candidates=8):
    return Attempt(task, way.name, seed, shown_s, solved, "", "", candidates, shown_s or 9.0, 0.0)


def test_half_of_the_asserts_are_the_users_and_the_rest_only_judge():
    asserts = [f"    assert candidate({n}) == {n}\n" for n in range(4)]
    problem = Problem("HumanEval/0", "same", "", "", "def check(candidate):\n" + "".join(asserts) + "check(same)\n")
    tests = split(problem)
    assert tests.user == "assert same(0) == 0\nassert same(2) == 2\n"
    assert tests.text == tests.user + "assert same(1) == 1\nassert same(3) == 3\n"


def test_the_first_candidate_that_passes_decides_and_the_unseen_tests_judge_it(open_solver):
    right = open_solver(WRONG, RIGHT).attempt(EIGHT, TASK, 0)
    assert (right.solved, right.candidates, right.within(20.0)) == (True, 8, True)
    only_shown = open_solver(WRONG, RIGHT.replace("(a, b)", "(a: int, b)")).attempt(EIGHT, TASK, 0)
    assert only_shown.shown_s is not None
    assert not only_shown.solved
    assert not only_shown.within(20.0)


def test_a_search_goes_on_where_eight_end(open_solver):
    late = [*[WRONG.replace("-", "-" + " " * n) for n in range(11)], RIGHT]
    solver = open_solver(*late)
    eight, more = solver.attempt(EIGHT, TASK, 0), solver.attempt(FRESH_ONLY, TASK, 0)
    assert eight.shown_s is None
    assert not eight.decided_by_eight
    assert more.solved
    assert more.candidates > 8
    assert more.arm == "fresh"


def test_a_repair_by_hand_counts_with_the_time_of_the_eight_before_it(open_solver):
    solver = open_solver(WRONG)
    eight, repaired = solver.attempt(EIGHT, TASK, 0), solver.attempt(BY_HAND, TASK, 0)
    assert eight.candidates == 8
    assert repaired.candidates == 8  # the runner that judges by reading tells no failing assert, so nothing to repair
    assert repaired.shown_s is None


def test_a_cap_ends_what_does_not_get_there(open_solver):
    solver = open_solver(WRONG, cap_s=0.05)
    given_up = solver.attempt(FRESH_ONLY, TASK, 0)
    assert given_up.shown_s is None
    assert given_up.ended_s < 5.0
    assert given_up.candidates < 128


def test_ways_that_begin_alike_are_not_run_again_where_the_eight_decide(open_solver, tmp_path, capsys):
    solver = open_solver(RIGHT)
    calls: list[str] = []
    tried = solver.attempt
    solver.attempt = lambda way, task, seed: calls.append(way.name) or tried(way, task, seed)
    options = parse(["--json", str(tmp_path / "out.json"), "--ways", EIGHT.name, FRESH_ONLY.name, THEN_LARGE.name])
    attempts = Attempts(tmp_path / "out.jsonl", resume=False)
    measure(options, [TASK], [EIGHT, FRESH_ONLY, THEN_LARGE], attempts, lambda *_: (solver, _Held(solver)))
    assert calls == [EIGHT.name]
    times = {attempt.shown_s for attempt in attempts.done.values()}
    assert len(attempts.done) == 3
    assert len(times) == 1
    again = Attempts(tmp_path / "out.jsonl", resume=True)
    assert again.done == attempts.done
    measure(options, [TASK], [EIGHT, FRESH_ONLY, THEN_LARGE], again, pytest.fail)  # nothing is missing
    with pytest.raises(BasslineError, match="--resume"):
        Attempts(tmp_path / "out.jsonl", resume=False)


class _Held:
    """A bench that the fixture closes."""

    def __init__(self, solver):
        self.isolation = solver._bench.isolation

    def close(self) -> None:
        pass


def test_what_was_measured_on_a_busy_machine_is_measured_again(tmp_path):
    attempts = Attempts(tmp_path / "out.jsonl", resume=False)
    attempts.add(replace(_attempt(), others=1.0))
    assert attempts.lacks(TASK, EIGHT, 0)
    attempts.add(_attempt())
    assert not attempts.lacks(TASK, EIGHT, 0)


def test_shares_are_of_solved_attempts_in_time_with_wilsons_interval():
    attempts = [_attempt(shown_s=3.0, solved=True), _attempt(shown_s=3.0, task="b"), _attempt(task="c")]
    attempts += [_attempt(shown_s=20.0, solved=True, task="d")]
    found = figures(attempts, [5.0, 60.0])["ways"][EIGHT.name]
    assert found["solved"] == {"5": 0.25, "60": 0.5}
    assert found["shown"] == 0.75
    assert wilson(0.5, 40) == pytest.approx((0.352, 0.648), abs=0.001)
    assert wilson(1.0, 40)[0] == pytest.approx(0.912, abs=0.001)


def test_a_difference_is_over_what_both_ways_tried():
    with_ = [_attempt(shown_s=1.0, solved=True, task=task) for task in "abcd"]
    without = [_attempt(shown_s=1.0, solved=task in "ab", task=task) for task in "abc"]
    points, (low, high), ratio = difference(with_, without, 5.0)
    assert points == pytest.approx(1 / 3)
    assert low <= points <= high
    assert ratio == 1.5
    assert difference(with_, [replace(a, solved=False) for a in without], 5.0)[2] is None


def test_the_tables_name_what_was_not_solved(capsys):
    attempts = [_attempt(shown_s=3.0, solved=True), _attempt(task="hard"), _attempt(FRESH_ONLY, 4.0, True, "hard")]
    machine = {"cpu": "a cpu", "python": "3", "date": "today", "commit": "abc"}
    print_tables({"machine": machine, "others_load": 0.0, "figures": figures(attempts, [5.0])})
    out = capsys.readouterr().out
    assert f"- {EIGHT.name}: all but hard 0 of 1" in out
    assert f"- {FRESH_ONLY.name}: all\n" in out
    assert "| going on | +100.0" in out


def test_examples_and_traps_are_tasks():
    names = [task.name for task in solving.examples()]
    assert len(names) == 3
    assert all(task.tests == task.judge for task in solving.examples())
    assert [task.name for task in solving.traps()] == ["Merge intervals"]


def test_a_whole_run_writes_json_and_says_what_hinders(tmp_path, monkeypatch, capsys, open_solver):
    solver = open_solver(RIGHT)
    monkeypatch.setattr(solving, "examples", lambda: [TASK])
    monkeypatch.setattr(solving, "_open_solver", lambda *_: (solver, _Held(solver)))
    out = tmp_path / "out.json"
    asked = ["--examples", "--seeds", "2", "--json", str(out)]
    assert solving.main(asked) == 0
    written = json.loads(out.read_text())
    assert written["figures"]["tasks"] == {"1.5B: until one passes": {"add": "2 of 2"}}
    assert solving.main(asked) == 2
    assert "--resume" in capsys.readouterr().err
