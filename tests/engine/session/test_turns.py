"""Follow-ups: what the model is told was said before, and what it is asked to correct."""

import pytest

from engine.contract import BadRequest, CandidateFinished, Request, Sampling, Turn
from engine.runner.report import Report, TestResult
from engine.selection.code_blocks import solution
from engine.session.run import Run
from engine.session.turns import can_fix, fix, follow_up

ANSWER = "Sure:\n\n```python\ndef f():\n    return 3\n```\nBye."
FAIL = Report("fail", "split", tests=(TestResult("1", "passed"), TestResult("2", "failed", "assert 3 == 4")))
PASS = Report("pass", "split", tests=(TestResult("1", "passed"),))


def a_run(request: Request | None = None, text: str = ANSWER) -> Run:
    run = Run("r", request or Request("Write f.", 7, 4, overrides={2: Sampling(temperature=0.0)}), "assert f() == 4")
    run.apply(CandidateFinished("r", 2, "done", "stop", text, 9, 8, 6, -0.5, 1.0))
    return run


def test_the_answer_becomes_a_turn() -> None:
    request = follow_up(a_run(), 2, "Add a docstring.")
    assert request.turns == (Turn("user", "Write f."), Turn("assistant", ANSWER))
    assert (request.prompt, request.seed, list(request.numbers)) == ("Add a docstring.", 7, [1, 2, 3, 4])
    assert request.overrides == {}
    assert follow_up(a_run(), 2, "x", seed=9).seed == 9


def test_turns_add_up() -> None:
    second = a_run(follow_up(a_run(), 2, "Shorter."), "```\nf = 1\n```")
    assert [turn.text for turn in follow_up(second, 2, "Typed.").turns] == [
        "Write f.",
        ANSWER,
        "Shorter.",
        "```\nf = 1\n```",
    ]


def test_fix_hands_on_code_and_values() -> None:
    run = a_run()
    run.record(2, FAIL, 1.0)
    request = fix(run, 2)
    assert request.turns == (Turn("user", "Write f."), Turn("assistant", "```python\ndef f():\n    return 3\n```\n"))
    assert "```\nassert 3 == 4\n```" in request.prompt
    assert request.candidates == 4


def test_a_long_reason_is_shortened_and_its_fences_are_contained() -> None:
    run = a_run()
    run.record(2, Report("fail", "split", why="````\n" + "x" * 10_000), 1.0)
    request = fix(run, 2)
    assert len(request.prompt) < 2_200
    assert solution(request.prompt).code.startswith("````\nxxx")


def test_a_completion_goes_on_as_a_chat_about_all_its_code() -> None:
    run = a_run(Request("def f():\n", 7, 2, mode="completion"), "    return 3\n")
    run.record(2, FAIL, 1.0)
    for request in (follow_up(run, 2, "Shorter."), fix(run, 2)):
        assert request.mode == "chat"
        assert request.turns[-1] == Turn("assistant", "```python\ndef f():\n    return 3\n```\n")
    assert follow_up(run, 2, "Shorter.").prompt == "Shorter."


@pytest.mark.parametrize(
    ("report", "words"),
    [(None, "Run the tests first"), (PASS, "passes its tests"), (Report("infra", "split"), "no reason")],
)
def test_nothing_to_fix(report: Report | None, words: str) -> None:
    run = a_run()
    if report is not None:
        run.record(2, report, 1.0)
    assert words in can_fix(run.candidates[2])
    with pytest.raises(BadRequest, match=words):
        fix(run, 2)


def test_no_answer_no_follow_up() -> None:
    for number in (1, 99):
        with pytest.raises(BadRequest, match=f"Candidate {number} has not answered yet"):
            follow_up(a_run(), number, "x")
    with pytest.raises(BadRequest, match="The prompt is empty"):
        follow_up(a_run(), 2, " ")


def test_an_answer_in_words_can_be_followed_up() -> None:
    run = a_run(text="I need to know which language.")
    assert not run.candidates[2].code
    assert follow_up(run, 2, "Python.").turns[-1] == Turn("assistant", "I need to know which language.")
