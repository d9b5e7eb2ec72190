"""Results as data: which are the same, how they read, and that what a test writes gives them back."""

import collections
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import uuid
from typing import Any

import pytest

from engine.elicitation import values
from engine.elicitation.values import NoSource, decides, same, show, source
from engine.runner.encoding import encode

Point = collections.namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1


class Liar:
    """Claims to be what it is not."""

    def __repr__(self) -> str:
        return "[1, 2, 3]"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


PLAIN = [
    *(None, True, 0, -7, 2**80, 1.5, "a'b\n", b"\x00a", (), (1,), [1, [2, (3,)]], {}, {"a": {1, 2}}, {1: [2]}),
    *(set(), {1, 2}, frozenset({"a"}), frozenset(), range(3), range(1, 9, 2), 1 + 2j, bytearray(b"a"), ...),
    *(decimal.Decimal("1.10"), fractions.Fraction(1, 3), datetime.date(2024, 2, 29), datetime.timedelta(1, 2, 3)),
    *(datetime.datetime(2024, 1, 2, 3, 4), datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), datetime.time(3, 4, 5)),
    *(uuid.UUID(int=5), pathlib.PurePosixPath("a/b"), collections.Counter("aab"), collections.OrderedDict(a=1)),
    *(collections.deque([1, 2]), math.inf, -math.inf),
]


@pytest.mark.parametrize("result", PLAIN, ids=repr)
def test_what_a_test_writes_is_equal_to_the_result(result: object) -> None:
    written, modules = source(encode(result))
    names: dict[str, Any] = {name: __import__(name) for name in modules}
    assert eval(written, names) == result
    assert same(encode(result), encode(eval(written, names)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.1 + 0.2, 0.3),
        (1e-12, 0.0),
        (math.nan, math.nan),
        ([0.1 + 0.2], [0.3]),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}),
        ({1, 2, 3}, {3, 2, 1}),
        ({1}, frozenset({1})),
        ({(1, 2): [3]}, {(1, 2): [3.0]}),
        (Point(1, 2), (1, 2)),
        (collections.Counter(a=1), {"a": 1}),
        (collections.defaultdict(int, a=1), {"a": 1}),
    ],
)
def test_the_same_is_what_an_equality_would_find(one: object, other: object) -> None:
    assert same(encode(one), encode(other))


def test_a_set_is_the_same_in_whatever_order_it_comes() -> None:
    assert same(["set", 1, "a", ["tuple", 2]], ["frozenset", ["tuple", 2], 1, "a"])
    assert not same(["set", 1, 2], ["set", 2, 3])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(([1], (1,)), ("1", 1), (None, False), (0, None), ([], ()), ([1, 2], [2, 1]), ({1}, [1]), (b"a", "a")),
        *((1.0, 1.01), (math.nan, 0.0), (10**400, 1e308), ({"a": 1}, {"a": 2}), ({"a": 1}, {"a": 1, "b": 1})),
        (datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1)),
        (range(3), [0, 1, 2]),
        (Liar(), Liar()),
    ],
    ids=repr,
)
def test_what_an_equality_tells_apart_is_not_the_same(one: object, other: object) -> None:
    assert not same(encode(one), encode(other))


@pytest.mark.parametrize("result", [Liar(), [Liar()], {"a": Liar()}, object(), len, Colour.RED, Liar, print], ids=str)
def test_what_has_no_value_decides_nothing_and_becomes_no_test(result: object) -> None:
    with pytest.raises(NoSource):
        source(encode(result))


def test_an_object_is_shown_by_its_repr_and_never_decides() -> None:
    assert show(encode(Liar())) == "[1, 2, 3]"
    assert not decides(encode([Liar()]))
    assert not same(encode(Liar()), encode([1, 2, 3]))


class Raising:
    def __repr__(self) -> str:
        raise ValueError("no")


def test_a_repr_that_raises_is_said_to() -> None:
    assert show(encode(Raising())) == "<Raising, whose repr raises ValueError>"


def test_sets_are_shown_in_one_order_and_named_tuples_by_name() -> None:
    assert show(encode({3, 10, 2})) == show(encode({10, 2, 3})) == "{2, 3, 10}"
    assert show(encode([Point(1, 2)])) == "[Point(x=1, y=2)]"


def endless() -> Any:
    while True:
        yield 7


def test_an_iterator_is_its_items_and_an_endless_one_decides_nothing() -> None:
    assert show(encode(iter([1, 2]))) == "[1, 2]"
    assert decides(encode(iter([1, 2])))
    assert show(encode(endless())).endswith("7, 7, ...]")
    assert not decides(encode(endless()))


@pytest.mark.parametrize(
    "large", [[0] * 100_000, "x" * 100_000, 10**50_000, [[[0] * 50] * 50] * 50], ids=lambda x: type(x).__name__
)
def test_what_is_too_large_to_look_at_decides_nothing(large: object) -> None:
    assert values.tag(encode(large)) == "large"
    assert not decides(encode(large))


def test_a_list_that_holds_itself_is_too_large() -> None:
    ring: list[object] = []
    ring.append(ring)
    assert encode(ring) == ["large", "list"]


@pytest.mark.parametrize(
    "wire", [["list"], ["range"], ["datetime", 1], ["named"], ["int"], ["int", 3], [], [[]], ["?"]]
)
def test_garbled_data_is_the_same_as_nothing_and_raises_nothing(wire: Any) -> None:
    assert isinstance(show(wire), str)
    assert same(wire, ["tuple", 1]) is False


def test_numpy_arrays_are_compared_by_their_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert same(encode(numpy.array([1.0, 2.0])), encode(numpy.array([1.0, 2.0 + 1e-12])))
    assert not same(encode(numpy.array([1, 2])), encode([1, 2]))
    assert same(encode(numpy.int64(3)), encode(3))
    written, modules = source(encode(numpy.array([[1, 2]])))
    assert modules == {"numpy"}
    assert (eval(written, {"numpy": numpy}) == numpy.array([[1, 2]])).all()
