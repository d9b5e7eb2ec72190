"""What the candidate is told of the tests' global generator of random numbers."""

import random
from collections.abc import Iterator

import pytest

from engine.runner.split.chance import Generators


@pytest.fixture
def generators(monkeypatch: pytest.MonkeyPatch) -> Iterator[Generators]:
    """Those of this process. A test follows them itself: a plugin may seed them just before it begins."""
    before, set_state = random.getstate(), random.setstate
    for name in ("seed", "setstate", "getstate"):
        monkeypatch.setattr(random, name, getattr(random, name))
    yield Generators()
    set_state(before)


def test_nothing_is_told_before_the_tests_touch_it(generators: Generators) -> None:
    generators.follow(numpy=False)
    random.random()
    assert generators.changes() == {}


def test_a_state_is_told_once_and_again_when_it_has_changed(generators: Generators) -> None:
    generators.follow(numpy=False)
    random.seed(3)
    first = generators.changes()
    assert first == {"random": random.getstate()}
    generators.changes()
    assert generators.changes() == {}
    random.random()
    assert generators.changes() not in ({}, first)


def test_what_the_system_s_own_chance_gave_stays_here(generators: Generators) -> None:
    generators.follow(numpy=False)
    random.seed(3)
    generators.changes()
    random.seed()
    assert generators.changes() == {}
    random.seed(None)
    assert generators.changes() == {}


def test_what_did_not_arrive_is_told_again(generators: Generators) -> None:
    generators.follow(numpy=False)
    random.seed(3)
    lost = generators.changes()
    generators.repeat()
    assert generators.changes() == lost
