"""Inputs that are made: by change, by type, as sequences and as a program's input."""

import ast
from typing import Any

import pytest

from engine.elicitation.by_type import by_type, of_annotation
from engine.elicitation.constants import constants
from engine.elicitation.gathering import MOST, gather
from engine.elicitation.inputs import EDGE, FAR, LONGEST, NEAR, PROMPT, TYPES, Input
from engine.elicitation.mutation import mutated
from engine.elicitation.program_inputs import of_program
from engine.elicitation.sequences import of_class
from engine.elicitation.target import CLASS, FUNCTION, PROGRAM, Parameter, Target

MERGE = Input.of_call("merge", ["[[1, 3], [2, 6]]"], PROMPT)


def arguments(given: Input) -> list[Any]:
    return [ast.literal_eval(text) for text in given.calls[0].arguments]


@pytest.mark.parametrize(
    "texts",
    [["3"], ["-2.5"], ["'word'"], ["[1, 2]"], ["(1, 'a')"], ["{'a': 1}"], ["{1, 2}"], ["True", "None"], ["[[1]]", "2"]],
)
def test_a_changed_input_keeps_the_types_of_its_arguments(texts: list[str]) -> None:
    known = Input.of_call("f", texts)
    found = mutated([known], 30)
    assert found
    assert known not in found
    for given in found:
        assert [type(value) for value in arguments(given)] == [type(value) for value in arguments(known)]


def test_changes_are_near_ones_and_extremes_and_always_the_same() -> None:
    found = mutated([MERGE], 40)
    assert {given.origin for given in found} == {NEAR, EDGE}
    assert found == mutated([MERGE], 40)
    shown = [given.calls[0].arguments[0] for given in found]
    assert "[]" in shown
    assert any(a[1] == b[0] for text in shown if len(pairs := ast.literal_eval(text)) == 2 for a, b in [pairs])


def test_arguments_of_examples_are_mixed_and_those_that_are_no_literals_left_alone() -> None:
    rows = [
        Input.of_call("f", ["1", "'a'"]),
        Input.of_call("f", ["5", "'b'"]),
        Input.of_call("f", ["date(1, 2, 3)", "'c'"]),
    ]
    found = {tuple(arguments(given)) for given in mutated(rows, 60)}
    assert {(1, "b"), (5, "a")} & found


def test_numbers_below_all_known_ones_are_marked_as_far_from_what_is_meant() -> None:
    target = Target(FUNCTION, "f", (Parameter("n"), Parameter("xs")))
    positive = {given.text: given.origin for given in gather(target, "f(3, [5, 1]) and f(4, [2])", "").inputs}
    assert positive["f(0, [5, 1])"] == positive["f(3, [0, 1])"] == FAR
    assert positive["f(3, [])"] == EDGE
    assert all(origin != FAR for text, origin in positive.items() if "0" not in text and "-" not in text)
    both = gather(target, "f(-3, [-5, 0]) and f(0, [2])", "").inputs
    assert FAR not in {given.origin for given in both}


def test_no_input_is_longer_than_somebody_would_read() -> None:
    long = Input.of_call("f", [repr("word " * 200)])
    assert all(len(given.text) <= LONGEST for given in mutated([long, MERGE], 40))
    assert gather(Target(FUNCTION, "f"), f"f({'1' * 400}) -> 1", "").inputs


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        *(("int", int), ("str", str), ("float", float), ("bool", bool), ("list[int]", list), ("List[List[int]]", list)),
        *(("dict[str, int]", dict), ("tuple[int, str]", tuple), ("tuple[int, ...]", tuple), ("set[str]", set)),
        *(("Sequence[str]", list), ("typing.Iterable[int]", list), ("Dict[str, List[int]]", dict), ("'int'", int)),
        *(("Optional[int]", (int, type(None))), ("int | None", (int, type(None))), ("Union[int, str]", (int, str))),
    ],
)
def test_an_annotation_gives_values_of_its_type(annotation: str, kind: Any) -> None:
    found = [eval(text) for text in of_annotation(annotation)]
    assert len(found) > 1
    assert all(isinstance(value, kind) for value in found)


@pytest.mark.parametrize("annotation", ["", "Node", "Callable[[int], int]", "np.ndarray", "[", "list["])
def test_an_annotation_that_is_not_understood_raises_nothing(annotation: str) -> None:
    assert isinstance(of_annotation(annotation), tuple)


@pytest.mark.parametrize(
    ("name", "kind"), [("nums", list), ("s", str), ("n", int), ("text", str), ("words", list), ("matrix", list)]
)
def test_a_parameter_without_annotation_is_known_by_its_name(name: str, kind: type) -> None:
    found = by_type("f", [Parameter(name)], 10)
    assert all(isinstance(arguments(given)[0], kind) for given in found)
    assert {given.origin for given in found} == {TYPES}


def test_a_function_without_parameters_is_called_once() -> None:
    assert [given.text for given in by_type("f", [], 10)] == ["f()"]


ROMAN = "def f(s):\n    return {'I': 1, 'IV': 4, 'X': 10}[s] if s != 'MC' else 99\n"


def test_literals_of_the_code_are_a_dictionary_for_inputs_where_nothing_else_is_known() -> None:
    assert constants([ROMAN, ROMAN, "x = 'only once, and much too long for an input'\n"]) == (
        ["I", "X", "IV", "MC"],
        [1, 4, 10, 99],
    )
    target = Target(FUNCTION, "f", (Parameter("s"),))
    found = [arguments(given)[0] for given in gather(target, "Write f.", "", codes=[ROMAN]).inputs]
    assert {"I", "IV", "X", "MC"} <= set(found)
    assert any(len(text) > 2 and set(text) <= set("IVXMC") for text in found)


def test_numbers_of_the_code_are_limits_that_examples_are_moved_to() -> None:
    code = "def f(n):\n    return n > 17\n"
    found = gather(Target(FUNCTION, "f", (Parameter("n"),)), "f(3)", "", codes=[code]).inputs
    assert {16, 17, 18} <= {arguments(given)[0] for given in found}


STACK = Target(CLASS, "Stack", (Parameter("capacity", "int"),), {"push": (Parameter("x"),), "pop": (), "size": ()})


def test_objects_are_made_and_their_methods_called_a_few_times() -> None:
    found = of_class(STACK, [], 40)
    assert len(found) == len(set(found)) == 40
    assert all(given.calls[0].name == "Stack" and 1 <= len(given.calls) - 1 <= 5 for given in found)
    assert {given.calls[-1].name for given in found} == {"push", "pop", "size"}
    assert found == of_class(STACK, [], 40)


def test_a_programs_input_is_changed_in_its_numbers_and_words() -> None:
    found = of_program([Input(given="3\n1 2 3\n")], 20)
    assert found
    assert all(given.is_program and given.given.count("\n") == 2 for given in found)
    assert of_program([], 5)


def test_what_somebody_wrote_comes_first_and_there_are_no_more_than_the_limit() -> None:
    target = Target(FUNCTION, "f", (Parameter("x"),))
    found = gather(target, "f(1) -> 2 and f(3)", "assert f(7) == 8\n")
    assert [given.text for given in found.inputs[:3]] == ["f(7)", "f(1)", "f(3)"]
    assert len(found.inputs) == len(set(found.inputs)) <= MOST
    assert [example.given.text for example in found.examples] == ["f(1)"]


def test_a_class_and_a_program_have_inputs_without_any_example() -> None:
    assert gather(STACK, "A stack.", "").inputs
    assert gather(Target(PROGRAM), "Read a number.", "").inputs
