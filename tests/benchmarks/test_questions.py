"""The benchmark of questions: what is compared with what, and one problem the whole way."""

import json
from pathlib import Path

import pytest

from benchmarks import questions
from benchmarks.humaneval_problems import Problem
from benchmarks.questions import Boxes, Kept, Picks, Written, by_logprob, compare, figures, pick, table
from tests.engine.runner.conftest import bubblewrap_works

RIGHT, WRONG = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a - b\n"
PROMPT = 'def add(a, b):\n    """ Add two numbers.\n    >>> add(1, 0)\n    1\n    """\n'
PROBLEM = Problem(
    "HumanEval/x", "add", PROMPT, "    return a + b\n", "def check(c):\n    assert c(1, 2) == 3\ncheck(add)\n"
)


def written(codes: list[str], logprobs: list[float | None], asserts: list[str] | None = None) -> Written:
    passed = [code.startswith(RIGHT.rstrip()) for code in codes]
    return Written("HumanEval/x", 0, codes, logprobs, ["done"] * len(codes), passed, asserts or [])


def test_equal_text_is_decided_by_the_log_probability() -> None:
    assert not pick(written([WRONG, WRONG, RIGHT], [-0.5, -0.6, -0.1]))
    assert pick(written([WRONG, RIGHT], [-0.5, -0.1]))
    assert by_logprob(written([WRONG, WRONG, RIGHT], [-0.5, -0.6, -0.1]))
    assert not by_logprob(written([WRONG, ""], [None, None]))


@pytest.mark.sandbox
@pytest.mark.skipif(not bubblewrap_works(), reason="bubblewrap does not work here")
def test_the_canonical_solution_answers_until_the_pick_is_right() -> None:
    boxes = Boxes()
    try:
        asserts = ["assert add(2, 2) == 4\nassert add(5, 1) == 4\n"]
        codes = [WRONG, WRONG + "# 1\n", WRONG + "# 2\n", RIGHT]
        picks = compare(PROBLEM, written(codes, [-0.1, -0.2, -0.3, -0.9], asserts), boxes)
    finally:
        boxes.close()
    assert (picks.perfect, picks.majority, picks.logprob) == (True, False, False)
    assert picks.asking == [False, True, True, True]
    assert picks.asked == 1
    assert picks.first_question_s > 0
    assert (picks.tests["read"], picks.tests["wrong"]) == (2, 1)


def test_figures_are_means_over_seeds_and_differences_over_problems() -> None:
    found = [
        Picks("a", 0, True, False, True, [False, True, True, True], asked=2, first_question_s=1.0),
        Picks("a", 1, True, True, False, [True, True, True, True], asked=1, first_question_s=2.0),
        Picks("b", 0, False, False, False, [False] * 4, note="nothing"),
        Picks(
            "b", 1, True, False, False, [False, False, True, True], tests={"read": 4, "wrong": 1}, first_question_s=1.5
        ),
    ]
    made = figures(found)
    assert made["rates"]["perfect"] == 0.75
    assert made["rates"]["after 1"] == 0.5
    assert made["of perfect"]["after 3"] == 1.0
    assert made["differences"]["after 3 against majority"][0] == pytest.approx(0.5)
    assert made["first question s"] == {"median": 1.5, "largest": 2.0}
    assert made["tests"]["wrong"] == 1
    result = {
        "figures": made,
        "options": {"model": "m", "n": 8, "temperature": 0.8, "seeds": [0, 1]},
        "machine": {"cpu": "c", "python": "3", "date": "d", "commit": "e"},
    }
    assert any("| after 1 | 50.0% | 67% |" in line for line in table(result))


def test_what_was_written_is_kept_and_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    Kept(path).add(written([RIGHT], [None]))
    again = Kept(path)
    assert again.get("HumanEval/x", 0) == written([RIGHT], [None])
    assert again.get("HumanEval/x", 1) is None
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 1
    options = questions.parse(["--json", str(path)])
    questions.write_missing([(PROBLEM, 0)], again, options)  # would load a model
