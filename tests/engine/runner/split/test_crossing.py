"""Both ends of the conversation in one process: what crosses, as what it comes out, and what stays behind."""

import collections
import datetime
import decimal
import enum
import fractions
import math
import os
import threading
import uuid
import zoneinfo
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.runner.split import values
from engine.runner.split.candidate import Prints
from engine.runner.split.tests import TestsLink
from tests.engine.runner.split.conftest import MADE, Echo


class Named(collections.namedtuple("Named", "x y")):
    pass


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Plain:
    pass


class Color(enum.Enum):
    RED = 1


KEPT = Plain()
MADE |= {"named": lambda: Named(1, 2), "liar": lambda: Liar(4), "plain": lambda: KEPT, "color": lambda: Color.RED}


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(st.characters(exclude_categories=())),
    st.binary(max_size=50),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, datetime.UTC, zoneinfo.ZoneInfo("UTC")])),
    st.times(),
    st.timedeltas(),
    st.uuids(),
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.sets(HASHABLE, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=15,
)


def types_of(value: Any) -> Any:
    if isinstance(value, dict):
        return dict, [(types_of(k), types_of(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [types_of(v) for v in value]
    if isinstance(value, set | frozenset):
        return type(value), {repr(types_of(v)) for v in value}
    return type(value)


@settings(max_examples=150, deadline=None)
@given(value=VALUES)
def test_every_plain_value_comes_back_as_exactly_what_it_was(value: Any, ends: tuple[TestsLink, Echo]) -> None:
    back = ends[0].ask("echo", (value,))[0]
    assert back == value
    assert types_of(back) == types_of(value)
    if isinstance(value, float):
        assert math.copysign(1, back) == math.copysign(1, value)


EXACT = [
    float("nan"),
    10**5000,
    -(2**63) - 1,
    ...,
    NotImplemented,
    range(1, 9, 2),
    slice(None, 3),
    Path("/a/b"),
    uuid.UUID(int=7),
    fractions.Fraction(1, 3),
    decimal.Decimal("-0.00"),
    bytearray(b"x"),
    collections.deque([1, 2], maxlen=2),
    collections.Counter("aab"),
    collections.OrderedDict(b=1, a=2),
    collections.defaultdict(int, {"a": 1}),
    int,
    ValueError,
    collections.OrderedDict,
]


@pytest.mark.parametrize("value", EXACT, ids=lambda v: f"{type(v).__name__}")
def test_other_kinds(value: Any, link: TestsLink) -> None:
    back = link.ask("echo", value)
    assert type(back) is type(value)
    assert back == value or math.isnan(value)
    assert getattr(back, "maxlen", None) == getattr(value, "maxlen", None)


def test_a_container_is_the_same_one_on_both_sides(link: TestsLink) -> None:
    rows: list[Any] = [[1], {"a": {2}}]
    link.ask("keep", rows)
    assert link.ask("kept") is rows
    rows[0].append(3)
    rows[1]["b"] = rows
    assert link.ask("change", lambda kept: kept == rows and kept[1]["b"] is kept)
    link.ask("change", lambda kept: kept[1].clear())
    assert rows == [[1, 3], {}]


def test_what_nobody_holds_any_more_is_let_go(ends: tuple[TestsLink, Echo], link: TestsLink) -> None:
    for _ in range(200):
        assert len(link.ask("echo", [[1], [2], {"a": [3]}])) == 3
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    link.ask("echo", deep)
    del deep
    for _ in range(4):
        link.ask("echo", None)
    assert len(link.shared) < 20
    assert len(ends[1].shared) < 20


def test_mirrors_come_and_go_with_their_objects(ends: tuple[TestsLink, Echo], link: TestsLink) -> None:
    before = len(ends[1]._mine)
    mirror = link.ask("make", "plain")
    assert link.ask("make", "plain") is mirror
    assert link.ask("echo", mirror) is mirror
    del mirror
    link.ask("echo", None)
    link.ask("echo", None)
    assert len(ends[1]._mine) <= before + 2  # its class stays
    assert all(known is not KEPT for known in ends[1]._mine.values())


def test_values_of_derived_types_keep_their_content_and_say_who_decides(link: TestsLink) -> None:
    named = link.ask("make", "named")
    assert (named, named.x, type(named).__name__) == ((1, 2), 1, "Named")
    assert isinstance(named, tuple)
    assert not link.soft
    liar = link.ask("make", "liar")
    assert liar + 1 == 5
    assert not link.soft
    assert liar == 99
    assert link.soft


def test_an_exception_crosses_with_its_arguments_and_its_cause(link: TestsLink) -> None:
    try:
        try:
            raise KeyError("k")
        except KeyError as cause:
            raise OSError(2, "No such file", "name") from cause
    except OSError as error:
        back = link.ask("echo", error)
    assert (type(back), back.errno, back.filename) == (FileNotFoundError, 2, "name")
    assert isinstance(back.__cause__, KeyError)
    assert back.__context__ is back.__cause__


def test_of_two_equal_hours_each_stays_itself(link: TestsLink) -> None:
    for fold in (0, 1):
        assert link.ask("echo", datetime.datetime(2024, 10, 27, 2, 30, fold=fold)).fold == fold
        assert link.ask("echo", datetime.time(2, 30, fold=fold)).fold == fold


def test_a_character_that_is_printed_in_pieces_is_one() -> None:
    told: list[list[str]] = []
    prints = Prints("stdout", told, lambda: None)
    for byte in "aä€".encode():
        prints.write(bytes([byte]))
    assert "".join(text for _, text in told) == "aä€"


def halted() -> Any:
    """A generator that has not begun."""
    yield


UNCROSSABLE = [os, threading.Lock(), open, halted().gi_frame, type("Elsewhere", (), {})()]


@pytest.mark.parametrize("value", UNCROSSABLE, ids=lambda v: type(v).__name__)
def test_what_the_tests_must_not_hand_over(value: Any, link: TestsLink) -> None:
    if value is open:
        assert link.ask("echo", value) is not open  # by name: the candidate gets its own, and gives back a mirror of it
        return
    with pytest.raises(values.CannotCross, match="the tests hand over"):
        link.ask("echo", value)
    assert link.ask("echo", 1) == 1


def test_a_class_that_only_says_what_something_is_may_not_be_used(link: TestsLink) -> None:
    double = mock.Mock()
    link.ask("keep", double)
    assert link.handed_over(double)
    assert not link.handed_over(type(double))
    with pytest.raises(AttributeError):
        link.serve("get", (type(double), "mro"))
    link.ask("keep", ValueError("no"))
    assert not link.handed_over(ValueError)


def test_both_ends_agree_after_a_value_that_could_not_cross(link: TestsLink) -> None:
    for bad in ([1, threading.Lock()], {"a": [os]}, (b"x" * (13 << 20),)):
        kept: list[Any] = [1]
        function = lambda value=kept: value  # noqa: E731 - another one each time
        with pytest.raises(values.CannotCross):
            link.ask("echo", (kept, function, bad))
        assert link.ask("echo", kept) is kept
        assert link.ask("echo", function) is function
