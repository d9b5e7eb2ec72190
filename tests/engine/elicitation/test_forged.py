"""What a candidate says in its box's place becomes no line of the user's tests, and ends no comparison."""

import json
from typing import Any

import pytest

from engine.elicitation import values
from engine.elicitation.answers import Answer, NotWritable, with_answer
from engine.elicitation.elicitation import Elicitation, Solution
from engine.elicitation.inputs import Call, Input
from engine.elicitation.outcomes import Outcome
from engine.runner.protocol import Observed

F3 = Input((Call("f", ("3",)),))
CODE = (
    ["time", 1, "1)\nimport os\nprint(os.environ", "0", "1", None, 0],
    ["time", 1, 1, 0, 0, None, "0, x=print(1)"],
    ["datetime", 2020, 1, "1) or True or (1", 0, 0, 0, 0, None, 0],
    ["int", "f(3)" + " " * 3000],
    ["timezone", ["numpy", "", ["int", "f(3)" + " " * 3000]]],
)
BROKEN = (["iterator"], [], ["range", 1], ["named"], ["ndarray"], ["dict", 1], ["complex"], ["opaque"], [[[]]])


def _nested(depth: int) -> Any:
    wire: Any = 1
    for _ in range(depth):
        wire = ["list", wire]
    return wire


@pytest.mark.parametrize("wire", CODE)
@pytest.mark.parametrize("tests", ["", "def test_a():\n    assert f(1)\n", ">>> f(1)\n1\n"])
def test_no_code_of_a_candidate_gets_into_the_tests(wire: Any, tests: str) -> None:
    with pytest.raises(values.NoSource):
        values.source(wire)
    with pytest.raises(NotWritable):
        with_answer(tests, Answer(F3, Outcome("value", wire)))


def test_a_very_large_number_is_written_all_the_same() -> None:
    written, _ = values.source(["int", "f" * 4000])
    assert int(written, 16) == int("f" * 4000, 16)


@pytest.mark.parametrize("wire", [*CODE, *BROKEN, _nested(450), _nested(900), ["list"] * 30_000])
def test_a_forged_record_ends_no_comparison(wire: Any) -> None:
    elicitation = Elicitation(
        "Write f(x), as in f(3).", "", {1: Solution("def f(x): return 1"), 2: Solution("def f(x): return 2")}
    )
    for request in elicitation.requests("compare"):
        number = 1 if "return 1" in request.solution else 2
        told = {"kind": "value", "value": wire if number == 1 else 2}
        elicitation.take(Observed(request.id, tuple(json.dumps(told) for _ in request.inputs)))
    assert set(elicitation.standings()) == {1, 2}
    elicitation.question()
    json.dumps(elicitation.record())
    assert elicitation.sentence


@pytest.mark.parametrize("changed", ["[[1e999, 1]]", "[[-1, 1]]", '[["0", 1]]', "[[true, 1]]", "7", "[[1]]"])
def test_a_change_of_no_argument_is_no_outcome(changed: str) -> None:
    assert Outcome.from_json(f'{{"kind": "value", "value": null, "changed": {changed}}}').kind == "killed"


def test_a_change_of_an_argument_that_was_not_given_is_no_test() -> None:
    with pytest.raises(NotWritable):
        with_answer("", Answer(F3, Outcome("value", None, ((99, 1),))))


@pytest.mark.parametrize("text", [">>> import os", "a\n  >>> f(1)\n", "... x"])
def test_print_that_looks_like_a_doctest_is_not_written_as_one(text: str) -> None:
    with pytest.raises(NotWritable):
        with_answer(">>> f(1)\n1\n", Answer(F3, Outcome("value", None, printed=text)))


@pytest.mark.parametrize("printed", ["output:\n3", "input:\n4\noutput:\n5", "", " \n"])
def test_output_that_is_no_example_is_not_written_as_one(printed: str) -> None:
    with pytest.raises(NotWritable):
        with_answer("", Answer(Input(given="3\n"), Outcome("output", printed=printed)))


@pytest.mark.parametrize("tests", ["class T(unittest.TestCase): pass\n", "def check(candidate): assert candidate(1)\n"])
def test_nothing_is_added_to_a_body_on_one_line(tests: str) -> None:
    with pytest.raises(NotWritable, match="on lines of its own"):
        with_answer(f"import unittest\n{tests}", Answer(F3, Outcome("value", 1)))


def test_a_name_that_the_tests_use_for_something_else_is_left_to_them() -> None:
    date = ["date", 2020, 1, 2]
    with pytest.raises(NotWritable, match="the name datetime"):
        with_answer("from datetime import datetime\nassert f(1)\n", Answer(F3, Outcome("value", date)))
    assert "import pytest\n" in with_answer("import pytest as pt\nassert f(1)\n", Answer(F3, Outcome("value", 1.5)))


def test_only_calls_of_the_candidate_get_its_name_in_check() -> None:
    tests = "def check(candidate):\n    assert candidate('a')\n"
    written = with_answer(tests, Answer(Input((Call("f", ("'f(3)'",)),)), Outcome("value", ")3(f")))
    assert "candidate('f(3)') == ')3(f'" in written
