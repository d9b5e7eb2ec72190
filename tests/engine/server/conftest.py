"""A polite server, and an engine that talks to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.server.fake import FakeServer, at_home
from tests.engine.server.playing import Playing, playing


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return at_home(tmp_path / "home", monkeypatch)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


@pytest.fixture
def play() -> Iterator[Playing]:
    with playing() as play:
        yield play
