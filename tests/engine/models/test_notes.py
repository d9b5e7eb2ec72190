"""Notes on models outlive the program, and never stand in its way."""

import pytest

from engine.models import notes


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path))
    return tmp_path


def test_kept_changed_and_taken_back(home):
    assert notes.kept() == {}
    notes.keep("a", "")
    assert list(home.iterdir()) == []  # nothing to tell, nothing written
    notes.keep("a", "One.")
    notes.keep("b", "Two.")
    notes.keep("a", "Three.")
    assert notes.kept() == {"a": "Three.", "b": "Two."}
    notes.keep("a", "")
    assert notes.kept() == {"b": "Two."}
    assert [path.name for path in (home / "data").iterdir()] == ["notes.json"]


@pytest.mark.parametrize("damage", ["", "{", "[1]", "7"])
def test_a_damaged_file_is_no_notes_and_is_written_anew(home, damage):
    (home / "data").mkdir()
    (home / "data" / "notes.json").write_text(damage, encoding="utf-8")
    assert notes.kept() == {}
    notes.keep("a", "One.")
    assert notes.kept() == {"a": "One."}


def test_a_folder_that_cannot_be_written_is_no_fault(home):
    (home / "data").write_text("a file in the way", encoding="utf-8")
    notes.keep("a", "One.")
    assert notes.kept() == {}
