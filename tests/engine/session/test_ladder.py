"""Which models a search may go on with, in which order, and how they are asked for."""

from dataclasses import replace

import pytest

from engine.contract import ModelChoice
from engine.models.library import ListedModel
from engine.session.ladder import ladder


def row(name: str, parameters: int, **more: object) -> ListedModel:
    plain = ListedModel(
        name, name.upper(), "Catalog", parameters, 4096, "MIT", "", 0, 0, 0, True, True, False, True, "fits"
    )
    return replace(plain, **more)


ROWS = [
    row("large", 7_000, converted_bytes=10**9),
    row("small", 500, default=True),
    row("tiny", 100),
    row("middle", 1_500, original_bytes=5 * 10**8),
    row("elsewhere", 3_000, here=False),
    row("too large", 9_000, fits=False),
]


@pytest.mark.parametrize("model", ["small", ModelChoice.model])
def test_the_larger_ones_that_are_here_and_fit_follow_by_size(model: str) -> None:
    steps = ladder(ModelChoice(model), ROWS)
    assert [step.title for step in steps] == ["small", "middle", "large"]
    assert steps[0].choice == ModelChoice(model)
    assert [step.speed for step in steps] == [1.0, 3.0, 14.0]
    assert steps[1].load_s < steps[2].load_s


def test_a_larger_one_is_asked_for_without_the_draft_of_the_first_and_without_the_network() -> None:
    first, *larger = ladder(ModelChoice("small", draft="tiny"), ROWS)
    assert (first.choice.draft, first.choice.offline) == ("tiny", False)
    assert {(step.choice.draft, step.choice.offline) for step in larger} == {("", True)}


@pytest.mark.parametrize("choice", [ModelChoice("unknown"), ModelChoice("small", server="local")])
def test_where_nobody_knows_what_is_larger_there_is_one_step(choice: ModelChoice) -> None:
    assert [step.choice for step in ladder(choice, ROWS)] == [choice]
