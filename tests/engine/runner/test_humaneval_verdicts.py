"""A part of HumanEval in the suite; all of it by ``make verdicts``."""

import pytest

from benchmarks.humaneval_problems import NoProblems, Problem, problems
from benchmarks.humaneval_verdicts import broken, reports

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def some() -> list[Problem]:
    try:
        return problems()[::16]
    except NoProblems as error:
        pytest.skip(str(error))


def test_right_answers_pass_and_answers_wrong_by_one_token_fail(some: list[Problem], sealed_bench: object) -> None:
    right = reports({p.name: (p.solution, p.tests) for p in some})
    assert {name: report.verdict for name, report in right.items()} == {p.name: "pass" for p in some}
    wrong = reports({p.name: (broken(p), p.tests) for p in some})
    assert {name: report.verdict for name, report in wrong.items()} == {p.name: "fail" for p in some}
    assert all(report.mode == "split" for report in (*right.values(), *wrong.values()))
