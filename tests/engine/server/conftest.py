"""A polite server, and an engine that talks to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.server.fake import FakeServer
from tests.engine.server.playing import Playing, playing


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ``BASSLINE_HOME``, no token, and no proxy between here and the test's own server."""
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BASSLINE_SERVER_TOKEN", raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return tmp_path / "home"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


@pytest.fixture
def play() -> Iterator[Playing]:
    with playing() as play:
        yield play
