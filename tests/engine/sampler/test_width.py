"""How many at a time: wide where rows are free, narrow for the first answer where they are not."""

import pytest

from engine.sampler.cost_table import CostTable
from engine.sampler.width import Widths, choose_widths, fastest_width

FLAT = CostTable({1: 1.0, 64: 1.0})  # a GPU: a step is bound by memory
STEEP = CostTable({1: 1.0, 64: 64.0})  # every row costs what the first one costs
LAPTOP = CostTable({1: 43, 2: 44, 4: 48, 8: 64, 16: 83, 32: 118})  # two cores, 0.5B int8, milliseconds
AVX2 = CostTable({1: 29, 2: 31, 4: 36, 8: 62, 16: 127})


@pytest.mark.parametrize("goal", ["all", "first"])
@pytest.mark.parametrize("n", [1, 2, 8, 32])
def test_rows_that_are_free_are_all_taken(goal, n):
    assert choose_widths(FLAT, n, goal) == Widths(n, n)


def test_rows_that_cost_in_full_are_taken_one_by_one():
    assert choose_widths(STEEP, 8, "first") == Widths(1, 1)


@pytest.mark.parametrize("n", [8, 16, 32])
def test_a_laptop_writes_all_at_once_but_looks_for_the_first_with_few(n):
    assert choose_widths(LAPTOP, n, "all") == Widths(n, n)
    first = choose_widths(LAPTOP, n, "first")
    assert 2 <= first.first <= 4
    assert first.then == n


def test_where_wide_rows_bring_nothing_the_narrowest_as_fast_is_taken():
    assert fastest_width(AVX2, 16) <= 8
