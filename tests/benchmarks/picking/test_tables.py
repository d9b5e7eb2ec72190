import json

import pytest

from benchmarks.picking.records import OURS, PEER
from benchmarks.picking.tables import figures, print_tables
from tests.benchmarks.picking.records import outcome, pair, record, trial


def _trials(ours: float | None, peer: float | None):
    """One answer alone, eight at once, and the peer."""
    alone = trial(2.0, 2.5, OURS, 1, 0, outcome(1.8, "pass", -0.2))
    passed = "pass" if ours else "fail"
    eight = [outcome(3.0, "fail", -0.1), outcome(4.0, passed, -0.3), *[outcome(6.0) for _ in range(6)]]
    return alone, trial(ours, 10.0, OURS, 8, 0, *eight), trial(peer, 30.0, PEER)


@pytest.fixture
def records():
    return [
        record("HumanEval/1", 2, 12, *_trials(4.5, 9.0), peer=1),
        record("HumanEval/2", 11, 12, *_trials(4.0, 2.0), peer=12),
        record("HumanEval/3", 0, 12, *_trials(None, None), peer=0),
        record("HumanEval/4", 1, 12, *_trials(None, 20.0), *pair(5.0, None, turn=1), peer=0),
    ]


def _result(records, void=0):
    sides = {
        OURS: {"model": "small", "precision": "int8", "device": "cpu", "note": ""},
        PEER: {"model": "small.gguf", "precision": "Q4", "device": "cpu", "note": "llama.cpp 1"},
    }
    return {
        "options": {"temperature": 0.8, "max_tokens": 512, "repeat": 2, "n": [1, 8]},
        "machine": {"cpu": "some processor", "python": "3.11", "date": "today", "commit": "abc"},
        "sides": sides,
        "others_load": 0.1,
        "void": void,
        "figures": figures(records, [1, 8], [3.5, 5.0]),
        "records": records,
    }


def test_figures_of_a_recorded_run(records):
    found = figures(records, [1, 8], [3.5, 5.0])
    assert found["untimed"][OURS]["answers"] == 12
    assert found["untimed"][OURS]["pass@1"] == pytest.approx((2 + 11 + 0 + 1) / 48)
    assert found["untimed"][OURS]["pass@8"] == pytest.approx((1 - 45 / 495 + 1 + 0 + 1 - 165 / 495) / 4)
    assert found["untimed"][PEER]["pass@1"] == pytest.approx((1 + 12) / 48)
    assert found["budgets"]["8"]["pass@1"] == pytest.approx(2 / 32)
    assert found["budgets"]["8"]["pass@n"] == 0.5
    assert found["budgets"]["8"]["within"] == {"3.5": {"first": 0, "all": 0}, "5": {"first": 0, "all": 0.5}}
    assert found["budgets"]["1"]["within"]["3.5"] == {"first": 1.0, "all": 1.0}
    lowest = found["bins"]["above 0 to 0.25"]
    assert lowest["tasks"] == {"HumanEval/1": 0.125, "HumanEval/4": 0.042}
    assert lowest["comparison"]["pairs"] == 3
    assert lowest["comparison"]["medians"]["ours"] == 4.5
    assert found["all"]["comparison"]["tasks"] == 4
    assert found["verdicts"] == {"pass": 4 + 2 + 3 + 1, "fail": 2 * 7 + 2 * 8 + 1 + 1}
    assert found["curves"][OURS] == [(4.0, 0.25), (4.5, 0.5)]
    assert found["curves"][PEER] == [(2.0, 0.25), (9.0, 0.5), (20.0, 0.75)]


def test_tables_of_a_recorded_run(records, capsys):
    print_tables(json.loads(json.dumps(_result([*records]), default=vars)))
    printed = capsys.readouterr().out
    assert "VOID" not in printed
    assert "| ours | 12 | 29.2% | " in printed
    assert "| 8 | 6.2% | 50.0% | 0% / 0% | 0% / 50% |" in printed
    assert (
        "| above 0.75 | 1 | 1 | 100% / 100% | 1 | 4.0 / 2.0 | 0.50x | 4.0 / 2.0 | 0.50x | 4.0 / 2.0 | 0.50x |"
        in printed
    )
    lowest = next(line for line in printed.splitlines() if line.startswith("| above 0 to 0.25"))
    assert lowest.startswith("| above 0 to 0.25 | 2 | 3 | 67% / 67% | 1 | 4.5 / 9.0 | 2.00x | 23.2 / 29.7 | 1.28x (")
    assert "| 9.8 / 29.5 | 3.03x (2.00 to 3.33) |" in lowest
    assert "| none of them" not in printed
    assert "No untimed answer passed: HumanEval/3. Solved when timed: 0% / 0%" in printed


def test_without_a_peer_there_is_no_comparison(capsys):
    alone = [record("HumanEval/1", 3, 24, trial(2.0, 3.0, OURS, 1), trial(4.5, 9.0))]
    print_tables(json.loads(json.dumps(_result(alone), default=vars)))
    printed = capsys.readouterr().out
    assert "| ours | 24 | 12.5% |" in printed
    assert PEER not in printed.split("Untimed")[1]


def test_a_busy_machine_is_said(records, capsys):
    print_tables(json.loads(json.dumps(_result(records, void=2), default=vars)))
    assert "VOID: 2 problem(s) were measured on a busy machine" in capsys.readouterr().out
