"""Pass rates: their intervals, their table, and what is asked and tested."""

import json

import pytest

from benchmarks import pass_rates
from benchmarks.humaneval_problems import Problem
from benchmarks.pass_rates import WAYS, difference, interval, table
from engine.contract import CandidateFinished
from engine.runner.report import Report
from tests.benchmarks.recorded import MACHINE

PROBLEM = Problem("HumanEval/1", "add", "def add(a, b):\n", "    return a + b\n", "check(add)\n")
RIGHT, WRONG = "```python\ndef add(a, b):\n    return a + b\n```", "```python\ndef add(a, b):\n    return a - b\n```"


@pytest.mark.parametrize(
    ("passed", "of", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_wilsons(passed, of, low, high):
    """The examples of Newcombe 1998 (Statistics in Medicine 17, table I)."""
    assert interval(passed, of) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_a_difference_is_paired_by_problem():
    """The gaps are 0.5, 0 and 0.25: mean 0.25, deviation 0.25, half the interval 1.96 x 0.25 / sqrt(3)."""
    one = [[True, True, True, False], [False] * 4, [True, True, False, False]]
    other = [[True, False, False, False], [False] * 4, [True, False, False, False]]
    assert difference(one, other) == (pytest.approx(0.25), pytest.approx(1.959964 * 0.25 / 3**0.5, rel=1e-6))


def _result(problems):
    options = {"model": "default", "n": 4, "temperature": 0.8, "max_tokens": 512, "seed": 0}
    return {"options": options | {"ways": ["int8, no drafts", "float32, no drafts"]}, "machine": MACHINE} | {
        "problems": problems
    }


def test_the_table_has_a_row_per_way():
    one = {"int8, no drafts": [True, False, False, False], "float32, no drafts": [True, True, False, False]}
    other = {"int8, no drafts": [True, True, True, True], "float32, no drafts": [True, True, True, False]}
    rows = list(table(_result({"a": one, "b": other})))[-2:]
    assert rows == [
        "| int8, no drafts | 5 | 8 | 62.5% | 30.6% to 86.3% | - |",
        "| float32, no drafts | 5 | 8 | 62.5% | 30.6% to 86.3% | +0.0% ± 49.0% |",
    ]


def test_of_one_problem_there_is_no_spread_over_problems():
    rows = list(table(_result({"a": {"int8, no drafts": [True], "float32, no drafts": [False]}})))
    assert rows[-1] == "| float32, no drafts | 0 | 1 | 0.0% | 0.0% to 79.3% | - |"
    assert list(table(_result({})))[-1].startswith("|---")


class StandIn:
    """Answers rightly as often as its model is precise, in the order in which candidates end, the last first."""

    opened, log = [], []

    def __init__(self, choice):
        self.precision = choice.precision
        self.opened.append(choice.precision)

    def rest(self):
        self.log.append((self.precision, "rest"))

    def run(self, request):
        self.log.append((self.precision, request.speculation, request.seed))
        right = 3 if self.precision == "float32" else 1
        texts = {n: RIGHT if n <= right else WRONG for n in request.numbers}
        return [CandidateFinished("r", n, "done", "stop", texts[n], 9, 0, 0, 0.0, 1.0) for n in reversed(texts)]

    def close(self):
        self.log.append((self.precision, "close"))


@pytest.fixture
def stand_ins(monkeypatch):
    tested = []

    def reports(pairs):
        tested.append(sorted(code for code, _ in pairs.values()))
        return {name: Report("pass" if "+" in code else "fail", "split") for name, (code, _) in pairs.items()}

    monkeypatch.setattr(StandIn, "opened", [])
    monkeypatch.setattr(StandIn, "log", [])
    monkeypatch.setattr(pass_rates, "OurEngine", StandIn)
    monkeypatch.setattr(pass_rates, "reports", reports)
    monkeypatch.setattr(pass_rates, "problems", lambda: [PROBLEM])
    return tested


def test_every_way_is_asked_the_same_and_equal_code_is_tested_once(stand_ins, tmp_path, capsys):
    out = tmp_path / "rates.json"
    assert pass_rates.main(["--tasks", "add", "-n", "4", "--seed", "7", "--json", str(out)]) == 0
    assert StandIn.opened == ["int8", "float32"]
    asked = [entry for entry in StandIn.log if len(entry) == 3]
    assert asked == [(precision, speculation, 7) for precision, speculation in WAYS.values()]
    assert [entry for entry in StandIn.log if entry[1] == "close"] == [("int8", "close"), ("float32", "close")]
    assert [len(codes) for codes in stand_ins] == [2]
    found = json.loads(out.read_text())["problems"]["HumanEval/1"]
    assert found["int8, drafts, rejection"] == [True, False, False, False]
    assert found["float32, no drafts"] == [True, True, True, False]
    assert "| float32, no drafts | 3 | 4 | 75.0% |" in capsys.readouterr().out


def test_no_problem_is_begun_when_the_time_is_used_up(stand_ins, capsys):
    assert pass_rates.main(["--tasks", "add", "--minutes", "-1"]) == 0
    assert "the time is used up before HumanEval/1" in capsys.readouterr().err
    assert stand_ins == []
