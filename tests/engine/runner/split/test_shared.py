"""Containers that both sides hold: what tells that one has changed, whatever their number and length."""

import gc
from typing import Any

import pytest

from engine.runner.split import identity
from engine.runner.split.shared import Shared, kind_of
from engine.runner.split.values import Garbled


def table(values: list[Any]) -> Shared:
    shared = Shared(0)
    for value in values:
        kind = kind_of(value)
        assert kind is not None
        shared.agreed(shared.add(value, kind), kind.read(value))
    return shared


def changed(shared: Shared) -> list[Any]:
    return [entry.value for _, entry, _ in shared.changes()]


MANY: dict[str, list[Any]] = {
    "short lists": [[n, n + 1000] for n in range(500)],
    "dicts": [{"a": n, n: 1000 + n} for n in range(500)],
    "sets": [{n, n + 1000} for n in range(500)],
    "long lists": [list(range(n, n + 1000)) for n in range(70)],
}


@pytest.mark.parametrize("name", MANY)
def test_a_change_among_many_quiet_containers_is_seen(name: str) -> None:
    values = [value.copy() for value in MANY[name]]
    shared = table(values)
    for _ in range(3):
        assert changed(shared) == []
    assert bool(shared._settled) == (name != "long lists")
    some = values[33]
    if isinstance(some, dict):
        some["a"] = "new"
    elif isinstance(some, set):
        some.add("new")
    else:
        some[0] = float(some[0])  # equal to what it was, but not the same
    assert [id(value) for value in changed(shared)] == [id(some)]
    values[34].clear()
    assert {id(value) for value in changed(shared)} == {id(some), id(values[34])}


def test_an_item_that_moves_on_to_the_next_container_is_seen() -> None:
    values = [[n, n + 1000] for n in range(500)]
    shared = table(values)
    assert changed(shared) == []
    assert shared._settled
    values[7].insert(0, values[6].pop())  # one after the other they hold what they held before
    assert [id(value) for value in changed(shared)] == [id(values[6]), id(values[7])]


def test_what_the_other_side_changed_can_be_changed_back() -> None:
    values: list[list[object]] = [[n] for n in range(500)]
    shared = table(values)
    assert changed(shared) == []
    number, before = shared.number(values[3]), values[3][0]
    assert number is not None
    values[3][0] = "theirs"
    shared.agreed(number, ["theirs"])
    values[3][0] = before
    assert [id(value) for value in changed(shared)] == [id(values[3])]


def test_data_that_is_read_anew_each_time_is_quiet_while_it_says_the_same() -> None:
    data = bytearray(b"data")
    shared = table([data])
    assert changed(shared) == []
    data[0] = 0
    assert changed(shared) == [data]


def test_settled_containers_are_let_go_of_too() -> None:
    values = [[n] for n in range(500)]
    shared = table(values)
    assert changed(shared) == []
    assert shared._settled
    del values[100:]
    gc.collect()
    for _ in range(20):
        shared.let_go()
    assert len(shared) == 100


def test_each_side_numbers_its_own() -> None:
    shared, kind = Shared(0), kind_of([])
    assert kind is not None
    with pytest.raises(Garbled):
        shared.take(4, kind, None)
    assert shared.take(3, kind, None) == []
    assert shared.add([], kind) % 2 == 0


@pytest.mark.parametrize("same", [identity.same, identity._one_by_one])
def test_two_lists_hold_the_same_objects_only_if_each_is_the_same(same: identity.Same) -> None:
    for size in (0, 1, 255, 256, 10_000):
        items: list[Any] = [object() for _ in range(size)]
        assert same(items, list(items))
        assert not same(items, [*items, 1])
        if size:
            assert not same(items, [*items[:-1], object()])
    ones = [1] * 500
    assert not same(ones, [True] * 500)


def test_comparing_by_memory_works_here() -> None:
    assert identity._by_memory() is not None
