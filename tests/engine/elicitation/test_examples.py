"""Inputs that somebody wrote: in tests of every form, and in prompts as people write them."""

import pytest

from engine.elicitation.examples import Example, from_prompt, from_tests, setup_of
from engine.elicitation.expressions import UNKNOWN
from engine.elicitation.inputs import Call, Input
from engine.elicitation.target import CLASS, FUNCTION, PROGRAM, Parameter, Target

F = Target(FUNCTION, "f", (Parameter("x"),))
STACK = Target(CLASS, "Stack", (), {"push": (Parameter("x"),), "pop": ()})
PROGRAM_TARGET = Target(PROGRAM)


def texts(inputs: list[Input]) -> list[str]:
    return [given.text for given in inputs]


@pytest.mark.parametrize(
    ("tests", "found"),
    [
        ("assert f(1) == 2\nassert f([3], k='a') == f(4)\n", ["f(1)", "f([3], k='a')", "f(4)"]),
        ("from solution import f\ndef test_a():\n    xs = [1, 2]\n    assert f(xs) == 3\n", ["f([1, 2])"]),
        (
            "import pytest\n@pytest.mark.parametrize('a, b', [(1, 2), pytest.param(3, 4)])\n"
            "def test_b(a, b):\n    assert f(a) == b\n",
            ["f(1)", "f(3)"],
        ),
        ("for a, b in [(1, 2), (3, 4)]:\n    assert f(a) == b\n", ["f(1)", "f(3)"]),
        ("def check(candidate):\n    assert candidate(-5) == 1\n", ["f(-5)"]),
        (
            "from unittest import *\nclass T(TestCase):\n    def test(self):\n        self.assertEqual(f('q'), 1)\n",
            ["f('q')"],
        ),
        (">>> f((1,))\n2\n", ["f((1,))"]),
        ("import datetime\nassert f(datetime.date(2024, 1, 2)) == 3\n", ["f(datetime.date(2024, 1, 2))"]),
        ("import solution\nassert solution.f(float('nan')) == 3\n", ["f(float('nan'))"]),
        ("assert f(unknown_name) == 1\nassert f(*[1]) == 2\nassert f(lambda: 1) == 3\n", []),
        ("no python at all", []),
    ],
)
def test_calls_in_tests(tests: str, found: list[str]) -> None:
    assert texts(from_tests(tests, F)) == found


def test_imports_that_arguments_need_come_along_and_the_candidates_own_does_not() -> None:
    tests = "import datetime\nfrom solution import f\nimport pytest\nfrom math import inf\nassert f(inf) == 1\n"
    assert setup_of(tests) == "import datetime\nfrom math import inf"


@pytest.mark.parametrize(
    ("prompt", "call", "expected"),
    [
        (">>> f(3)\n4\n", "f(3)", 4),
        ("Write f.\n    >>> f([1, 2])\n    [2]\n    >>> f([])\n    []\n", "f([1, 2])", ["list", 2]),
        ("For example f(3) -> 4.", "f(3)", 4),
        ("f('a, (b') => 'c'", "f('a, (b')", "c"),
        ("f(1, 2) == [3]  # three", "f(1, 2)", ["list", 3]),
        ("e.g. `f(5)` returns `True` and", "f(5)", True),
        ("f(5) should return -7, always", "f(5)", -7),
        ("f(2.5) = 3.25.", "f(2.5)", 3.25),
        ("f(5) → None", "f(5)", None),
        ("f([(1, 2)]) ➞ {'a': 1}", "f([(1, 2)])", ["dict", "a", 1]),
        ("Example 1:\nInput: x = [2, 7], y = 9\nOutput: [0, 1]\n", "f([2, 7], 9)", ["list", 0, 1]),
        ("Call f(8) and see.", "f(8)", UNKNOWN),
        (">>> f(1)\n# gives one\n", "f(1)", UNKNOWN),
    ],
)
def test_examples_in_a_prompt(prompt: str, call: str, expected: object) -> None:
    found = from_prompt(prompt, F)
    assert found[0].given.text == call
    assert found[0].expected == expected


@pytest.mark.parametrize("prompt", ["def f(x): ...", "Write f(a, b).", "f(", "f('", "f(1", "of(1) -> 2", "x.f(1) -> 2"])
def test_what_only_looks_like_an_example_is_none(prompt: str) -> None:
    assert from_prompt(prompt, F) == []


def test_every_call_of_a_method_is_the_end_of_a_sequence() -> None:
    tests = "s = Stack()\ns.push(1)\nassert s.pop() == 1\n"
    assert texts(from_tests(tests, STACK)) == ["Stack(); .push(1)", "Stack(); .push(1); .pop()"]
    prompt = ">>> s = Stack()\n>>> s.push(4)\n>>> s.pop()\n4\n"
    example = Example(Input((Call("Stack"), Call("push", ("4",)), Call("pop"))), 4)
    assert from_prompt(prompt, STACK)[-1] == example


def test_samples_of_a_program() -> None:
    prompt = "Double it.\n\nInput:\n```\n3\n```\nOutput:\n```\n6\n```\n"
    found = from_prompt(prompt, PROGRAM_TARGET)
    assert [(example.given.given, example.expected) for example in found] == [("3\n", "6")]
    assert [given.given for given in from_tests("input:\n3\noutput:\n6\n", PROGRAM_TARGET)] == ["3\n"]
