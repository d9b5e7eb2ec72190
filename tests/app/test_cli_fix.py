"""``fix`` and ``resume``: files and kept runs that are corrected until their tests pass."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.cli import commands, generation, playing
from app.cli.commands import main
from app.cli.progress import PlainProgress
from app.system.engines import recorded_answers
from engine.contract import Generate, Load, Message, ModelChoice, RunStarted
from engine.runner.protocol import RunTests, TestFinished
from engine.runner.report import Report, TestResult
from engine.scripted import Script, ScriptedCandidate, ScriptedEngine
from engine.selection.code_blocks import solution
from engine.session.arms import LARGER, Budget, Model
from engine.session.candidate import Origin
from engine.session.journal import Journal, history_file
from engine.session.run import Run
from engine.session.search import Search
from tests.app.test_cli_commands import FakeRunner, _press, _press_at

ROOT = Path(__file__).parents[2]
GOOD = "```python\ngood = 1\n```\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class HeardEngine(ScriptedEngine):
    """Keeps what it was told."""

    def __init__(self, *texts: str, chunks: tuple[str, ...] = (), step_s: float = 0.001):
        candidates = tuple(ScriptedCandidate((text,)) for text in texts) or (ScriptedCandidate(chunks),)
        super().__init__(Script(candidates, step_s=step_s))
        self.heard: list[Message] = []

    def submit(self, message: Message) -> None:
        self.heard.append(message)
        super().submit(message)

    @property
    def asked(self) -> list[Generate]:
        return [message for message in self.heard if isinstance(message, Generate)]


def wrong(count: int) -> list[str]:
    return [f"```python\nx = {number}\n```" for number in range(count)]


Play = Callable[..., int]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Play:
    """A command in a folder with ``a.py``, which is wrong, and ``t.py``; the engine and the runner are fakes."""
    (tmp_path / "a.py").write_text("bad = 1\n")
    (tmp_path / "t.py").write_text("assert good")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"bad = 2\n")))

    def run(*words: str, engine: Any = None, **fake: Any) -> int:
        monkeypatch.setattr(playing, "open_engine", lambda choice: engine or HeardEngine(GOOD))
        monkeypatch.setattr(playing, "RunnerClient", type("Runner", (FakeRunner,), fake))
        return main(list(words))

    return run


def kept(id: int = 1) -> Run:
    journal = Journal(history_file())
    run = journal.load(id).run
    journal.close()
    return run


class TestFiles:
    def test_corrections_of_the_file_are_asked_for_until_one_passes(
        self, play: Play, capsys: pytest.CaptureFixture[str]
    ) -> None:
        engine = HeardEngine(*wrong(10), GOOD)
        assert play("fix", "a.py", "--tests", "t.py", engine=engine) == 0
        printed = capsys.readouterr()
        assert printed.out == "good = 1\n"
        assert "candidate 11 is picked" in printed.err
        first = engine.asked[0].request
        assert [turn.text for turn in first.turns] == ["Fix a.py", "```python\nbad = 1\n```\n"]
        assert "assert good" in first.prompt
        assert all("bad = 1" in asked.request.turns[1].text or asked.request.turns[1:] for asked in engine.asked)
        assert Path("a.py").read_text() == "bad = 1\n"

    def test_the_run_is_kept_with_the_file_and_whose_corrections_they_are(self, play: Play) -> None:
        assert play("fix", "a.py", "--tests", "t.py") == 0
        run = kept()
        assert (run.candidates[1].origin, run.candidates[1].code) == (Origin("file"), "bad = 1\n")
        assert run.candidates[2].origin.of == 1
        assert [c.passed for _, c in sorted(run.candidates.items())][:2] == [False, True]

    def test_a_file_that_passes_says_so_and_needs_no_model(
        self, play: Play, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("a.py").write_bytes(b"good = 1\r\n")
        monkeypatch.setattr(playing, "RunnerClient", FakeRunner)
        monkeypatch.setattr(playing, "open_engine", lambda choice: pytest.fail("nothing is to be loaded"))
        assert main(["fix", "a.py", "--tests", "t.py", "--in-place"]) == 0
        printed = capsys.readouterr()
        assert "The file passes these tests already; nothing was changed." in printed.err
        assert Path("a.py").read_bytes() == b"good = 1\r\n"
        assert FakeRunner.last.closed
        assert main(["history"]) == 0
        assert capsys.readouterr().out == ""

    def test_in_place_writes_what_passes_in_the_files_own_style(
        self, play: Play, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("a.py").write_bytes(b"\xef\xbb\xbfbad = 1\r\n")
        os.chmod("a.py", 0o640)
        assert play("fix", "a.py", "--tests", "t.py", "--in-place") == 0
        assert Path("a.py").read_bytes() == b"\xef\xbb\xbfgood = 1\r\n"
        assert os.stat("a.py").st_mode & 0o777 == 0o640
        assert "Wrote candidate 2 to a.py." in capsys.readouterr().err

    def test_in_place_without_a_pass_changes_nothing(self, play: Play) -> None:
        engine = HeardEngine(*wrong(3))
        assert play("fix", "a.py", "--tests", "t.py", "--in-place", "-n", "3", engine=engine) == 1
        assert Path("a.py").read_text() == "bad = 1\n"

    def test_a_file_that_changed_meanwhile_is_not_replaced(
        self, play: Play, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def event(self: PlainProgress, event: object, run: Run | None = None) -> None:
            if isinstance(event, RunStarted):
                Path("a.py").write_text("my own work\n")

        monkeypatch.setattr(PlainProgress, "event", event)
        assert play("fix", "a.py", "--tests", "t.py", "--in-place") == 2
        printed = capsys.readouterr()
        assert "a.py has changed since it was read, so it is not replaced." in printed.err
        assert printed.out == "good = 1\n"  # what was found is not lost
        assert Path("a.py").read_text() == "my own work\n"

    def test_so_many_corrections_once(self, play: Play) -> None:
        engine = HeardEngine(*wrong(5))
        assert play("fix", "a.py", "--tests", "t.py", "-n", "3", "--seed", "9", engine=engine) == 1
        (asked,) = engine.asked
        assert (asked.request.candidates, asked.request.first_candidate, asked.request.seed) == (3, 2, 9)
        assert sorted(kept().candidates) == [1, 2, 3, 4]

    def test_what_the_file_is_for_may_be_said(self, play: Play) -> None:
        engine = HeardEngine(GOOD)
        assert play("fix", "a.py", "--tests", "t.py", "--prompt", "A slug.", engine=engine) == 0
        assert engine.asked[0].request.turns[0].text == "A slug."

    def test_code_from_stdin(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        engine = HeardEngine(GOOD)
        assert play("fix", "-", "--tests", "t.py", engine=engine) == 0
        assert "bad = 2" in engine.asked[0].request.turns[1].text
        assert capsys.readouterr().out == "good = 1\n"

    def test_generate_knows_it_too(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        engine = HeardEngine(*wrong(9), GOOD)
        assert play("generate", "A slug.", "--fix", "a.py", "--tests", "t.py", engine=engine) == 0
        assert [turn.text for turn in engine.asked[0].request.turns] == ["A slug.", "```python\nbad = 1\n```\n"]
        assert capsys.readouterr().out == "good = 1\n"
        assert play("generate", "--fix", "a.py", "--tests", "t.py", "-n", "2", engine=HeardEngine(*wrong(9))) == 1
        assert len(kept(2).candidates) == 3
        assert play("generate", "--fix", "a.py", "--tests", "t.py", "--mode", "completion") == 2
        assert play("generate", "--fix", "a.py") == 2
        assert "name its tests with --tests FILE" in capsys.readouterr().err

    def test_an_answer_may_be_as_long_as_the_file(self, play: Play) -> None:
        Path("a.py").write_text("bad = 1  # " + "long " * 1000)
        engine = HeardEngine(GOOD)
        assert play("fix", "a.py", "--tests", "t.py", engine=engine) == 0
        assert engine.asked[0].request.sampling.max_tokens >= 2500
        engine = HeardEngine(GOOD)
        assert play("fix", "a.py", "--tests", "t.py", "--max-tokens", "100", engine=engine) == 0
        assert engine.asked[0].request.sampling.max_tokens == 100

    def test_tests_that_import_the_file_by_its_name(self, play: Play) -> None:
        Path("t.py").write_text("from a import good\nassert good\n")
        assert play("fix", "a.py", "--tests", "t.py") == 0
        assert {test.tests for test in FakeRunner.last.tests} == {"from solution import good\nassert good\n"}

    def test_json_and_export_as_with_generate(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        assert play("fix", "a.py", "--tests", "t.py", "-n", "1", "--json", "--export", "out") == 0
        result = json.loads(capsys.readouterr().out)
        assert [c["origin"]["of"] for c in result["candidates"]] == [0, 1]
        assert (result["best"], result["candidates"][0]["code"]) == (2, "bad = 1\n")
        assert sorted(path.name for path in Path("out").iterdir()) == [
            "best.py",
            "candidate-1.py",
            "candidate-2.py",
            "result.json",
            "tests.py",
        ]

    def test_a_name_that_is_no_text(self, play: Play) -> None:
        name = os.fsdecode(b"\xff.py")
        Path(name).write_text("bad = 1\n")
        engine = HeardEngine(GOOD)
        assert play("fix", name, "--tests", "t.py", "--in-place", engine=engine) == 0
        assert engine.asked[0].request.turns[0].text == "Fix \N{REPLACEMENT CHARACTER}.py"
        assert Path(name).read_text() == "good = 1\n"

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["missing.py", "--tests", "t.py"], "The file missing.py does not exist."),
            ([".", "--tests", "t.py"], "is a folder"),
            (["latin.py", "--tests", "t.py"], "latin.py is not UTF-8 text (line 2); save it as UTF-8."),
            (["binary.py", "--tests", "t.py"], "binary.py is not text"),
            (["empty.py", "--tests", "t.py"], "The file empty.py is empty"),
            (["huge.py", "--tests", "t.py"], "no context holds that"),
            (["endless.py", "--tests", "t.py"], "is larger than 16 MiB"),
            (["a.py"], "name its tests with --tests FILE"),
            (["a.py", "--tests", "empty.py"], "empty.py is empty; write at least one assert in it."),
            (["a.py", "--tests", "missing.py"], "The tests file missing.py does not exist."),
            (["a.py", "b.py", "--tests", "t.py"], "Name one file, or a run and a candidate"),
            (["1", "2", "3"], "Name one file, or a run and a candidate"),
            (["-", "--tests", "t.py", "--in-place"], "--in-place needs a file"),
            (["a.py", "--tests", "t.py", "-n", "0"], "between 1 and 128"),
            (["a.py", "--tests", "t.py", "-n", "2", "--until-pass"], "not both"),
            (["a.py", "--tests", "t.py", "-n", "2", "--max-candidates", "3"], "--max-candidates is for"),
            (["a.py", "--tests", "t.py", "--stop-at-first-pass"], "--stop-at-first-pass is for -n"),
            (["a.py", "--tests", "t.py", "--time-budget", "0"], "The time budget must be a positive number"),
            (["a.py", "--tests", "t.py", "--max-candidates", "0"], "The most candidates must be at least 1"),
            (["a.py", "--tests", "t.py", "--temperature", "0..1"], "one temperature, not a range"),
            (["a.py", "--tests", "t.py", "--prompt", "\udcff"], "The text of --prompt is not UTF-8"),
            (["a.py", "--tests", "t.py", "--prompt", " "], "The prompt is empty"),
            (["a.py", "--tests", "t.py", "--export", "a.py"], "a.py exists already"),
            (["a.py", "--tests", "t.py", "--max-candidates", str(10**20)], "at most 10,000"),
            (["7"], "There is no run 7 in the history"),
        ],
    )
    def test_what_cannot_be_is_one_sentence(
        self, words: list[str], sentence: str, play: Play, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("latin.py").write_bytes(b"x = 1\n# \xe9t\xe9\n")
        Path("binary.py").write_bytes(b"x\0y")
        Path("empty.py").write_text(" \n")
        Path("huge.py").write_text("x = 1\n" * 40_000)
        with open("endless.py", "wb") as file:
            file.truncate(1 << 40)
        assert play("fix", *words) == 2
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert sentence in printed.err

    def test_tests_that_do_not_run_at_all(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        def test(self: FakeRunner, test: RunTests) -> None:
            self.answer(TestFinished(test.id, Report("infra", "split", "Your tests do not load: no module x.")))

        engine = HeardEngine(GOOD)
        assert play("fix", "a.py", "--tests", "t.py", engine=engine, test=test) == 2
        assert capsys.readouterr().err.endswith("bassline: Your tests do not load: no module x.\n")
        assert not engine.heard

    def test_without_a_sandbox_nothing_runs_unasked(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        assert play("fix", "a.py", "--tests", "t.py", sealed=False) == 2
        assert "add --yes" in capsys.readouterr().err
        assert not FakeRunner.last.tests
        assert play("fix", "a.py", "--tests", "t.py", "--yes", sealed=False) == 0

    def test_a_model_that_does_not_load(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        engine = ScriptedEngine(Script((), load_failure="There is no such model."))
        assert play("fix", "a.py", "--tests", "t.py", "--in-place", engine=engine) == 2
        assert "bassline: There is no such model." in capsys.readouterr().err

    def test_an_engine_that_dies(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        class Dying(HeardEngine):
            def run(self, emit: Any) -> None:
                raise RuntimeError("a wire came loose")

        assert play("fix", "a.py", "--tests", "t.py", engine=Dying(GOOD)) == 2
        assert "a wire came loose" in capsys.readouterr().err

    def test_ctrl_c_while_the_file_is_tested(self, play: Play) -> None:
        engine = HeardEngine(GOOD)
        assert play("fix", "a.py", "--tests", "t.py", engine=engine, test=lambda *_: _press()) == 130
        assert not engine.heard
        assert FakeRunner.last.closed

    @pytest.mark.parametrize("moment", ["Ready", "RunStarted", "TextAdded", "CandidateFinished"])
    def test_ctrl_c_keeps_what_is_there(
        self, moment: str, play: Play, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _press_at(moment, monkeypatch)
        engine = HeardEngine(chunks=("```python\n", *["x = 1\n"] * 500))
        assert play("fix", "a.py", "--tests", "t.py", "--in-place", "--json", engine=engine) == 130
        assert json.loads(capsys.readouterr().out)["candidates"][0]["code"] == "bad = 1\n"
        assert Path("a.py").read_text() == "bad = 1\n"
        assert kept().candidates[1].code == "bad = 1\n"


@pytest.fixture
def a_run(play: Play) -> None:
    """Run 1: two candidates, both wrong."""
    engine = HeardEngine(*wrong(2))
    assert play("generate", "Make it good.", "-n", "2", "--seed", "5", "--tests", "t.py", engine=engine) == 1


@pytest.mark.usefixtures("a_run")
class TestRuns:
    def test_corrections_join_the_run_and_begin_with_the_one_that_was_named(
        self, play: Play, capsys: pytest.CaptureFixture[str]
    ) -> None:
        engine = HeardEngine(*wrong(4), GOOD)
        assert play("fix", "1", "2", engine=engine) == 0
        assert capsys.readouterr().out == "good = 1\n"
        first = engine.asked[0].request
        assert [turn.text for turn in first.turns] == ["Make it good.", "```python\nx = 1\n```\n"]
        assert (first.first_candidate, first.seed) == (3, 5)
        run = kept()
        assert [c.origin.of for _, c in sorted(run.candidates.items())][:3] == [0, 0, 2]
        assert run.candidates[5].passed
        assert len(run.decisions) >= 2

    def test_without_a_candidate_the_best_failing_one(self, play: Play) -> None:
        engine = HeardEngine(GOOD)
        assert play("fix", "1", engine=engine) == 0
        assert "x = 0" in engine.asked[0].request.turns[1].text

    @pytest.mark.parametrize("words", [["-n", "2"], ["--max-candidates", "2"]])
    def test_the_best_is_chosen_by_the_tests_of_now(self, play: Play, words: list[str]) -> None:
        """A pass by the tests of before is none by these."""
        play("generate", "p", "-n", "2", "--tests", "t.py", engine=HeardEngine(GOOD, "```python\ngood = 2\n```"))

        def test(self: FakeRunner, test: RunTests) -> None:
            passed = [] if "2" not in test.solution else [TestResult("1", "passed")]
            results = (*passed, TestResult("2", "failed", "assert better"))
            self.answer(TestFinished(test.id, Report("fail", "split", tests=results)))

        Path("t.py").write_text("assert better")
        engine = HeardEngine(*wrong(3))
        assert play("fix", "2", "--tests", "t.py", *words, engine=engine, test=test) == 1
        assert {kept(2).candidates[n].origin.of for n in (3, 4)} == {2}
        assert "good = 2" in engine.asked[0].request.turns[-1].text

    def test_candidates_that_were_never_tested_are_before_the_best_is_chosen(self, play: Play) -> None:
        play("generate", "p", "-n", "1", engine=HeardEngine(*wrong(1)))
        assert play("fix", "2", "--tests", "t.py") == 0
        assert kept(2).candidates[2].origin.of == 1

    def test_where_nothing_can_be_shown_to_the_model_the_run_is_left_alone(
        self, play: Play, capsys: pytest.CaptureFixture[str]
    ) -> None:
        play("generate", "p", "-n", "1", "--tests", "t.py", engine=HeardEngine("I would rather not."))
        engine = HeardEngine(GOOD)
        assert play("fix", "2", "-n", "1", engine=engine) == 2
        assert "No candidate of run 2 is left whose failing test" in capsys.readouterr().err
        assert not engine.heard

    def test_so_many_once(self, play: Play) -> None:
        engine = HeardEngine(*wrong(5))
        assert play("fix", "1", "2", "-n", "2", engine=engine) == 1
        assert [asked.request.numbers for asked in engine.asked] == [range(3, 5)]
        assert {kept().candidates[n].origin.of for n in (3, 4)} == {2}

    def test_other_tests_void_the_verdicts(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        Path("other.py").write_text("assert good and more")
        assert play("fix", "1", "1", "--tests", "other.py") == 0
        assert kept().tests == "assert good and more"

    def test_the_model_of_the_run_goes_on_unless_another_is_named(self, play: Play) -> None:
        engine = HeardEngine(*wrong(9))
        play("generate", "p", "--tests", "t.py", "-n", "1", "--model", "one", "--precision", "int8", engine=engine)
        for words, model, precision in (
            ([], "one", "int8"),
            (["--precision", "float32"], "one", "float32"),
            (["--model", "two"], "two", "auto"),
        ):
            engine = HeardEngine(*wrong(3))
            play("fix", "2", "1", "-n", "1", *words, engine=engine)
            (load,) = (message for message in engine.heard if isinstance(message, Load))
            assert (load.choice.model, load.choice.precision) == (model, precision)

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["1", "9"], "Run 1 has no candidate 9; it has 1, 2."),
            (["1", "0"], "Run 1 has no candidate 0; it has 1, 2."),
            (["99", "1"], "There is no run 99 in the history"),
            (["99999999999999999999", "1"], "There is no run 99999999999999999999 in the history"),
            (["1", "x"], "Name one file, or a run and a candidate"),
            (["1", "1", "--temperature", "0.2"], "keeps its own prompt and settings; leave --temperature out"),
            (["1", "1", "--in-place"], "leave --in-place out"),
        ],
    )
    def test_what_cannot_be_is_one_sentence(
        self, words: list[str], sentence: str, play: Play, capsys: pytest.CaptureFixture[str]
    ) -> None:
        capsys.readouterr()
        assert play("fix", *words) == 2
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert sentence in printed.err

    def test_a_run_without_tests_needs_some(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        assert play("generate", "p", "-n", "1", engine=HeardEngine(*wrong(1))) == 0
        for command in (["fix", "2", "1"], ["resume", "2"]):
            assert play(*command) == 2
            assert "Run 2 has no tests; name a file with --tests." in capsys.readouterr().err
        assert play("fix", "2", "1", "--tests", "t.py") == 0

    def test_a_run_that_has_its_pass_is_left_alone(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        assert play("fix", "1", "2") == 0
        capsys.readouterr()
        for command in (["fix", "1", "2"], ["fix", "1"], ["resume", "1"]):
            assert play(*command, engine=pytest.fail) == 0
            printed = capsys.readouterr()
            assert printed.out == "good = 1\n"
            assert "passes these tests already; nothing was changed." in printed.err

    def test_one_without_code_is_said_to_be(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        play("generate", "p", "-n", "1", "--tests", "t.py", engine=HeardEngine("I would rather not."))
        assert play("fix", "2", "1") == 2
        assert "Candidate 1 wrote no code; choose another one." in capsys.readouterr().err

    def test_resume_goes_on_behind_what_there_is(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        assert play("resume", "1", "--max-candidates", "1", engine=HeardEngine(*wrong(3))) == 1
        assert "`resume 1` goes on until a candidate passes" in capsys.readouterr().err
        engine = HeardEngine(*wrong(6), GOOD)
        assert play("resume", "1", "--max-candidates", "7", engine=engine) == 0
        assert engine.asked[0].request.seed == 5
        run = kept()
        assert [n for n, c in run.candidates.items() if c.passed] == [7]
        assert len(run.candidates) <= 3 + 7

    def test_the_budget_of_resume_counts_from_now(self, play: Play) -> None:
        engine = HeardEngine(*wrong(40))
        assert play("resume", "1", "--max-candidates", "3", engine=engine) == 1
        assert len(kept().candidates) == 5
        assert play("resume", "1", "--max-candidates", "3", engine=HeardEngine(*wrong(40))) == 1
        assert len(kept().candidates) == 8

    def test_a_larger_model_that_comes_first_is_waited_for(self, play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
        """The model of before is loaded to begin with, and that it is there is no answer about the larger one."""
        asked_early: list[bool] = []

        class Slow(HeardEngine):
            def _load(self, emit: Any) -> None:
                if sum(isinstance(message, Load) for message in self.heard) > 1:
                    asked_early.append(self.mailbox.arrives(0.2))
                super()._load(emit)

        def search_of(run: Run, ladder: Any, budget: Budget) -> Search:
            models = [Model(ModelChoice("small"), "Small"), Model(ModelChoice("large"), "Large")]
            return Search(replace(budget, candidates=99), models, arms=(LARGER,))

        monkeypatch.setattr(generation, "search_of", search_of)
        engine = Slow(GOOD)
        assert play("resume", "1", engine=engine) == 0
        loads = [message.choice.model for message in engine.heard if isinstance(message, Load)]
        assert (loads, asked_early) == (["small", "large"], [False])
        assert kept().candidates[3].origin.model == "Large"

    def test_a_run_that_somebody_goes_on_with(self, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        journal = Journal(history_file())
        journal.claim(1)
        journal.update(1, {"state": "generating", "outcome": ""})
        journal.close()
        for command in ("resume", "fix"):
            assert play(command, "1") == 2
            assert "Run 1 is still going on; stop it first, or wait." in capsys.readouterr().err

    @pytest.mark.parametrize("failure", ["", "There is no such model."])
    def test_nobody_else_goes_on_with_a_run_while_its_model_is_loaded(self, play: Play, failure: str) -> None:
        """Nor deletes it. Afterwards it is as it was, or as it has become."""
        open_: list[bool] = []
        refused: list[int] = []

        class Watched(HeardEngine):
            def _load(self, emit: Any) -> None:
                with closing(Journal(history_file())) as journal:
                    open_.append(journal.is_open(1))
                refused.extend(main(words) for words in (["resume", "1"], ["fix", "1"], ["history", "delete", "1"]))
                super()._load(emit)

        before = kept()
        engine = Watched(*wrong(9))
        engine.script = replace(engine.script, load_failure=failure)
        assert play("resume", "1", "--max-candidates", "1", engine=engine) == (2 if failure else 1)
        assert (open_, refused) == ([True], [2, 2, 2])
        with closing(Journal(history_file())) as journal:
            assert not journal.is_open(1)
            assert journal.unfinished() == []
        assert (kept().state, kept().outcome) == (before.state, before.outcome)
        assert len(kept().candidates) == (2 if failure else 3)

    def test_a_run_is_open_between_its_models(self, play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
        open_: list[bool] = []

        class Watched(HeardEngine):
            def _load(self, emit: Any) -> None:
                with closing(Journal(history_file())) as journal:
                    open_.append(journal.is_open(2))
                super()._load(emit)

        models = [Model(ModelChoice("small"), "Small"), Model(ModelChoice("large"), "Large")]
        monkeypatch.setattr(commands, "ladder", lambda choice: models)
        monkeypatch.setattr(generation, "Search", partial(Search, arms=(LARGER,)))
        words = ["generate", "p", "--until-pass", "--max-candidates", "9", "--tests", "t.py"]
        assert play(*words, engine=Watched(*wrong(20))) == 1
        assert open_ == [False, True]  # the first comes before the run is there

    @pytest.mark.parametrize("word", ["x", "-1", "1.5", "１", ""])
    def test_a_run_is_named_by_its_number(self, word: str, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
        capsys.readouterr()
        assert play("resume", "--", word) in (0, 2)
        if word != "１":
            assert "no number of a run" in capsys.readouterr().err


def process(home: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, str(ROOT / "main.py"), *words, "--progress", "jsonl"],
        env=os.environ | {"BASSLINE_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_run_goes_on_in_another_process(home: Path, tmp_path: Path) -> None:
    """The program itself with its sandbox, killed in the middle of a search that finds nothing."""
    (tmp_path / "t.py").write_text("assert roman_to_int('I') == 2")
    words = ["generate", "Roman", "--model", "scripted", "--until-pass", "--yes", "--tests", str(tmp_path / "t.py")]
    with process(home, *words) as child:
        assert child.stderr is not None
        told = {}
        for line in child.stderr:
            event = json.loads(line)
            if event.get("event") == "CandidateFinished":
                told[event["candidate"]] = event["text"]
            if len(told) == 3:
                child.kill()
                break
    (tmp_path / "right.py").write_text("assert roman_to_int('I') == 1")
    with process(home, "resume", "1", "--tests", str(tmp_path / "right.py"), "--yes", "--json") as child:
        out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    texts = {c["id"]: c["text"] for c in json.loads(out)["candidates"]}
    assert {number: texts[number] for number in told} == told


def test_the_program_corrects_a_file_with_its_own_sandbox(home: Path, tmp_path: Path) -> None:
    (tmp_path / "roman.py").write_text(solution(recorded_answers()[1]).code)
    before = (tmp_path / "roman.py").read_text()
    (tmp_path / "t.py").write_text("from roman import roman_to_int\nassert roman_to_int('MCMXCIV') == 1994\n")
    words = ["fix", str(tmp_path / "roman.py"), "--tests", str(tmp_path / "t.py"), "--model", "scripted", "--yes"]
    started = time.monotonic()
    with process(home, *words, "--in-place") as child:
        out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    assert (tmp_path / "roman.py").read_text() == out != before
    assert time.monotonic() - started < 110
    with process(home, *words, "--in-place") as child:
        again, err = child.communicate(timeout=120)
    assert (child.returncode, again) == (0, out)
    assert "passes these tests already" in err


def test_a_real_model_corrects_a_file(small_model: str, tmp_path: Path) -> None:
    """Whether it succeeds is the model's affair; that it is asked, tested and kept is ours."""
    (tmp_path / "double.py").write_text("def double(x):\n    return x + x + 1\n")
    (tmp_path / "t.py").write_text("from double import double\nassert double(3) == 6\n")
    words = ["fix", str(tmp_path / "double.py"), "--tests", str(tmp_path / "t.py"), "--model", small_model, "--yes"]
    more = ["-n", "2", "--seed", "1", "--max-tokens", "60", "--precision", "int8", "--device", "cpu", "--json"]
    with process(tmp_path / "home", *words, *more) as child:
        out, err = child.communicate(timeout=300)
    assert child.returncode in (0, 1), err
    own, *corrections = json.loads(out)["candidates"]
    assert (own["code"], own["tests"]["verdict"]) == ("def double(x):\n    return x + x + 1\n", "fail")
    assert [c["origin"]["of"] for c in corrections] == [1, 1]
    assert all(c["tokens"] and c["text"] for c in corrections)
    assert all(c["tests"] for c in corrections if c["code"])
    assert (child.returncode == 0) == any(c["tests"] and c["tests"]["verdict"] == "pass" for c in corrections)
    assert [c.text for _, c in sorted(kept().candidates.items())][1:] == [c["text"] for c in corrections]
