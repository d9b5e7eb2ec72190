"""What prompt, tests and candidates are about."""

import pytest

from engine.elicitation.target import CLASS, FUNCTION, PROGRAM, NothingToAsk, find_target

ADD = "def add(a: int, b: int = 0):\n    return helper(a, b)\n\n\ndef helper(x, y):\n    return x + y\n"
STACK = "class Stack:\n    def push(self, x):\n        ...\n    def pop(self):\n        ...\n"
STACK += "    def _own(self):\n        ...\n"


@pytest.mark.parametrize(
    ("prompt", "tests", "name"),
    [
        ("Write add(a, b).", "", "add"),
        ("Add two numbers.", "", "add"),
        ("Complete it:\n```python\ndef helper(x, y):\n    ...\n```", "", "helper"),
        ("Add two numbers.", "from solution import helper\nassert helper(1, 2) == 3\n", "helper"),
    ],
)
def test_the_function_is_what_tests_call_or_the_prompt_names_or_nothing_else_calls(
    prompt: str, tests: str, name: str
) -> None:
    target = find_target(prompt, tests, [ADD, ADD])
    assert (target.kind, target.name) == (FUNCTION, name)


def test_a_function_that_one_of_three_defines_is_not_asked_about() -> None:
    other = "def plus(a, b):\n    return a + b\n"
    assert find_target("Write add or plus.", "", [ADD, other, other]).name == "plus"


def test_parameters_are_those_that_most_have() -> None:
    target = find_target("add", "", [ADD, ADD, "def add(a, b, c):\n    ..."])
    assert [(p.name, p.annotation, p.required) for p in target.parameters] == [("a", "int", True), ("b", "int", False)]


def test_a_class_has_the_methods_that_most_candidates_have() -> None:
    target = find_target("Write a class Stack.", "", [STACK, STACK, STACK + "    def peek(self):\n        ...\n"])
    assert target.kind == CLASS
    assert list(target.methods) == ["push", "pop"]
    assert [p.name for p in target.methods["push"]] == ["x"]


def test_code_that_reads_its_input_is_a_program() -> None:
    script = "n = int(input())\nprint(n * 2)\n"
    assert find_target("Double the number on standard input.", "", [script, script]).kind == PROGRAM
    assert find_target("x", "input:\n1\noutput:\n2\n", [script]).kind == PROGRAM


@pytest.mark.parametrize("code", ["SELECT 1", "x = 1", "<html>", ""])
def test_what_has_nothing_to_call_is_said_to(code: str) -> None:
    with pytest.raises(NothingToAsk, match=r"nothing to call|in common"):
        find_target("Anything.", "", [code, code])


def test_a_class_without_methods_is_said_to_have_none() -> None:
    with pytest.raises(NothingToAsk, match="no method in common"):
        find_target("class A", "", ["class A:\n    x = 1\n"])
