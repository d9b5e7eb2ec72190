"""When a higher temperature is offered."""

import pytest

from engine.selection.variety import offer_of_heat


@pytest.mark.parametrize(
    ("candidates", "largest", "temperature", "sentence"),
    [
        (1, 1, 0.2, ""),
        (2, 1, 0.2, ""),  # half of them is not most of them
        (4, 2, 0.2, ""),
        (4, 3, 0.2, "3 of 4 candidates are the same code at temperature 0.2; try 0.8 for more variety."),
        (2, 2, 0.59, "All 2 candidates are the same code at temperature 0.59; try 0.8 for more variety."),
        (2, 2, 0.6, ""),  # warm enough
        (
            *(2, 2, 0.0),
            "All 2 candidates are the same code, since temperature 0 always takes the likeliest token; "
            "try 0.8 for more variety.",
        ),
    ],
)
def test_heat_is_offered_where_cold_made_most_of_them_alike(
    candidates: int, largest: int, temperature: float, sentence: str
) -> None:
    assert offer_of_heat(candidates, largest, temperature) == sentence
