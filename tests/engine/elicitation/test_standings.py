"""What is kept of a comparison comes back as it was; what was answered is not asked again; tests join in later."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from engine.elicitation.answers import Answer, as_written, is_written, with_answer
from engine.elicitation.elicitation import Elicitation, Solution
from engine.elicitation.inputs import Call, Input
from engine.elicitation.outcomes import Outcome
from engine.elicitation.questions import Question
from engine.elicitation.standings import Compared, Standing
from engine.elicitation.suggestions import read
from engine.runner.encoding import encode
from engine.runner.protocol import Observe, Observed
from tests.engine.elicitation.conftest import raised, value

PROMPT = "Write double(x). It is called as double(3), double(0) or double(-4)."
SQUARE = "def double(x):\n    return x ** 2\n"
TIMES = "def double(x):\n    return x * 2\n"
CODES = {1: SQUARE, 2: SQUARE + "# also\n", 3: TIMES}


def observed(elicitation: Elicitation, name: str = "o") -> list[Observe]:
    """Takes in what these candidates do, without a box; what was asked for."""
    requests = elicitation.requests(name)
    for request in requests:
        names: dict[str, Any] = {}
        exec(request.solution, names)
        calls = [json.loads(text)["calls"][-1] for text in request.inputs]
        results = [names[name](*map(eval, arguments)) for name, arguments in calls]
        elicitation.take(Observed(request.id, tuple(Outcome("value", encode(each)).to_json() for each in results)))
    return requests


def compared(
    tests: str = "", codes: Mapping[int, str] = CODES, answered: Mapping[Input, Answer | None] | None = None
) -> Elicitation:
    solutions = {number: Solution(code) for number, code in codes.items()}
    elicitation = Elicitation(PROMPT, tests, solutions, answered=answered or {})
    observed(elicitation)
    return elicitation


def asked(elicitation: Elicitation) -> list[Question]:
    """All questions, each of which does not matter."""
    found = []
    while (question := elicitation.question()) is not None:
        found.append(question)
        elicitation.keep(question, None)
    return found


@pytest.mark.parametrize(
    "outcome",
    [
        value({"a": [1, 2.5, {3}]}, changed=((0, encode([1])),), printed="x\ud800"),
        Outcome("raised", error="Refused", message="no", own=True),
        raised("ValueError"),
        Outcome("output", printed="6\n", unstable=True),
        Outcome("value", ["opaque", "Box", "<Box>"], whole=False),
        Outcome("timeout"),
    ],
)
def test_what_is_kept_comes_back(outcome: Outcome) -> None:
    call = Input((Call("Box", ("1",)), Call("put", ("x=2",))), origin="prompt")
    program = Input(given="3\n", origin="tests")
    kept = Compared(
        {1: Standing((1, 2), 40, (1, 2), (3, 4), (0, True, 1, 3, 2, 0.25)), 2: Standing((1, 2), 40)},
        {"inputs": 40},
        {call: Answer(call, outcome, ("ValueError", "KeyError")), program: None},
    )
    back = Compared.from_json(kept.to_json())
    assert back == kept
    assert [given.origin for given in back.answered] == ["prompt", "tests"]


def test_what_was_answered_is_not_asked_again_of_the_same_run() -> None:
    first = compared()
    matters = first.question()
    assert matters is not None
    answer = first.choose(matters, next(i for i, c in enumerate(matters.choices) if 3 in c.reply.members))
    first.keep(matters, answer)
    assert first.question() is None
    tests = with_answer("", answer)
    again = compared(tests, answered=first.compared().answered)
    assert again.question() is None
    assert sorted(again.open) == [3]
    assert again.standings()[1].key < again.standings()[3].key


def test_what_does_not_matter_is_not_asked_again_though_the_inputs_are_others_now() -> None:
    first = compared()
    questions = [question.given for question in asked(first)]
    assert len(questions) > 3
    again = compared("assert double(100) == 200\n", answered=first.answered)
    assert not {question.given for question in asked(again)} & set(questions)


def test_an_answer_that_was_taken_out_of_the_tests_is_asked_for_again() -> None:
    first = compared()
    question = first.question()
    assert question is not None
    first.keep(question, first.choose(question, 0))
    again = compared("", answered=first.answered)
    assert again.question() == question
    assert sorted(again.open) == [1, 2, 3]


def test_an_answer_in_the_users_own_words_stays_one() -> None:
    first = compared()
    question = first.question()
    assert question is not None
    first.keep(question, first.another(question, "77"))
    tests = f"def test_it():\n    result = {question.given.text}\n    assert result == 77\n"
    assert not compared(tests, answered=first.answered).open


def test_suggested_tests_that_come_later_cost_only_their_own_inputs() -> None:
    elicitation = compared()
    before = elicitation.standings()
    elicitation.suggest(read(["assert double(1234) == 2468\nassert double(3) == 6"], elicitation.target))
    assert not elicitation.observed
    assert elicitation.standings()[3].group == before[3].group  # also while they are not observed
    requests = observed(elicitation, "more")
    assert elicitation.observed
    assert [len(request.inputs) for request in requests] == [1, 1, 1]
    assert [standing.suggested for _, standing in sorted(elicitation.standings().items())] == [(0, 2), (0, 2), (2, 2)]
    assert elicitation.standings()[1].group == (1, 2)
    assert elicitation.standings()[1].inputs == before[1].inputs


def test_tests_that_are_suggested_while_candidates_are_observed_are_asked_for_next() -> None:
    elicitation = Elicitation(PROMPT, "", {1: Solution(TIMES)})
    (request,) = elicitation.requests("first")
    count = len(elicitation.inputs)
    elicitation.suggest(read(["assert double(1234) == 2468"], elicitation.target))
    elicitation.take(Observed(request.id, tuple(value(0).to_json() for _ in request.inputs)))
    assert not elicitation.observed
    assert [len(seen.outcomes) for seen in elicitation.candidates.values()] == [count]
    assert [len(request.inputs) for request in observed(elicitation, "second")] == [1]
    assert [offer.members for offer in elicitation.offered()] == [(1,)]


def test_an_accepted_test_is_an_answer_and_no_suggestion_any_more() -> None:
    elicitation = compared()
    elicitation.suggest(read(["assert double(1234) == 2468\nassert double(3) == 6"], elicitation.target))
    observed(elicitation, "more")
    offer = next(offer for offer in elicitation.offered() if offer.suggestion.given.text == "double(1234)")
    elicitation.accept(offer)
    assert sorted(elicitation.open) == [3]
    assert [offer.suggestion.given.text for offer in elicitation.offered()] == ["double(3)"]
    assert elicitation.standings()[1].key < elicitation.standings()[3].key


def test_what_the_users_tests_are_about_is_not_suggested() -> None:
    elicitation = compared("assert double(3) == 6\n")
    elicitation.suggest(read(["assert double(3) == 6\nassert double(4) == 8"], elicitation.target))
    observed(elicitation, "more")
    assert [offer.suggestion.given.text for offer in elicitation.offered()] == ["double(4)"]


def test_the_test_of_an_iterator_looks_at_its_items() -> None:
    codes = {1: "def double(x):\n    return map(int, [x, x])\n", 2: "def double(x):\n    return [x, x]\n"}
    elicitation = compared(codes=codes)
    elicitation.suggest(read(["assert double(7) == [7, 7]"], elicitation.target))
    observed(elicitation, "more")
    (offer,) = elicitation.offered()
    assert offer.members == (1, 2)
    assert with_answer("", offer.answer) == "assert list(double(7)) == [7, 7]\n"
    elicitation.accept(offer)
    assert sorted(elicitation.open) == [1, 2]


FORMS = {
    "bare": ("assert double(0) == 0\n", "assert double(3) == 6"),
    "pytest": ("from solution import double\n\ndef test_0():\n    assert double(0) == 0\n", "assert double(3) == 6"),
    "unittest": (
        "import unittest\nfrom solution import double\n\nclass T(unittest.TestCase):\n    def test_0(self):\n"
        "        self.assertEqual(double(0), 0)\n",
        "self.assertEqual(double(3), 6)",
    ),
    "doctest": (">>> double(0)\n0\n", ">>> double(3)\n6"),
    "check": ("def check(candidate):\n    assert candidate(0) == 0\n", "assert candidate(3) == 6"),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_is_shown_as_it_is_written_and_found_again(form: str) -> None:
    tests, line = FORMS[form]
    answer = Answer(Input.of_call("double", ["3"]), value(6))
    assert as_written(tests, answer) == line
    assert not is_written(tests, answer)
    assert is_written(with_answer(tests, answer), answer)
