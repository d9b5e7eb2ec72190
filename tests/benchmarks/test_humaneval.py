"""The picking benchmark from its arguments to its tables: on recorded answers, and once with the real runner."""

import json
import sys

import pytest

from benchmarks.humaneval import RATE_SEED, Picking, main, parse, run
from benchmarks.humaneval_problems import NoProblems, Problem, chosen, problems
from benchmarks.picking.bench import Bench
from benchmarks.picking.records import OURS, PEER
from engine.contract import BasslineError, Cancel, Generate, ModelChoice
from engine.runner.client import RunnerClient
from engine.runner.protocol import Isolation
from engine.scripted import ScriptedEngine
from tests.benchmarks.picking.stand_ins import RIGHT, WRONG, ReadingRunner, engine

PROBLEMS = [
    Problem(f"HumanEval/{n}", f"add_{n}", f"def add_{n}(a, b):\n", "    return a + b\n", f"assert add_{n}(1, 2) == 3\n")
    for n in range(164)
]


class Asked:
    """An engine that notes what it is asked for."""

    def __init__(self, name: str, log: list, played: ScriptedEngine):
        self._name, self._log, self._played = name, log, played

    def submit(self, message) -> None:
        if isinstance(message, Generate) and message.run != "forget":
            request = message.request
            self._log.append((self._name, request.candidates, request.seed, request.goal))
        if isinstance(message, Cancel):
            self._log.append((self._name, "cancel"))
        self._played.submit(message)

    def run(self, emit) -> None:
        self._played.run(emit)


def _sides(log: list, *texts: str, peer: bool = True):
    played = [(text, 2 + at) for at, text in enumerate(texts or (WRONG, RIGHT))]
    sides = [OURS, PEER] if peer else [OURS]
    return {side: Asked(side, log, engine(*played, step_s=0.001)) for side in sides}


@pytest.fixture
def quiet(monkeypatch):
    """Other tests may run beside this one."""
    loads = [0.0]
    monkeypatch.setattr("benchmarks.picking.bench.others_load", lambda: loads[0])
    return loads


def _options(tmp_path, *more: str):
    return parse(["--json", str(tmp_path / "out.json"), "--rate-answers", "8", *more])


def _with_peer(tmp_path, *more: str):
    return _options(tmp_path, "--peer", PEER, "--peer-python", sys.executable, *more)


def test_problems_are_spread_evenly_or_named():
    forty = chosen(PROBLEMS, ["40"])
    assert [PROBLEMS.index(problem) for problem in forty][:6] == [0, 4, 8, 12, 16, 20]
    assert len(set(forty)) == 40
    assert PROBLEMS.index(forty[-1]) == 159
    assert chosen(PROBLEMS, ["164"]) == PROBLEMS
    assert chosen(PROBLEMS, ["add_7", "HumanEval/3", "HumanEval/7"]) == [PROBLEMS[7], PROBLEMS[3]]
    for wrong in (["0"], ["165"], ["HumanEval/164"], ["3", "4"]):
        with pytest.raises(BasslineError):
            chosen(PROBLEMS, wrong)


def test_sides_take_turns_in_going_first_and_rates_come_from_other_seeds(tmp_path, quiet):
    log: list = []
    bench = Bench(_sides(log, WRONG, WRONG, WRONG, RIGHT), ModelChoice(), ReadingRunner, rest_s=0.0)
    picking = Picking(bench, _with_peer(tmp_path, "-n", "4", "1", "--repeat", "3"), [OURS, PEER])
    first, second = picking.measure(PROBLEMS[0]), picking.measure(PROBLEMS[1])
    bench.close()
    assert first.rate == {OURS: [False, False, False, True], PEER: [False, False, False, True]}  # the lowest bin
    asked = [entry for entry in log if entry[1] != "cancel"]
    half = len(asked) // 2
    rates = [(OURS, 4, RATE_SEED, "all"), (PEER, 4, RATE_SEED, "all")]
    turn = {seed: [(OURS, 4, seed, "first"), (PEER, 4, seed, "first")] for seed in range(3)}
    alone = [(OURS, 1, 0, "first")]
    assert asked[:half] == [*rates, *alone, *turn[0], *turn[1][::-1], *turn[2]]
    assert asked[half:] == [*rates, *turn[0][::-1], *alone, *turn[1], *turn[2][::-1]]
    assert [(trial.side, trial.turn) for trial in second.of(PEER, 4)] == [(PEER, 0), (PEER, 1), (PEER, 2)]


def test_only_the_lowest_bin_is_timed_again(tmp_path, quiet):
    bench = Bench(_sides([]), ModelChoice(), ReadingRunner, rest_s=0.0)
    record = Picking(bench, _with_peer(tmp_path, "-n", "2", "--repeat", "5"), [OURS, PEER]).measure(PROBLEMS[0])
    bench.close()
    assert sum(record.rate[OURS]) == 2
    assert len(record.of(OURS, 2)) == len(record.of(PEER, 2)) == 1


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path, quiet, capsys):
    wanted = PROBLEMS[:3]
    killed = _sides([], peer=False)

    def open_killed(on_message):
        runner = ReadingRunner(on_message)
        tested = runner.test

        def test(test):
            if "add_1" in test.tests:
                raise KeyboardInterrupt
            tested(test)

        runner.test = test
        return runner

    with pytest.raises(KeyboardInterrupt):
        run(_options(tmp_path, "-n", "1", "2"), wanted, killed, open_killed, rest_s=0.0)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2

    with pytest.raises(BasslineError, match="add --resume"):
        run(_options(tmp_path, "-n", "1", "2"), wanted, _sides([], peer=False), ReadingRunner, rest_s=0.0)
    again = _sides(log := [], peer=False)
    assert run(_options(tmp_path, "-n", "1", "2", "--resume"), wanted, again, ReadingRunner, rest_s=0.0) == 0
    assert len(log) == 2 * 3  # the untimed answers and two trials, of the two problems that were missing
    result = json.loads((tmp_path / "out.json").read_text())
    assert [record["task"] for record in result["records"]] == [problem.name for problem in wanted]
    assert result["figures"]["budgets"]["2"]["pass@n"] == 1.0
    assert result["figures"]["untimed"][OURS]["pass@1"] == 0.5
    told = capsys.readouterr()
    assert "2 of 2, HumanEval/2 (rate 0.50): ours n=2 0." in told.err
    assert "about 0 min left" in told.err
    assert "| 2 | 50.0% | 100.0% |" in told.out


def test_a_problem_measured_on_a_busy_machine_is_void_until_it_is_measured_again(tmp_path, quiet, capsys):
    quiet[0] = 0.9
    run(_options(tmp_path, "-n", "2"), PROBLEMS[:1], _sides([], peer=False), ReadingRunner, rest_s=0.0)
    assert "VOID" in capsys.readouterr().out
    quiet[0] = 0.1
    run(_options(tmp_path, "-n", "2", "--resume"), PROBLEMS[:1], _sides([], peer=False), ReadingRunner, rest_s=0.0)
    assert "VOID" not in capsys.readouterr().out


def test_both_sides_with_tables_and_curves(tmp_path, quiet, capsys):
    log: list = []
    assert run(_with_peer(tmp_path, "-n", "2"), PROBLEMS[:2], _sides(log), ReadingRunner, rest_s=0.0) == 0
    result = json.loads((tmp_path / "out.json").read_text())
    assert set(result["sides"]) == set(result["figures"]["curves"]) == {OURS, PEER}
    assert result["figures"]["curves"][OURS][-1][1] == 1.0
    assert result["figures"]["bins"]["0.25 to 0.5"]["comparison"]["solved"] == [1.0, 1.0]
    assert "| 0.25 to 0.5 | 2 | 2 | 100% / 100% | 2 |" in capsys.readouterr().out


def test_what_is_wrong_with_the_arguments_is_one_sentence(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        parse(["--peer", PEER, "--peer-python", str(tmp_path / "none")])
    assert "make bench-peers" in capsys.readouterr().err
    monkeypatch.setattr("benchmarks.humaneval.problems", lambda: PROBLEMS)
    assert main(["--tasks", "HumanEval/999", "--json", str(tmp_path / "out.json")]) == 2
    assert "No problem is called HumanEval/999" in capsys.readouterr().err


def test_nothing_is_measured_without_a_sandbox(tmp_path, quiet):
    def open_unsealed(on_message):
        runner = ReadingRunner(on_message)
        runner.probe = lambda: on_message(Isolation(sealed=False, note="There is no bubblewrap here."))
        return runner

    with pytest.raises(BasslineError, match=r"no bubblewrap here\. Nothing is measured"):
        run(_options(tmp_path), PROBLEMS[:1], _sides([], peer=False), open_unsealed, rest_s=0.0)


@pytest.mark.sandbox
def test_a_real_problem_through_the_real_runner(tmp_path, quiet, capsys):
    try:
        wanted = chosen(problems(), ["HumanEval/53"])
    except NoProblems as error:
        pytest.skip(str(error))
    (problem,) = wanted
    fence = "```python\n{}```"
    texts = (fence.format(problem.solution.replace("x + y", "x - y")), fence.format(problem.solution))
    try:
        run(_options(tmp_path, "-n", "2"), wanted, _sides([], *texts, peer=False), RunnerClient, rest_s=0.0)
    except BasslineError as error:
        pytest.skip(str(error))
    result = json.loads((tmp_path / "out.json").read_text())
    (trial,) = result["records"][0]["trials"]
    assert [outcome["verdict"] for outcome in trial["outcomes"]] == ["fail", "pass"]
    assert trial["first_pass_s"] > trial["outcomes"][1]["finished_s"]
    assert "| 2 | 50.0% | 100.0% |" in capsys.readouterr().out
