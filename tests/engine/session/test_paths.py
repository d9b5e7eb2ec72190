"""All data under one folder where a person wants it so."""

import os
import tempfile
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


def test_a_home_of_a_user_that_is_none(monkeypatch):
    monkeypatch.setenv("BASSLINE_HOME", "~no-such-user/there")
    with pytest.raises(paths.NoHome, match="BASSLINE_HOME is ~no-such-user/there, and there is no such user"):
        paths.settings()


class TestNoHome:
    """A person under a number that no user has, as in a container."""

    @pytest.fixture(autouse=True)
    def nobody(self, tmp_path, monkeypatch):
        monkeypatch.delenv("BASSLINE_HOME", raising=False)
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", "x")  # so that whatever is put there goes again
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
        monkeypatch.setattr("pwd.getpwuid", self.unknown)

    @staticmethod
    def unknown(number):
        raise KeyError(number)

    @pytest.mark.parametrize("home", [None, "", "relative/home"])
    def test_a_private_folder_among_the_temporary_files_stands_in(self, tmp_path, monkeypatch, home):
        if home is not None:
            monkeypatch.setenv("HOME", home)
        paths.ensure_home()
        folder = tmp_path / f"bassline-{os.getuid()}"
        assert os.environ["HOME"] == str(folder)
        assert folder.stat().st_mode & 0o077 == 0
        assert all(folder in getattr(paths, place)().parents for place in PLACES)
        del os.environ["HOME"]
        paths.ensure_home()  # and the same one the next time
        assert os.environ["HOME"] == str(folder)

    def test_the_folder_that_was_named_stands_in(self, tmp_path, monkeypatch):
        monkeypatch.setenv("BASSLINE_HOME", str(tmp_path / "mine"))
        paths.ensure_home()
        assert os.environ["HOME"] == str(tmp_path / "mine")

    def test_a_folder_that_others_could_have_filled_is_not_used(self, tmp_path):
        folder = tmp_path / f"bassline-{os.getuid()}"
        folder.mkdir()
        folder.chmod(0o777)
        with pytest.raises(paths.NoHome, match="set HOME or BASSLINE_HOME to a folder in which you may write"):
            paths.ensure_home()

    def test_a_link_is_not_used(self, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / f"bassline-{os.getuid()}").symlink_to("elsewhere")
        with pytest.raises(paths.NoHome):
            paths.ensure_home()

    def test_where_nothing_can_be_written(self, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "gone"))
        with pytest.raises(paths.NoHome):
            paths.ensure_home()


def test_a_home_that_is_known_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    paths.ensure_home()
    assert os.environ["HOME"] == str(tmp_path)
