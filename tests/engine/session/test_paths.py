"""All data under one folder where a person wants it so."""

from pathlib import Path

import platformdirs
import pytest

from engine.session import paths

PLACES = ("models", "settings", "data", "logs")


@pytest.mark.parametrize("place", PLACES)
def test_under_home_when_it_is_set(place, tmp_path, monkeypatch):
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path))
    assert getattr(paths, place)() == tmp_path / place


def test_home_may_be_relative_or_begin_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BASSLINE_HOME", "here")
    assert paths.models() == tmp_path / "here" / "models"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BASSLINE_HOME", "~/there")
    assert paths.models() == tmp_path / "there" / "models"


@pytest.mark.parametrize("value", [None, ""])
def test_the_platforms_places_otherwise(value, monkeypatch):
    if value is None:
        monkeypatch.delenv("BASSLINE_HOME", raising=False)
    else:
        monkeypatch.setenv("BASSLINE_HOME", value)
    assert paths.models() == Path(platformdirs.user_cache_dir("bassline", appauthor=False)) / "models"
    assert len({getattr(paths, place)() for place in PLACES}) == len(PLACES)
