"""``models`` and ``doctor`` on the command line: what they print, and their exit codes."""

import json

import pytest

from app.cli import main
from engine.contract import LoadCancelled, Loading
from engine.doctor import examination
from engine.doctor.finding import Finding
from engine.models import library, preparation
from engine.models.library import ListedModel
from engine.models.preparation import PreparedModel

ROW = ListedModel(
    name="tiny",
    title="Tiny",
    source="Catalog",
    parameters=135_000_000,
    context=8192,
    licence="MIT",
    draft="",
    download_bytes=0,
    original_bytes=98_000_000,
    converted_bytes=252_000_000,
    here=True,
    removable=True,
    default=True,
    fits=True,
    fit="fits, 8 candidates at a time (1.6 of 22.3 GB free)",
)


@pytest.fixture
def listed(monkeypatch):
    monkeypatch.setattr(library, "listed", lambda device="auto", precision="auto": [ROW])


def test_list_says_what_is_here_and_whether_it_fits(listed, capsys):
    assert main(["models", "list"]) == 0
    assert capsys.readouterr().out == (
        "tiny     0.14 B  MIT         the default here; on this disk: 98 MB as published + 252 MB converted; "
        "context 8,192; fits, 8 candidates at a time (1.6 of 22.3 GB free)\n"
    )
    assert main(["models", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [vars(ROW)]


def test_fetch_offers_to_free_the_original(listed, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(preparation, "prepare", lambda name, **_: PreparedModel(name, tmp_path, "cpu", "int8"))
    assert main(["models", "fetch", "tiny"]) == 0
    said = capsys.readouterr().err
    assert "tiny is ready to load (int8, cpu)." in said
    assert "`models remove tiny --original` frees the 98 MB of the download." in said


def test_a_fetch_that_is_stopped_is_paused(monkeypatch, capsys):
    def prepare(name, *, progress, **_):
        progress(Loading("download", 5, 10))
        raise LoadCancelled("Loading was stopped.")

    monkeypatch.setattr(preparation, "prepare", prepare)
    assert main(["models", "fetch", "tiny"]) == 130
    assert "what has arrived is kept, and the same command goes on from there" in capsys.readouterr().err


@pytest.mark.parametrize(("freed", "said"), [(350_000_000, "350 MB are free again."), (0, "There was nothing of tiny")])
def test_remove(monkeypatch, capsys, freed, said):
    asked = []
    monkeypatch.setattr(library, "remove", lambda name, originals_only: asked.append((name, originals_only)) or freed)
    assert main(["models", "remove", "tiny", "--original"]) == 0
    assert asked == [("tiny", True)]
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("problems", "code", "said"),
    [([], 0, "All files of tiny are complete."), (["a.gguf is incomplete."], 1, "bassline: a.gguf is incomplete.")],
)
def test_check(monkeypatch, capsys, problems, code, said):
    monkeypatch.setattr(library, "check", lambda name, progress, cancelled: problems)
    assert main(["models", "check", "tiny"]) == code
    assert said in capsys.readouterr().err


class TestDoctor:
    FINDINGS = (
        Finding("memory", "good", "12 of 16 GB free"),
        Finding("sandbox", "weak", "none " * 30, "Install bubblewrap."),
        Finding("screen", "note", "none"),
    )

    def test_in_words(self, monkeypatch, capsys):
        monkeypatch.setattr(examination, "examine", lambda: {"Machine": list(self.FINDINGS)})
        assert main(["doctor"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[:2] == ["Machine", "  ok    memory              12 of 16 GB free"]
        assert lines[2].startswith("  weak  sandbox             none none")
        assert lines[3].startswith(" " * 28 + "none")
        assert lines[4] == " " * 28 + "-> Install bubblewrap."
        assert max(map(len, lines)) <= 112

    def test_what_does_not_work_is_the_exit_code(self, monkeypatch, capsys):
        bad = Finding("torch", "bad", "not installed", "Install it.")
        monkeypatch.setattr(examination, "examine", lambda: {"Packages": [bad]})
        assert main(["doctor", "--json"]) == 1
        assert json.loads(capsys.readouterr().out) == {"Packages": [vars(bad)]}
