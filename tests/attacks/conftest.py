from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.world import World, planted
from tests.engine.runner.conftest import bench, own_bench, sealed_bench

__all__ = ["bench", "own_bench", "sealed_bench", "world"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with planted(tmp_path) as world:
        yield world
