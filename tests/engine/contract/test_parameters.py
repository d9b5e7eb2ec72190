"""One table says what may be chosen for a run; whatever carries a choice agrees with it."""

import math
from dataclasses import fields
from typing import Any

import pytest

from engine.contract import BadRequest, ModelChoice, Request, Sampling, Speculation
from engine.contract.parameters import (
    ADVANCED,
    MODEL,
    PARAMETERS,
    REQUEST,
    RUN_BAR,
    SAMPLING,
    SPECULATION,
    Parameter,
    Range,
    advanced,
    carried_by,
)

CARRIERS = {
    SAMPLING: Sampling(),
    SPECULATION: Speculation(),
    REQUEST: Request("p", 0),
    MODEL: ModelChoice(),
}


def made(parameter: Parameter[Any], value: object) -> object:
    """Its carrier, with that value. Raises BadRequest."""
    kind: Any = type(CARRIERS[parameter.part])
    needed = {"prompt": "p", "seed": 0} if kind is Request else {}
    return kind(**{**needed, parameter.name: value})


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
def test_a_parameter_has_words_and_its_carrier_has_its_default(parameter: Parameter[Any]) -> None:
    carrier = CARRIERS[parameter.part]
    if parameter.name != "seed":  # every request has one
        assert getattr(carrier, parameter.name) == parameter.default
    parameter.check(parameter.default)
    assert parameter.title[0].isupper()
    assert parameter.help
    assert not parameter.help.endswith(".")
    assert parameter.flag.startswith("--")
    assert parameter.place in (RUN_BAR, ADVANCED, "")


def test_names_flags_and_titles_are_given_once() -> None:
    for part in ("name", "flag", "title"):
        values = [getattr(parameter, part) for parameter in PARAMETERS]
        assert len(set(values)) == len(values), part


@pytest.mark.parametrize("part", [SAMPLING, SPECULATION])
def test_everything_that_can_be_sampled_or_drafted_is_in_the_table(part: str) -> None:
    assert {field.name for field in fields(CARRIERS[part])} == {parameter.name for parameter in carried_by(part)}  # type: ignore[arg-type]


RANGED = [parameter for parameter in PARAMETERS if parameter.range is not None]


@pytest.mark.parametrize("parameter", RANGED, ids=lambda parameter: parameter.name)
def test_the_edges_of_a_range_are_those_of_its_carrier(parameter: Parameter[Any]) -> None:
    limits = parameter.range
    assert limits is not None
    step = 1 if limits.whole else 1e-6
    inside = [limits.low + step if limits.above else limits.low, *limits.field]
    outside = [limits.low if limits.above else limits.low - step]
    if math.isfinite(limits.high):
        inside.append(limits.high)
        outside.append(limits.high + step)
    for value in inside:
        assert getattr(made(parameter, value), parameter.name) == value
    for value in outside:
        with pytest.raises(BadRequest, match="must be") as caught:
            made(parameter, value)
        assert parameter.limits.split(",")[0] in str(caught.value)


@pytest.mark.parametrize(
    "parameter", [each for each in PARAMETERS if each.choices], ids=lambda parameter: parameter.name
)
def test_only_what_is_listed_can_be_chosen(parameter: Parameter[Any]) -> None:
    for value, title in parameter.choices:
        assert title
        parameter.check(value)
    with pytest.raises(BadRequest, match="is not known; choose") as caught:
        made(parameter, "something else")
    assert all(value in str(caught.value) for value in parameter.values)


@pytest.mark.parametrize(
    ("limits", "unit", "words"),
    [
        (Range(0, 10), "", "between 0 and 10"),
        (Range(0, 1, above=True), "", "above 0 and at most 1"),
        (Range(0.5), "MiB", "at least 0.5 MiB"),
        (Range(1, above=True), "", "above 1"),
        (Range(0, above=True), "seconds", "a positive number of seconds"),
        (Range(0, above=True), "", "a positive number"),
    ],
)
def test_a_range_in_words(limits: Range, unit: str, words: str) -> None:
    assert limits.in_words(unit) == words


def test_what_is_in_advanced_is_in_the_order_of_the_table() -> None:
    assert [each.name for each in advanced()] == [each.name for each in PARAMETERS if each.place == ADVANCED]
