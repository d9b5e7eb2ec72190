"""Each command in this process: bad use, exit codes, consent, engines that fail, Ctrl-C at every moment."""

import io
import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import commands, generation, interrupts, playing
from app.cli.arguments import parser, request_of
from app.cli.commands import main
from app.cli.inputs import read_suffix
from app.cli.progress import PlainProgress
from engine.contract import (
    CandidateFinished,
    Closed,
    Emit,
    Generate,
    Load,
    Mailbox,
    Message,
    Ready,
    Request,
    RunFinished,
    RunStarted,
)
from engine.runner.protocol import Answer, ConsentNeeded, Isolation, RunTests, TestFinished, TestProgress, TestStarted
from engine.runner.report import Report, TestResult
from engine.scripted import Script, ScriptedCandidate, ScriptedEngine
from engine.session.arms import ARMS

GOOD, BAD = "```python\ngood = 1\n```\n", "```python\nbad = 1\n```\n"


class FakeRunner:
    """Code passes when it says "good". ``sealed`` and ``asks`` decide what it wants to know first."""

    sealed, asks, mute = True, False, False

    def __init__(self, on_message: Callable[[Answer], None]):
        self.answer = on_message
        self.tests: list[RunTests] = []
        self.cancelled: list[str] = []
        self.closed = False
        FakeRunner.last = self

    last: "FakeRunner"

    def probe(self) -> None:
        self.answer(Isolation(self.sealed, note="" if self.sealed else "There is no sandbox here."))

    def test(self, test: RunTests) -> None:
        self.tests.append(test)
        if self.mute:
            return
        if self.asks and not test.consent:
            self.answer(ConsentNeeded(test.id, "This test file needs consent."))
            return
        result = TestResult("t", "passed" if "good" in test.solution else "failed", "assert good")
        self.answer(TestStarted(test.id, 1))
        self.answer(TestProgress(test.id, result))
        verdict = "pass" if result.outcome == "passed" else "fail"
        self.answer(TestFinished(test.id, Report(verdict, "split", tests=(result,))))

    def cancel(self, id: str) -> None:
        self.cancelled.append(id)
        self.answer(TestFinished(id, Report("infra", "split", "cancelled")))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """Run ``generate`` on a script (or another engine) with the fake runner; the exit code."""
    tests = tmp_path / "t.py"
    tests.write_text("assert good")

    def run(
        *words: str, texts: tuple[str, ...] = (GOOD,), engine: Any = None, tests_too: bool = True, **fake: Any
    ) -> int:
        script = Script(tuple(ScriptedCandidate((text,)) for text in texts), step_s=0.001)
        runner = type("Runner", (FakeRunner,), fake)
        monkeypatch.setattr(playing, "open_engine", lambda model: engine or ScriptedEngine(script))
        monkeypatch.setattr(playing, "RunnerClient", runner)
        more = ["--tests", str(tests)] if tests_too else []
        return main(["generate", "anything", "-n", str(len(texts)), *more, *words])

    return run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["generate"], "There is no prompt"),
        (["generate", " "], "The prompt is empty"),
        (["generate", "x", "--prompt-file", "y"], "not both"),
        (["generate", "--prompt-file", "missing.md"], "missing.md does not exist"),
        (["generate", "--prompt-file", "folder"], "is a folder"),
        (["generate", "--prompt-file", "latin.txt"], "is not UTF-8 text (line 2)"),
        (["generate", "x", "--tests", "missing.py"], "tests file missing.py does not exist"),
        (["generate", "x", "--tests", "empty.py"], "is empty"),
        (["generate", "x", "--tests", "latin.txt"], "not UTF-8"),
        (["generate", "x", "-n", "0"], "between 1 and 128"),
        (["generate", "x", "--temperature", "-1"], "Temperature"),
        (["generate", "x", "--temperature", "0.2..11"], "Temperature"),
        (["generate", "x", "--temperature", "0.2..warm"], "a range such as 0.2..1.2"),
        (["generate", "x", "--min-p", "2"], "min-p"),
        (["generate", "x", "--repetition-penalty", "0"], "repetition penalty"),
        (["generate", "x", "--stop-at", "function"], "completion mode"),
        (["generate", "x", "--suffix-file", "nowhere.py"], "suffix file nowhere.py does not exist"),
        (["generate", "x", "--top-p", "2"], "top-p"),
        (["generate", "x", "--top-k", "-1"], "top-k"),
        (["generate", "x", "--max-tokens", "0"], "Max tokens"),
        (["generate", "x", "--seed", "-1"], "seed"),
        (["generate", "x", "--time-budget", "0"], "time budget"),
        (["generate", "x", "--stop", ""], "stop string is empty"),
        (["generate", "x", "--policy", "fast"], "goodput, bass or fixed:N"),
        (["generate", "x", "--drafter", "oracle"], "--drafter"),
        (["generate", "x", "--model", ""], "No model was named"),
        (["generate", "x", "--export", "latin.txt"], "exists already"),
        (["generate", "x", "--export", "full"], "exists already; choose another folder, or add --overwrite"),
        (["generate", "x", "--export", "full", "--overwrite"], "is no file of an earlier export"),
        (["generate", "x", "--export", "latin.txt/out"], "part of the path is a file"),
        (["generate", "x", "--export", "latin.txt", "--overwrite"], "exists already; choose another folder."),
        (["generate", "x", "--export", ""], "name of the export folder is empty"),
        (["generate", "x", "--tests", "broken.py"], "Your tests do not parse: line 2"),
        (["generate", "x", "--tests", "none.py"], "Your tests hold no test"),
        (["test", "--solution", "none.py", "--tests", "broken.py"], "Your tests do not parse: line 2"),
        (["generate", "\udce9"], "The prompt is not UTF-8"),
        (["generate", "x", "--system", "\udce9"], "The text of --system is not UTF-8"),
        (["generate", "x", "--stop", "\udce9"], "The text of --stop is not UTF-8"),
        (["generate", "x", "--temp", "1"], "--temp"),
        (["test", "--solution", "empty.py"], "--tests"),
        (["test", "--solution", "missing.py", "--tests", "empty.py"], "solution missing.py does not exist"),
        (["models"], "COMMAND"),
        (["models", "fetch", "no-such-model", "--offline"], "No model is called"),
        (["fly"], "fly"),
    ],
)
def test_bad_use_is_one_sentence_and_2(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path / "home"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "result.json").write_text("{}")
    (tmp_path / "latin.txt").write_bytes(b"ok\n\xe9t\xe9\n")
    (tmp_path / "empty.py").write_text(" \n")
    (tmp_path / "broken.py").write_text("x = 1\nassert (\n")
    (tmp_path / "none.py").write_text("x = '\\d'\n")
    monkeypatch.setattr(playing, "open_engine", lambda model: pytest.fail("it started"))
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["-"], ["--prompt-file", "-"]])
def test_prompt_from_stdin(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xe9")))
    assert main(["generate", *words]) == 2
    assert "The prompt on stdin is not UTF-8" in capsys.readouterr().err


class TestExitCodes:
    def test_0_when_one_passes(self, play: Callable[..., int], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        assert play(texts=(BAD, BAD, GOOD)) == 0
        out, err = capsysbinary.readouterr()
        assert out == b"good = 1\n"
        assert b"1 of 3 candidates pass; candidate 3 is picked (passed 1 of 1)." in err
        assert FakeRunner.last.closed

    def test_the_same_code_is_tested_once(self, play: Callable[..., int]) -> None:
        assert play(texts=(GOOD, "Hello\n" + GOOD, BAD)) == 0
        assert sorted(test.solution for test in FakeRunner.last.tests) == ["bad = 1\n", "good = 1\n"]

    def test_1_when_none_does(self, play: Callable[..., int], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        assert play(texts=(BAD,)) == 1
        assert b"The candidate does not pass its tests: failed 1 of 1: assert good" in capsysbinary.readouterr().err

    @pytest.mark.parametrize("verdict", ["pass-soft", "infra", "tampered", "needs-in-process"])
    def test_1_when_the_verdict_is_no_full_pass(self, play: Callable[..., int], verdict: str) -> None:
        def test(self: FakeRunner, test: RunTests) -> None:
            self.answer(TestFinished(test.id, Report(verdict, "split")))

        assert play(test=test) == 1

    def test_an_unconfirmed_pass_is_called_so_and_is_none(
        self,
        play: Callable[..., int],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        def test(self: FakeRunner, test: RunTests) -> None:
            tests = (TestResult("a", "passed"), TestResult("b", "passed"))
            self.answer(TestFinished(test.id, Report("pass-soft", "split", "Look before you trust it.", tests)))

        assert play(test=test) == 1
        err = capsys.readouterr().err
        assert "Candidate 1 unconfirmed 2 of 2: Look before you trust it.\n" in err
        assert "The candidate's pass is unconfirmed: Look before you trust it.\n" in err
        assert play(test=test, texts=(GOOD, BAD)) == 1
        assert "None of 2 candidates passes; the best is 1, unconfirmed 2 of 2: Look" in capsys.readouterr().err
        monkeypatch.setattr(commands, "RunnerClient", type("Runner", (FakeRunner,), {"test": test}))
        (tmp_path / "a.py").write_text("assert good")
        assert main(["test", "--solution", str(tmp_path / "a.py"), "--tests", str(tmp_path / "a.py")]) == 1
        assert capsys.readouterr().out == "unconfirmed: 2 of 2 tests passed\n  Look before you trust it.\n"

    def test_without_tests_finishing_counts(self, play: Callable[..., int]) -> None:
        assert play(tests_too=False) == 0
        assert play("--max-tokens", "1", texts=(GOOD,), tests_too=False) == 0
        failing = ScriptedEngine(Script((ScriptedCandidate(("x",), fails=True),), step_s=0.001))
        assert play(engine=failing, tests_too=False) == 1


class TestEnginesThatFail:
    def test_a_load_that_fails(self, play: Callable[..., int], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        engine = ScriptedEngine(Script((), step_s=0.001, load_failure="The file is cut off."))
        assert play("--json", engine=engine) == 2
        out, err = capsysbinary.readouterr()
        assert (out, err.count(b"The file is cut off.")) == (b"", 1)

    def test_a_run_that_fails_keeps_what_finished(
        self, play: Callable[..., int], capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        candidates = (ScriptedCandidate((GOOD,)), ScriptedCandidate(tuple("long text")))
        engine = ScriptedEngine(Script(candidates, step_s=0.001, run_failure="Out of memory."))
        assert play("--json", texts=(GOOD, BAD), engine=engine) == 0
        out, err = capsysbinary.readouterr()
        assert [c["state"] for c in json.loads(out)["candidates"]] == ["done", "failed"]
        assert b"Out of memory." in err

    def test_a_refused_request_is_bad_use(self, play: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
        def refuse(message: Generate, emit: Emit) -> None:
            emit(RunFinished(message.run, "refused", reason="The prompt is too long."))

        assert play("--json", engine=FakeEngine(refuse)) == 2
        out, err = capsys.readouterr()
        assert (out, err.splitlines()[-1]) == ("", "bassline: The prompt is too long.")

    def test_an_engine_that_crashes(self, play: Callable[..., int], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        def crash(message: Generate, emit: Emit) -> None:
            emit(RunStarted(message.run, 1, (1, 2), 1))
            emit(CandidateFinished(message.run, 1, "done", "stop", GOOD, 3, 0, 0, -1.0, 0.1))
            raise RuntimeError("index out of range")

        assert play("--json", texts=(GOOD, BAD), engine=FakeEngine(crash)) == 0
        out, err = capsysbinary.readouterr()
        assert [c["state"] for c in json.loads(out)["candidates"]] == ["done", "failed"]
        assert b"The engine stopped with an error: index out of range" in err


class FakeEngine:
    """Loads at once, then does what it is told with each Generate."""

    def __init__(self, generate: Callable[[Generate, Emit], None]):
        self.mailbox, self.generate = Mailbox(), generate

    def submit(self, message: Message) -> None:
        self.mailbox.put(message)

    def run(self, emit: Emit) -> None:
        emit(Ready("fake", "cpu", "none", 100))
        while isinstance(message := self.mailbox.next(), Load | Generate):
            if isinstance(message, Generate):
                self.generate(message, emit)
        emit(Closed())


class TestConsent:
    def test_without_a_sandbox_nothing_runs(
        self, play: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))  # no terminal, so this is no answer
        assert play(sealed=False) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "There is no sandbox here. Nothing was run; add --yes" in err
        assert (FakeRunner.last.tests, FakeRunner.last.closed) == ([], True)

    def test_yes_consents(self, play: Callable[..., int]) -> None:
        assert play("--yes", sealed=False) == 0
        assert [test.consent for test in FakeRunner.last.tests] == [True]

    def test_with_a_sandbox_yes_gives_no_consent_that_nobody_asked_for(self, play: Callable[..., int]) -> None:
        assert play("--yes") == 0
        assert [test.consent for test in FakeRunner.last.tests] == [False]

    @pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("Yes\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
    def test_a_terminal_asks(
        self, play: Callable[..., int], monkeypatch: pytest.MonkeyPatch, typed: str, code: int
    ) -> None:
        stdin = io.StringIO(typed)
        monkeypatch.setattr(stdin, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        assert play(sealed=False) == code

    def test_a_test_file_that_needs_consent(self, play: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
        assert play("--yes", asks=True) == 0
        assert [test.consent for test in FakeRunner.last.tests] == [False, True]
        assert play(asks=True) == 1
        assert "This test file needs consent. The tests were not run" in capsys.readouterr().err

    def test_the_test_command_asks_too(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "a.py").write_text("assert good")
        words = ["test", "--solution", str(tmp_path / "a.py"), "--tests", str(tmp_path / "a.py")]
        monkeypatch.setattr(commands, "RunnerClient", type("Runner", (FakeRunner,), {"asks": True}))
        assert main(words) == 2
        assert "Nothing was run" in capsys.readouterr().err
        assert main([*words, "--yes"]) == 0
        assert capsys.readouterr().out == "passed: 1 of 1 tests passed\n"

    def test_a_runner_that_never_answers(
        self, play: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(generation, "_PROBE_S", 0.01)
        assert play(probe=lambda self: None) == 2
        assert "The test runner did not start" in capsys.readouterr().err


class TestCtrlC:
    @pytest.mark.parametrize("moment", ["Loading", "Ready", "RunStarted", "PromptProgress", "TextAdded"])
    def test_at_any_moment(self, play: Callable[..., int], moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
        pressed = _press_at(moment, monkeypatch)
        long = ScriptedEngine(Script((ScriptedCandidate(tuple("x" * 10_000)),), step_s=0.001))
        assert play("--json", engine=long) == 130
        assert pressed == [moment]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert FakeRunner.last.closed

    def test_while_tests_run(
        self, play: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        _press_at("RunFinished", monkeypatch)
        assert play("--json", mute=True) == 130
        assert FakeRunner.last.cancelled == [FakeRunner.last.tests[0].id]
        candidate = json.loads(capsysbinary.readouterr().out)["candidates"][0]
        assert (candidate["state"], candidate["tests"]) == ("done", None)

    def test_a_second_one_leaves_at_once(self, play: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
        def deaf(message: Generate, emit: Emit) -> None:
            emit(RunStarted(message.run, 1, (1,), 1))

        class Left(Exception):
            pass

        def leave(code: int) -> None:
            assert code == interrupts.INTERRUPTED
            raise Left

        monkeypatch.setattr(generation, "_CLOSE_S", 0.1)
        monkeypatch.setattr(interrupts, "leave", leave)  # it would end this process
        _press_at("RunStarted", monkeypatch)
        monkeypatch.setattr(PlainProgress, "note", lambda self, sentence: _press())  # "Stopping; ..." is all it says
        with pytest.raises(Left):
            play(engine=FakeEngine(deaf))

    def test_while_one_file_is_tested(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text("assert good")
        monkeypatch.setattr(commands, "RunnerClient", type("Runner", (FakeRunner,), {"test": lambda *_: _press()}))
        assert main(["test", "--solution", str(tmp_path / "a.py"), "--tests", str(tmp_path / "a.py")]) == 130
        assert FakeRunner.last.closed
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _press() -> None:
    signal.raise_signal(signal.SIGINT)


def _press_at(moment: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Press Ctrl-C when the first event of that name is shown."""
    pressed: list[str] = []

    def event(self: PlainProgress, event: Any, run: Any = None) -> None:
        if type(event).__name__ == moment and not pressed:
            pressed.append(moment)
            _press()

    monkeypatch.setattr(PlainProgress, "event", event)
    return pressed


def test_export_says_what_it_saved_and_needs_leave_to_replace(
    play: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert play("--export", out, texts=(BAD, GOOD)) == 0
    assert f"Saved to {out}: 5 files; best.py is candidate 2." in capsys.readouterr().err
    assert play("--export", out) == 2
    assert "exists already" in capsys.readouterr().err
    assert play("--export", out, "--overwrite") == 0
    assert not (tmp_path / "out" / "candidate-2.py").exists()


def test_what_cannot_be_saved_is_printed_all_the_same(
    play: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(playing, "check_folder", lambda *arguments: None)  # it was there before the run
    assert play("--export", str(tmp_path / "file" / "out")) == 2
    out, err = capsysbinary.readouterr()
    assert out == b"good = 1\n"
    assert b"could not be saved: part of the path is a file" in err


def test_ctrl_c_before_the_run_prints_nothing(
    play: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _press_at("Loading", monkeypatch)
    assert play("--json") == 130
    assert capsys.readouterr().out == ""


def test_a_random_seed_is_shown(play: Callable[..., int], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert play("--json", tests_too=False) == 0
    out, err = capsysbinary.readouterr()
    assert f"seed {json.loads(out)['candidates'][0]['seed']}," in err.decode()


def test_options_reach_the_request(play: Callable[..., int]) -> None:
    seen: list[Any] = []

    def generate(message: Generate, emit: Emit) -> None:
        seen.append(message.request)
        emit(RunFinished(message.run, "finished"))

    words = "--temperature 0.5 --top-p 0.9 --top-k 40 --max-tokens 99 --seed 3 --stop A --stop B --time-budget 60"
    words += " --mode completion --drafter suffix --policy fixed:4 --acceptance rejection --stop-at function"
    words += " --min-p 0.05 --repetition-penalty 1.1 --presence-penalty 0.2 --frequency-penalty -0.3"
    play(*words.split(), engine=FakeEngine(generate), texts=(GOOD, BAD))
    request = seen[0]
    assert (request.prompt, request.seed, request.candidates, request.mode) == ("anything", 3, 2, "completion")
    assert request.time_budget_s == 60
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.max_tokens) == (0.5, 0.9, 40, 99)
    assert (sampling.stop, sampling.code_stop, sampling.min_p) == (("A", "B"), "function", 0.05)
    penalties = (sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty)
    assert (penalties, request.overrides) == ((1.1, 0.2, -0.3), {})
    speculation = request.speculation
    assert (speculation.drafter, speculation.policy, speculation.acceptance) == ("suffix", "fixed:4", "rejection")


def request_for(*words: str) -> Request:
    arguments = parser().parse_args(["generate", "x", *words])
    return request_of(arguments, "x", read_suffix(arguments))


@pytest.mark.parametrize(
    ("text", "count", "temperatures"),
    [("0.2..1.2", 5, [0.2, 0.45, 0.7, 0.95, 1.2]), ("0..1", 1, [0.0]), ("1.2..0.2", 2, [1.2, 0.2])],
)
def test_a_range_of_temperatures_is_spread_over_the_candidates(
    text: str, count: int, temperatures: list[float]
) -> None:
    request = request_for("--temperature", text, "-n", str(count), "--top-p", "0.5")
    assert [request.sampling_of(number).temperature for number in request.numbers] == temperatures
    assert {request.sampling_of(number).top_p for number in request.numbers} == {0.5}


def test_the_text_after_a_gap_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "after.py").write_bytes(b"\r\nprint(f(1))\n")
    request = request_for("--mode", "fill-in-the-middle", "--suffix-file", str(tmp_path / "after.py"))
    assert (request.mode, request.suffix) == ("fill-in-the-middle", "\r\nprint(f(1))\n")


def test_models_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path))
    assert main(["models", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sum(row["default"] for row in rows) == 1
    assert main(["models", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [row["name"] for row in rows]


def test_tests_that_say_nothing_about_the_solution_are_bad_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def test(self: FakeRunner, test: RunTests) -> None:
        self.answer(TestFinished(test.id, Report("infra", "split", "The tests could not be collected.")))

    (tmp_path / "a.py").write_text("assert good")
    monkeypatch.setattr(commands, "RunnerClient", type("Runner", (FakeRunner,), {"test": test}))
    assert main(["test", "--solution", str(tmp_path / "a.py"), "--tests", str(tmp_path / "a.py")]) == 2
    assert "The tests could not be collected." in capsys.readouterr().out


def test_tests_of_one_file_may_call_it_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("good = 1")
    (tmp_path / "t.py").write_text("import good\nassert good")
    monkeypatch.setattr(commands, "RunnerClient", FakeRunner)
    assert main(["test", "--solution", str(tmp_path / "good.py"), "--tests", str(tmp_path / "t.py")]) == 0
    assert FakeRunner.last.tests[0].tests == "import solution as good\nassert good"


def test_stop_at_first_pass_stops_the_others(play: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    long = ScriptedCandidate(tuple("y" * 4000))
    engine = ScriptedEngine(Script((long, ScriptedCandidate((GOOD,)), long), step_s=0.005))
    assert play("--stop-at-first-pass", "--json", texts=("", "", ""), engine=engine) == 0
    printed = capsys.readouterr()
    states = {c["id"]: c["state"] for c in json.loads(printed.out)["candidates"]}
    assert states == {1: "stopped", 2: "done", 3: "stopped"}
    assert "Candidate 2 passed; the others are stopped." in printed.err


def test_stop_at_first_pass_needs_tests(play: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert play("--stop-at-first-pass", tests_too=False) == 2
    assert "--stop-at-first-pass needs tests" in capsys.readouterr().err


RIGHT = ScriptedCandidate((GOOD,))


def wrong(count: int) -> tuple[ScriptedCandidate, ...]:
    return tuple(ScriptedCandidate((f"x = {n}\n",)) for n in range(count))


def test_until_pass_goes_on_with_the_same_seed_until_one_passes(
    play: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ScriptedEngine(Script((*wrong(19), RIGHT), step_s=0.001))
    assert play("--until-pass", "--json", engine=engine) == 0
    result = json.loads(capsys.readouterr().out)
    assert [c["id"] for c in result["candidates"] if c["tests"] and c["tests"]["verdict"] == "pass"] == [20]
    assert {c["origin"]["arm"] for c in result["candidates"]} <= set(ARMS)
    assert result["decisions"][0]["arm"] == "fresh"


def test_until_pass_ends_at_its_budget(play: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine(Script(wrong(30), step_s=0.001))
    assert play("--until-pass", "--max-candidates", "11", "--json", engine=engine) == 1
    assert len(json.loads(capsys.readouterr().out)["candidates"]) == 11


def test_until_pass_gives_up_in_time(play: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine(Script((ScriptedCandidate(("```python\n", *["x = 1\n"] * 40_000)),), step_s=0.005))
    assert play("--until-pass", "--time-budget", "0.5", "--json", engine=engine) == 1
    states = {c["state"] for c in json.loads(capsys.readouterr().out)["candidates"]}
    assert states == {"stopped"}


def test_what_befell_a_candidate_is_said_though_the_run_goes_on(
    play: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    def generate(message: Generate, emit: Emit) -> None:
        numbers = message.request.numbers
        emit(RunStarted(message.run, 1, tuple(numbers), 1))
        for number in numbers:
            text = GOOD if number > 8 else f"```python\nbad = {number}\n```\n"
            emit(CandidateFinished(message.run, number, "done", "stop", text, 3, 0, 0, -1.0, 0.1))
        reason = "Candidate 8: The prompt has 9 tokens." if numbers.start == 1 else ""
        emit(RunFinished(message.run, "finished", reason=reason))

    assert play("--until-pass", engine=FakeEngine(generate)) == 0
    assert capsys.readouterr().err.count("bassline: Candidate 8: The prompt has 9 tokens.") == 1


def test_a_load_that_takes_longer_than_the_time_budget_is_no_part_of_it(
    play: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    class Slow(ScriptedEngine):
        def _load(self, emit: Emit) -> None:
            time.sleep(1.5)
            super()._load(emit)

    engine = Slow(Script((ScriptedCandidate((GOOD,)),), step_s=0.001))
    assert play("--until-pass", "--time-budget", "1", engine=engine) == 0
    assert "candidate 1 is picked" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "tests_too", "sentence"),
    [
        (("--until-pass",), False, "--until-pass needs tests"),
        (("--until-pass", "--max-candidates", "0"), True, "The most candidates must be at least 1"),
        (("--max-candidates", "5"), True, "add --until-pass"),
        (("--until-pass", "--time-budget", "-1"), True, "The time budget must be a positive number of seconds"),
    ],
)
def test_until_pass_that_cannot_be(
    words: tuple[str, ...],
    tests_too: bool,
    sentence: str,
    play: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert play(*words, tests_too=tests_too) == 2
    assert sentence in capsys.readouterr().err
