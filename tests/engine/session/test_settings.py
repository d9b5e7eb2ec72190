"""Settings: kept as chosen, robust against what people write into files."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.contract import BadRequest, Sampling
from engine.session.export import CannotSave
from engine.session.settings import Settings, keep, load

CHOSEN = Settings(
    theme="dark",
    font_size=12,
    editor='code --wait "{file}"',
    folder="/tmp/ä 中",
    proxy="http://localhost:3128",
    history=False,
    run_code=False,
    candidates=16,
    sampling=Sampling(0.3, 0.9, 40, 99, ("\n\n", '"""'), 0.05, 1.1, 0.5, -0.5, "block"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "settings.toml"


def test_nothing_is_there_yet(file: Path) -> None:
    loaded = load(file)
    assert (loaded.settings, loaded.notices) == (Settings(), ())
    assert not file.parent.exists()


def test_what_was_chosen_comes_back(file: Path) -> None:
    assert all(getattr(CHOSEN, name) != value for name, value in vars(Settings()).items())
    keep(CHOSEN, file)
    assert (load(file).settings, load(file).notices) == (CHOSEN, ())


def test_unknown_keys_stay(file: Path) -> None:
    file.parent.mkdir()
    file.write_text('later = "x"\ntheme = "light"\n[sampling]\nfancy = 3\ntop_k = 9\n[plugin]\na = [1, 2]\n')
    loaded = load(file)
    assert (loaded.settings.theme, loaded.settings.sampling.top_k, loaded.notices) == ("light", 9, ())
    keep(replace(loaded.settings, theme="dark"), file)
    assert load(file).settings == replace(loaded.settings, theme="dark")
    for kept in ('later = "x"', "fancy = 3", "[plugin]"):
        assert kept in file.read_text()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            'theme = "pink"',
            "theme is passed over. Theme 'pink' is not known; choose one of system, light,",
        ),
        ("theme = 5", "theme is passed over. 5 is no value for it."),
        ("font_size = 300", "font_size is passed over. The font size must be"),
        ("history = 1", "history is passed over"),
        ("candidates = true", "candidates is passed over"),
        ("candidates = 0", "between 1 and 128"),
        ("sampling = 7", ""),
        ("[sampling]\ntemperature = 99", "temperature is passed over. Temperature must be between 0 and 10"),
        ("[sampling]\ntemperature = nan", "temperature is passed over"),
        ('[sampling]\nstop = "x"', "stop is passed over"),
        ("[sampling]\nstop = [1]", "stop is passed over"),
        ("[sampling]\ntemperature = 1", ""),
    ],
)
def test_a_value_that_cannot_be(file: Path, line: str, words: str) -> None:
    file.parent.mkdir()
    file.write_text(f'editor = "kept"\n{line}\n')
    loaded = load(file)
    assert loaded.settings.editor == "kept"
    assert len(loaded.notices) == bool(words)
    assert words in "".join(loaded.notices)
    assert file.exists()


@pytest.mark.parametrize("data", [b"theme = ", b"\xff\xfe\0", b"{json: 1}"])
def test_a_broken_file_is_set_aside(file: Path, data: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(data)
    loaded = load(file)
    assert loaded.settings == Settings()
    assert "were set aside as settings-set-aside-" in loaded.notices[0]
    assert [path.read_bytes() for path in file.parent.iterdir()] == [data]
    keep(CHOSEN, file)
    assert load(file).settings == CHOSEN


def test_a_file_that_cannot_be_read(file: Path) -> None:
    file.mkdir(parents=True)
    assert "cannot be read: Is a directory" in load(file).notices[0]


def test_a_full_disk_leaves_the_old_settings(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(CHOSEN, file)

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CannotSave, match="the disk is full"):
        keep(Settings(), file)
    assert load(file).settings == CHOSEN


def test_values_are_checked() -> None:
    for wrong in ({"theme": "x"}, {"font_size": 99}, {"candidates": 0}):
        with pytest.raises(BadRequest):
            Settings(**wrong)


@pytest.mark.parametrize(("points", "fits"), [(0, True), (7, False), (8, True), (24, True), (25, False)])
def test_the_smallest_and_the_largest_font_are_allowed(points: int, fits: bool) -> None:
    if fits:
        assert Settings(font_size=points).font_size == points
    else:
        with pytest.raises(BadRequest, match="8 to 24 points"):
            Settings(font_size=points)
