"""The history on the command line; and a real kill of ``generate`` at n = 16."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli import main
from engine.session import settings
from engine.session.journal import Journal, history_file
from engine.session.recorder import Recorder
from engine.session.settings import Settings
from tests.engine.session.runs import a_full_run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def two_runs() -> None:
    recorder = Recorder(history_file())
    for prompt in ("Write f.\nIn Python.", "Roman numerals, please"):
        recorder.begin(a_full_run(prompt))
    assert recorder.close()


def generate(*options: str) -> int:
    return main(["generate", "Roman", "--model", "scripted", "-n", "2", "--progress", "none", *options])


def test_a_run_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate("--seed", "5") == 0
    code = capsys.readouterr().out
    assert main(["history", "show", "1"]) == 0
    shown = capsys.readouterr()
    assert shown.out == code
    assert "seed 5, model scripted" in shown.err
    assert "2 of 2 candidates ended by themselves" in shown.err


def test_a_run_is_not_kept_when_nobody_wants_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate("--no-history") == 0
    settings.keep(replace(Settings(), history=False))
    assert generate() == 0
    capsys.readouterr()
    assert main(["history"]) == 0
    assert capsys.readouterr() == ("", "There are no runs yet.\n")


def test_no_code_runs_when_the_settings_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.keep(replace(Settings(), run_code=False))
    tests = tmp_path / "t.py"
    tests.write_text("assert open('ran', 'w')")
    assert generate("--tests", str(tests), "--yes") == 2
    assert main(["test", "--solution", str(tests), "--tests", str(tests), "--yes"]) == 2
    assert capsys.readouterr().err.count("Running code is switched off in ") == 2


def test_the_proxy_of_the_settings_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in settings.PROXY_VARIABLES:
        monkeypatch.setenv(name, "http://elsewhere:1")
    assert main(["history"]) == 0
    assert os.environ["HTTPS_PROXY"] == "http://elsewhere:1"
    settings.keep(replace(Settings(), proxy="http://localhost:3128"))
    assert main(["history"]) == 0
    assert {os.environ[name] for name in settings.PROXY_VARIABLES} == {"http://localhost:3128"}


@pytest.mark.usefixtures("two_runs")
def test_list_and_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history"]) == 0
    newest, oldest = capsys.readouterr().out.splitlines()
    assert newest.startswith("2  ")
    assert newest.endswith("1 of 3 pass     Roman numerals, please")
    assert oldest.endswith("1 of 3 pass     Write f.")
    for words, found in ((["ROMAN"], [2]), (["numerals", "return"], [2]), (["def"], [2, 1]), (["no such"], [])):
        assert main(["history", *words, "--json"]) == 0
        assert [entry["id"] for entry in json.loads(capsys.readouterr().out)] == found
    assert main(["history", "--limit", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["history", "zzz"]) == 0
    assert capsys.readouterr().err == "No run contains 'zzz'.\n"


@pytest.mark.usefixtures("two_runs")
def test_show_another_candidate_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "show", "1", "--candidate", "2"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "def f(): return 2\n"
    assert "3: done, 9 tokens, same AST as 1" in shown.err
    assert main(["history", "show", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["id"], record["prompt"], len(record["candidates"])) == (1, "Write f.\nIn Python.", 3)
    assert main(["history", "show", "1", "--candidate", "9"]) == 2
    assert capsys.readouterr().err == "bassline: Run 1 has no candidate 9; it has 1, 2, 3.\n"


@pytest.mark.usefixtures("two_runs")
def test_delete(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "delete", "1"]) == 0
    assert capsys.readouterr().err == "Deleted run 1: Write f.\n"
    assert main(["history", "delete", "1"]) == 2
    assert "There is no run 1 in the history" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["show"], ["delete"], ["show", "x"], ["delete", "1", "2"]])
def test_a_number_is_needed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", *words]) == 2
    assert f"history {words[0]} ID" in capsys.readouterr().err


def test_a_broken_history_is_told_of_and_costs_no_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history_file().parent.mkdir(parents=True)
    history_file().write_text("not a database at all " * 100)
    assert main(["generate", "Roman", "--model", "scripted", "-n", "1", "--progress", "auto"]) == 0
    assert "was set aside as history-set-aside-" in capsys.readouterr().err
    assert main(["history"]) == 0
    assert capsys.readouterr().out.endswith("1 of 1          Roman\n")


def test_kill_9_loses_no_candidate_that_was_told_of(home: Path) -> None:
    """At n = 16: the program itself, killed between two candidates."""
    options = ["--model", "scripted", "-n", "16", "--progress", "jsonl"]
    command = [sys.executable, "main.py", "generate", "Roman", *options]
    told: dict[int, str] = {}
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"BASSLINE_HOME": str(home)}, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stderr is not None
        for line in child.stderr:
            event = json.loads(line)
            if event.get("event") == "CandidateFinished":
                told[event["candidate"]] = event["text"]
            if len(told) == 9:
                child.kill()
                break
    journal = Journal(history_file())
    (entry,) = journal.end_unfinished()
    run = journal.load(entry.id).run
    journal.close()
    assert len(told) >= 9
    assert {number: run.candidates[number].text for number in told} == told
    assert all(run.candidates[number].state == "done" for number in told)
    assert len(run.candidates) == 16


@pytest.mark.parametrize("word", ["\udcff", "%", "'"])
def test_odd_words_are_found_nowhere(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", word, "--limit", str(10**30)]) == 0
    assert capsys.readouterr().err.startswith("No run contains ")


def test_a_candidate_is_of_a_run_that_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--candidate", "1"]) == 2
    assert "history show ID --candidate N" in capsys.readouterr().err


def test_a_number_that_no_run_can_have(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("show", "delete"):
        assert main(["history", command, "9" * 30]) == 2
        assert "There is no run 999" in capsys.readouterr().err
