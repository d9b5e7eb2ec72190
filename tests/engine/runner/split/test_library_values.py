"""Values of the standard library and of numpy: each crosses as exactly what it is, both ways, or stays behind whole."""

import argparse
import array
import collections
import collections.abc
import configparser
import contextlib
import enum
import html.parser
import io
import ipaddress
import json
import numbers
import operator
import re
import signal
import string
import subprocess
import sys
import threading
import time
import traceback
import types
import typing
import urllib.parse
from http import HTTPStatus
from typing import Any

import numpy as np
import pytest

from engine.runner.split import values
from engine.runner.split.tests import TestsLink
from tests.engine.runner.split.conftest import MADE

COUNTS = collections.OrderedDict(b=1, a=2)
EXACT = [
    HTTPStatus.NOT_FOUND,
    signal.SIGTERM,
    re.IGNORECASE | re.MULTILINE,
    ipaddress.ip_address("10.0.0.1"),
    ipaddress.ip_network("2001:db8::/32"),
    ipaddress.ip_interface("10.0.0.1/24"),
    urllib.parse.urlparse("https://a.b/c?d=e#f"),
    urllib.parse.urlsplit("//a"),
    time.gmtime(0),
    array.array("d", [1.5, -0.0]),
    array.array("u", "añ"),
    memoryview(b"ab"),
    types.SimpleNamespace(a=1, b=[2]),
    argparse.Namespace(verbose=True, files=["a"]),
    collections.ChainMap({"a": 1}, {"b": 2}),
    collections.UserDict(a=1),
    collections.UserList([1, 2]),
    collections.UserString("abc"),
    {"a": 1}.keys(),
    {"a": 1}.items(),
    COUNTS.keys(),
    COUNTS.items(),
    types.MappingProxyType({"a": 1}),
    re.compile("a+", re.ASCII),
    np.float32(0.1),
    np.datetime64("2020-01-02", "D"),
    np.dtype([("name", "U5"), ("n", "<i4", (2,))]),
    np.dtype("float16"),
    np.float64,
    np.linalg.LinAlgError,
]


@pytest.mark.parametrize("value", EXACT, ids=lambda v: type(v).__name__)
def test_a_value_comes_back_as_exactly_what_it_was(value: Any, link: TestsLink) -> None:
    back = link.ask("echo", value)
    assert type(back) is type(value)
    assert back == value
    assert not link.soft


def test_views_of_values_show_what_the_dict_holds(link: TestsLink) -> None:
    for counts in ({"a": 1, "b": 2}, COUNTS, collections.Counter("ab"), collections.defaultdict(int, a=1)):
        view = link.ask("echo", counts.values())
        assert type(view) is type(counts.values())
        assert list(view) == list(counts.values())
    counts = {"a": 1}
    link.ask("keep", counts.keys())
    counts["b"] = 2
    assert sorted(link.ask("kept")) == ["a", "b"]


def test_members_of_enums_are_the_same_ones(link: TestsLink) -> None:
    assert link.ask("echo", HTTPStatus.OK) is HTTPStatus.OK
    assert link.ask("echo", {HTTPStatus.OK: [signal.SIGINT]}) == {HTTPStatus.OK: [signal.SIGINT]}


CALLS = [
    (operator.itemgetter("a"), {"a": 1}),
    (operator.itemgetter(0, 2), [1, 2, 3]),
    (operator.attrgetter("real"), 3),
    (operator.methodcaller("split", ","), "a,b"),
    (operator.methodcaller("split", sep=","), "a,b"),
    (np.sin, 0.5),
    (np.mean, [1, 2]),
    (len, "abc"),
]


@pytest.mark.parametrize(("function", "given"), CALLS, ids=lambda v: type(v).__name__)
def test_a_function_that_the_tests_hand_over_works_over_there(function: Any, given: Any, link: TestsLink) -> None:
    link.ask("keep", given)
    assert link.ask("change", function) == function(given)


TYPES = [list[int], int | None, typing.Optional[int], typing.Dict[str, int], typing.Any, typing.Union[int, str]]  # noqa: UP006, UP007, UP045


@pytest.mark.parametrize("hint", TYPES, ids=str)
def test_types_of_typing_reach_the_candidate(hint: Any, link: TestsLink) -> None:
    link.ask("keep", [hint])
    assert link.ask("change", str) == str([hint])


def test_shared_containers_of_the_library_stay_one_and_the_same(link: TestsLink) -> None:
    bag, numbers_, chain = types.SimpleNamespace(n=1), array.array("i", [1]), collections.ChainMap({}, {"a": 1})
    for value in (bag, numbers_, chain):
        link.ask("keep", value)
        assert link.ask("kept") is value
    link.ask("keep", bag)
    link.ask("change", lambda b: setattr(b, "n", 2))
    assert bag.n == 2
    link.ask("keep", numbers_)
    link.ask("change", lambda a: a.append(5))
    assert numbers_.tolist() == [1, 5]
    link.ask("keep", chain)
    link.ask("change", lambda c: c.update(a=3))
    assert chain.maps == [{"a": 3}, {"a": 1}]


def test_memory_that_is_not_all_or_not_to_be_changed_is_not_shared(link: TestsLink) -> None:
    whole = bytearray(b"data")
    MADE["whole"] = lambda: memoryview(whole)
    MADE["read only"] = lambda: memoryview(whole).toreadonly()
    MADE["a part"] = lambda: memoryview(whole)[1:3]
    assert type(link.ask("make", "whole")) is memoryview
    for name in ("read only", "a part"):
        view = link.ask("make", name)
        assert type(view) is not memoryview
        assert view.tobytes() == MADE[name]().tobytes()
    assert link.ask("make", "a part").tobytes() == b"at"


def test_what_a_container_is_made_with_comes_along(link: TestsLink) -> None:
    MADE["bounded"] = lambda: collections.deque([1, 2], 2)
    MADE["filling"] = lambda: collections.defaultdict(list, a=[1])
    bounded, filling = link.ask("make", "bounded"), link.ask("make", "filling")
    bounded.append(3)
    assert (bounded.maxlen, list(bounded)) == (2, [2, 3])
    assert filling["b"] == []


class Words(dict[str, int]):
    pass


class Row(list[int]):
    pass


class Mood(enum.Enum):
    GOOD = 1


class Level(enum.IntEnum):
    LOW = 1


class LyingWords(dict[str, int]):
    def items(self) -> Any:
        return {"b": 2}.items()

    def keys(self) -> Any:
        return {"b": 2}.keys()

    def __iter__(self) -> Any:
        return iter("b")


class LyingRow(list[int]):
    def __iter__(self) -> Any:
        return iter([1, 2, 3])


class Parser(html.parser.HTMLParser):
    pass


class Always(collections.abc.Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Any:
        return iter("a")

    def __len__(self) -> int:
        return 1


def made_config() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read_string("[a]\nb = 1\n")
    return config


KEPT_ALIVE = [Mood.GOOD]
SEEN_AS = {
    "words": (lambda: Words(a=1), dict),
    "row": (lambda: Row([1]), list),
    "mood": (lambda: Mood.GOOD, enum.Enum),
    "level": (lambda: Level.LOW, (enum.IntEnum, int)),
    "parser": (Parser, html.parser.HTMLParser),
    "always": (Always, collections.abc.Mapping),
    "config": (made_config, configparser.ConfigParser),
    "match": (lambda: re.match("a", "a"), re.Match),
    "text": (lambda: io.StringIO("a"), io.StringIO),
    "stack": (contextlib.ExitStack, contextlib.AbstractContextManager),
}
MADE |= {f"seen as {name}": make for name, (make, _) in SEEN_AS.items()}


@pytest.mark.parametrize("name", SEEN_AS)
def test_isinstance_holds_for_what_an_object_derives_from(name: str, link: TestsLink) -> None:
    made = link.ask("make", f"seen as {name}")
    assert isinstance(made, SEEN_AS[name][1])
    assert not isinstance(made, numbers.Complex) or name == "level"
    assert not isinstance(made, str)


def test_what_a_container_holds_is_not_what_its_own_class_says(link: TestsLink) -> None:
    MADE["lying words"], MADE["lying row"] = lambda: LyingWords(a=1), lambda: LyingRow([9])
    assert link.ask("content", link.ask("make", "lying words")) == {"a": 1}
    assert link.ask("content", link.ask("make", "lying row")) == [9]


class Claims:
    pass


Claims.__module__, Claims.__qualname__ = "decimal", "Decimal"
MADE["claims"] = Claims


def test_no_object_is_taken_for_a_plain_value_by_its_name(link: TestsLink) -> None:
    import decimal

    made = link.ask("make", "claims")
    assert not isinstance(made, decimal.Decimal)


ARRAYS = [
    np.array([("a", 1), ("b", 2)], dtype=[("name", "U5"), ("n", "i4")]),
    np.rec.array([(1, 2.0)], dtype=[("x", "i4"), ("y", "f8")]),
    np.arange(4.0).reshape(2, 2).view(np.matrix),
    np.ma.MaskedArray([1, 2, 3], mask=[0, 1, 0], fill_value=9),
    np.array([[1], None, "a"], dtype=object),
    np.zeros((0, 3)),
    np.array(5),
    np.array(["2020-01-01"], dtype="M8[D]"),
    np.array([True, False]),
]


@pytest.mark.parametrize("value", ARRAYS, ids=lambda v: f"{type(v).__name__} {v.dtype}")
def test_arrays_of_every_kind_are_shared(value: Any, link: TestsLink) -> None:
    link.ask("keep", value)
    assert link.ask("kept") is value
    MADE["array"] = value.copy
    back = link.ask("make", "array")
    assert type(back) is type(value)
    assert back.dtype == value.dtype
    assert back.shape == value.shape
    assert back.tolist() == value.tolist()
    assert getattr(back, "fill_value", None) == getattr(value, "fill_value", None)
    if value.dtype.kind in "if" and value.size:
        link.ask("change", lambda array: array.fill(7))
        assert np.asarray(np.ma.getdata(value)).ravel()[0] == 7


def test_an_array_with_another_shape_in_place_is_still_shared(link: TestsLink) -> None:
    value = np.arange(6)
    link.ask("keep", value)
    value.shape = (2, 3)
    assert link.ask("change", lambda array: array.shape) == (2, 3)


def test_notes_context_group_and_attributes_of_exceptions(link: TestsLink) -> None:
    try:
        try:
            raise KeyError("first")
        except KeyError:
            error = subprocess.CalledProcessError(3, "x", output="out")
            error.add_note("a note")
            error.extra = [1]  # type: ignore[attr-defined]
            raise error  # noqa: B904 - so that it has a context and no cause
    except subprocess.CalledProcessError as caught:
        back = link.ask("echo", caught)
    assert (type(back), back.returncode, back.output, back.extra) == (subprocess.CalledProcessError, 3, "out", [1])
    assert back.__notes__ == ["a note"]
    assert isinstance(back.__context__, KeyError)
    assert back.__cause__ is None
    assert not back.__suppress_context__
    group = link.ask("echo", ExceptionGroup("many", [ValueError(1), ExceptionGroup("in", [KeyError(2)])]))
    assert [type(e) for e in group.exceptions] == [ValueError, ExceptionGroup]
    cut = ValueError()
    cut.__suppress_context__ = True
    assert link.ask("echo", cut).__suppress_context__
    lost = link.ask("echo", ImportError("no", name="x", path="y"))
    assert (lost.name, lost.path) == ("x", "y")
    assert link.ask("echo", json.JSONDecodeError("bad", "doc", 1)).pos == 1
    assert link.ask("echo", UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")).reason == "bad"


class OwnError(Exception):
    def __init__(self, code: int):
        super().__init__(f"code {code}")
        self.code = code


ERROR = OwnError(4)


def raise_own() -> None:
    ERROR.add_note(f"note {len(getattr(ERROR, '__notes__', []))}")
    raise ERROR from LookupError("why")


MADE["raise own"] = raise_own


def test_an_exception_of_the_candidate_s_own_keeps_its_parts_each_time(link: TestsLink) -> None:
    for times in (1, 2):
        with pytest.raises(Exception, match="code 4") as caught:
            link.ask("make", "raise own")
        error: Any = caught.value
        assert error.code == 4
        assert error.__notes__ == [f"note {n}" for n in range(times)]
        assert isinstance(error.__cause__, LookupError)
        assert error.__suppress_context__


def test_an_endless_chain_of_causes_is_cut(link: TestsLink) -> None:
    one, two = ValueError(1), ValueError(2)
    one.__cause__, two.__cause__ = two, one
    assert link.ask("echo", one).__cause__ is None


def test_a_traceback_crosses_as_files_functions_and_lines(link: TestsLink) -> None:
    def inner() -> None:
        raise ValueError

    try:
        inner()
    except ValueError:
        trace = sys.exc_info()[2]
    assert trace is not None
    back = link.ask("echo", trace)
    assert isinstance(back, types.TracebackType)
    told = [(f.filename, f.name, f.lineno) for f in traceback.extract_tb(back)]
    assert told == [(f.filename, f.name, f.lineno) for f in traceback.extract_tb(trace)]
    assert back.tb_frame.f_lineno == back.tb_lineno
    assert back.tb_frame.f_globals.keys() <= {"__builtins__"}


@pytest.mark.parametrize(
    "value", [string, threading.Lock(), types.new_class("X")()], ids=["module", "lock", "elsewhere"]
)
def test_what_cannot_leave_its_process_is_a_reason_for_one(value: Any, link: TestsLink) -> None:
    link.uncrossable = ""
    with pytest.raises(values.CannotCross):
        link.ask("echo", value)
    assert link.uncrossable.startswith("they hand over ")
    link.uncrossable = ""


def test_a_class_that_derives_from_a_mirror_is_a_reason_for_one_process(link: TestsLink) -> None:
    base: Any = type(link.ask("make", "seen as parser"))
    with pytest.raises(values.CannotCross):

        class Derived(base):  # type: ignore[misc]
            pass

    assert "(class Derived)" in link.uncrossable
    link.uncrossable = ""
