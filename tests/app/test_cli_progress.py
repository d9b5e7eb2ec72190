"""What stderr shows: a calm line on a terminal, plain lines in a log, and nothing a terminal would obey."""

import io
import json

import pytest

from app.cli.output import one_line, shown
from app.cli.progress import (
    JsonProgress,
    PlainProgress,
    SilentProgress,
    StatusLineProgress,
    loading_text,
    open_progress,
    run_text,
)
from engine.contract import (
    CandidateFinished,
    Event,
    Loading,
    PromptProgress,
    Ready,
    Request,
    RunFinished,
    RunStarted,
    StepDone,
    TextAdded,
)
from engine.runner.report import Report, TestResult
from engine.session.run import Run

EVENTS: list[Event] = [
    Loading("download", 0, 100 << 20),
    Loading("download", 5 << 20, 100 << 20),
    Loading("download", 50 << 20, 100 << 20),
    Loading("weights", 1, 4, "steps"),
    Loading("weights", 2, 4, "steps"),
    Ready("m", "cpu", "int8", 100, note="Running without draft."),
    RunStarted("r", 12, (1, 2), 7),
    PromptProgress("r", 6, 12),
    TextAdded("r", 1, "x = 1", 3, 0.5),
    StepDone("r", 2, 30, 20, 15, 2, 1.5),
    CandidateFinished("r", 1, "done", "stop", "x = 1", 3, 2, 1, -1.0, 2.0),
    CandidateFinished("r", 2, "cut", "length", "x = 1", 3, 2, 1, -1.0, 3.0),
    RunFinished("r", "finished"),
]
FAIL = Report("fail", "split", tests=(TestResult("1", "failed", "assert '\x1b[2J' == 1\nmore"),))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_run() -> Run:
    return Run("r", Request("p", seed=7, candidates=2), "assert x")


def test_plain_lines() -> None:
    stream, run = io.StringIO(), a_run()
    progress = open_progress("auto", stream)
    assert isinstance(progress, PlainProgress)
    for event in EVENTS:
        run.apply(event)
        progress.event(event, run)
    run.record(1, FAIL, 1.0)
    progress.tested(run, 1)
    assert stream.getvalue().splitlines() == [
        "Download: 0 of 100 MiB",
        "Download: 50 of 100 MiB",
        "Weights: 1 of 4 steps",
        "m is ready (cpu, int8). Running without draft.",
        "2 candidates, seed 7, prompt of 12 tokens.",
        "Candidate 1 done: 3 tokens in 2.0 s.",
        "Candidate 2 cut: 3 tokens in 3.0 s, same code as candidate 1.",
        "Candidate 1 failed 1 of 1: assert '\\x1b[2J' == 1",
    ]


def test_json_lines() -> None:
    stream, run = io.StringIO(), a_run()
    progress = open_progress("jsonl", stream)
    assert isinstance(progress, JsonProgress)
    for event in EVENTS:
        run.apply(event)
        progress.event(event, run)
    run.record(1, FAIL, 1.0)
    progress.tested(run, 1)
    progress.note("Done.\nTwo lines.")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == [type(event).__name__ for event in EVENTS] + ["Tested", "Note"]
    assert lines[-2] == {"event": "Tested", "run": "r", "candidate": 1, "state": "failed", "done": 1, "total": 1}


def test_none_still_says_what_a_person_must_read() -> None:
    stream, run = io.StringIO(), a_run()
    progress = open_progress("none", stream)
    assert type(progress) is SilentProgress
    for event in EVENTS:
        progress.event(event, run)
    progress.note("No.")
    assert stream.getvalue() == "No.\n"


class TestStatusLine:
    def line(self, seconds: list[float]) -> tuple[StatusLineProgress, Terminal]:
        stream = Terminal()
        return StatusLineProgress(stream, now=lambda: seconds[0]), stream

    def test_it_is_what_a_terminal_gets(self) -> None:
        assert isinstance(open_progress("auto", Terminal()), StatusLineProgress)

    def test_one_line_at_most_ten_times_a_second(self) -> None:
        seconds, run = [0.0], a_run()
        line, stream = self.line(seconds)
        for number in range(1000):
            seconds[0] = number / 1000
            event = StepDone("r", number + 1, 10 * number, 4, 3, 2, 1.0)
            run.apply(event)
            line.event(event, run)
        assert stream.getvalue().count("\r\x1b[2K") == 10
        assert "\n" not in stream.getvalue()

    def test_the_last_state_is_drawn_when_time_has_passed(self) -> None:
        seconds = [0.0]
        line, stream = self.line(seconds)
        line.event(Loading("weights", 1, 4, "steps"))
        line.event(Loading("weights", 2, 4, "steps"))
        assert stream.getvalue().endswith("Weights: 1 of 4 steps")
        seconds[0] = 0.2
        line.tick()
        assert stream.getvalue().endswith("Weights: 2 of 4 steps")

    def test_notes_do_not_mix_with_it_and_nothing_is_left(self) -> None:
        line, stream = self.line([0.0])
        line.event(PromptProgress("r", 6, 12), a_run())
        line.note("Read me.")
        line.tick()
        line.close()
        assert stream.getvalue() == (
            "\r\x1b[2KReading the prompt: 6 of 12 tokens\r\x1b[2KRead me.\n"
            "\r\x1b[2KReading the prompt: 6 of 12 tokens\r\x1b[2K"
        )

    def test_it_never_wraps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "20")
        line, stream = self.line([0.0])
        line.event(Loading("a stage with a very long name"))
        assert len(stream.getvalue().removeprefix("\r\x1b[2K")) == 19


def test_words_for_a_load() -> None:
    assert loading_text(Loading("download", 120 << 20, 1491 << 20)) == "Download: 120 of 1,491 MiB"
    assert loading_text(Loading("warm-up")) == "Warm-up…"


def test_words_for_a_run() -> None:
    run = a_run()
    assert run_text(run) == "0 of 2 finished, 0 tested, 0 pass"
    for event in EVENTS[:-2]:
        run.apply(event)
    assert run_text(run) == "1 of 2 finished, 0 tested, 0 pass | 30 tokens | 20 tok/s | drafts accepted 75 %"
    run.stop()
    assert run_text(run).startswith("Stopping… | ")


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\rb", "a\\rb"),
        ("\u202eabc\u2028", "\\u202eabc\\u2028"),
        ("é 中 😀 <T> &amp;", "é 中 😀 <T> &amp;"),
        ("\ufeff\ud800", "\\ufeff\\ud800"),
    ],
)
def test_a_terminal_obeys_nothing(text: str, safe: str) -> None:
    assert shown(text) == safe


def test_one_line() -> None:
    assert one_line("\n  first \nsecond") == "first"
    assert one_line("x" * 200) == "x" * 99 + "…"
    assert one_line("") == ""
