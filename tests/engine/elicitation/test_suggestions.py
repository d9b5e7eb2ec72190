"""Asserts and calls that a model wrote."""

import pytest

from engine.elicitation.inputs import Input
from engine.elicitation.suggestions import Suggestion, agreeing, calls, ranked, read
from engine.elicitation.target import FUNCTION, Parameter, Target
from tests.engine.elicitation.conftest import raised, value

F = Target(FUNCTION, "f", (Parameter("x"),))


def suggestion(argument: str, expected: object) -> Suggestion:
    return Suggestion(Input.of_call("f", [argument]), expected)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("assert f(1) == 2", [("f(1)", 2)]),
        ("```python\nassert f(1) == 2  # yes\n```", [("f(1)", 2)]),
        ("def test():\n    assert f([1]) is None, 'why'\n", [("f([1])", None)]),
        ("assert not f(0)\nassert f(1)\nassert f(2) is True", [("f(0)", False), ("f(1)", True), ("f(2)", True)]),
        ("assert math.isclose(f(2), 0.5, rel_tol=1e-9)", [("f(2)", 0.5)]),
        ("assert f(1) == 2\nassert f(1) == 2\nassert f(1) == 3", [("f(1)", 2), ("f(1)", 3)]),
        ("Here:\nassert f(1) == 2\nassert f(2) ==", [("f(1)", 2)]),
        ("assert f(x=1) == 2", [("f(x=1)", 2)]),
    ],
)
def test_asserts_about_literals_are_read(text: str, found: list[tuple[str, object]]) -> None:
    assert [(s.given.text, s.expected) for s in read([text], F)] == found


@pytest.mark.parametrize(
    "text",
    [
        *("assert g(1) == 2", "assert f(open('/etc/passwd')) == 2", "assert f(1) == f(2)", "assert f(n) == 1", "f(1)"),
        *(
            "assert f(__import__('os').system('x')) == 1",
            "assert f(1) > 2",
            "assert f([i for i in range(3)]) == 1",
            "(",
        ),
        *("assert f(sorted([2, 1])) == 1", "assert f(x=range(3)) == 1"),
        *("assert f(1) == len('ab')", "assert f(x=open('a')) == 1", "assert f(*[1]) == 2", "assert 1 == 1", "\x00"),
    ],
)
def test_what_is_no_literal_is_never_read(text: str) -> None:
    assert read([text], F) == []


def test_calls_are_taken_without_what_they_are_compared_with() -> None:
    text = "f(1)\nprint(f([2]))\nassert f(3) == g(4)\nf(open('x'))\nf(-1, 'a')\nfor i in range(3):\n    f(i)\n"
    assert [given.text for given in calls([text], F)] == ["f(1)", "f([2])", "f(3)", "f(-1, 'a')"]


def test_tests_are_ranked_by_agreement_and_contradicting_ones_left_out() -> None:
    tests = [suggestion("1", 10), suggestion("1", 11), suggestion("2", 20), suggestion("3", 99)]
    outcomes = {
        1: [value(10), value(10), value(20), value(30)],
        2: [value(10), value(10), value(20), value(30)],
        3: [value(10), value(10), value(21), value(30)],
        4: [value(11), value(11), raised("ValueError"), value(30)],
    }
    found = ranked(tests, outcomes, [(1, 2), (3,), (4,)])
    assert [(r.suggestion.given.text, r.suggestion.expected, r.members) for r in found] == [
        ("f(1)", 10, (1, 2, 3)),
        ("f(2)", 20, (1, 2)),
    ]
    assert found[0].behaviours == 2
    assert agreeing(found) == {1: 2, 2: 2, 3: 1}


def test_a_test_that_nobody_passes_is_not_offered() -> None:
    assert ranked([suggestion("1", 5)], {1: [value(4)], 2: [raised("ValueError")]}, [(1,), (2,)]) == []


def test_what_depends_on_chance_passes_no_suggested_test() -> None:
    assert ranked([suggestion("1", 5)], {1: [value(5, unstable=True)]}, [(1,)]) == []
