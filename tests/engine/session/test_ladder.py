"""Which models a search may go on with, in which order, and how they are asked for."""

from dataclasses import replace

import pytest

from engine.contract import ModelChoice
from engine.models.library import ListedModel
from engine.session.ladder import ladder, stand_in


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
    assert [round(step.speed, 2) for step in steps] == [1.0, 1.93, 4.87]
    assert steps[1].load_s < steps[2].load_s


def test_a_larger_one_is_asked_for_without_the_draft_of_the_first_and_without_the_network() -> None:
    first, *larger = ladder(ModelChoice("small", draft="tiny"), ROWS)
    assert (first.choice.draft, first.choice.offline) == ("tiny", False)
    assert {(step.choice.draft, step.choice.offline) for step in larger} == {("", True)}


@pytest.mark.parametrize("choice", [ModelChoice("unknown"), ModelChoice("small", server="local")])
def test_where_nobody_knows_what_is_larger_there_is_one_step(choice: ModelChoice) -> None:
    assert [step.choice for step in ladder(choice, ROWS)] == [choice]


AWAY = [
    row("huge", 30_000, here=False, download_bytes=9_000),
    row("large", 1_500, here=False, download_bytes=1_000, default=True),
    row("middle", 1_000, here=False, download_bytes=700),
    row("small", 500, here=False, download_bytes=400),
    row("tiny", 100, here=False, download_bytes=80),
    row("of another program", 400, source="Ollama"),
]


@pytest.mark.parametrize(
    ("model", "here", "expected"),
    [
        ("large", (), "small"),  # takes at most half as long to download
        (ModelChoice.model, (), "small"),
        ("large", ("tiny",), "tiny"),  # what is here is there at once
        ("large", ("tiny", "middle"), "middle"),
        ("large", ("huge",), "small"),  # larger ones are no help while it downloads
        ("tiny", (), None),
        ("large", ("large",), None),
        ("unknown", (), None),
    ],
)
def test_who_stands_in_while_a_model_downloads(model: str, here: tuple[str, ...], expected: str | None) -> None:
    rows = [replace(each, here=True, download_bytes=0) if each.name in here else each for each in AWAY]
    found = stand_in(ModelChoice(model), rows)
    assert (found.name if found else None) == expected


def test_who_does_not_fit_and_a_server_stand_in_for_nobody() -> None:
    rows = [replace(each, fits=each.name == "large") for each in AWAY]
    assert stand_in(ModelChoice("large"), rows) is None
    assert stand_in(ModelChoice("large", server="http://local"), AWAY) is None
