"""What stderr shows while a command works: one calm line on a terminal, plain lines in a log, or JSON lines."""

import json
import shutil
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from app.cli.output import one_line, put, shown
from engine.contract import CandidateFinished, Event, Loading, PromptProgress, Ready, RunStarted
from engine.contract.wire import event_to_line
from engine.session.run import Run
from engine.session.states import RUN_STATES, RunState

_MIB = 1 << 20


class Progress(Protocol):
    def event(self, event: Event, run: Run | None = None) -> None:
        """The engine said something, and ``run`` has taken it in."""

    def tested(self, run: Run, number: int) -> None:
        """The tests of one candidate have begun, gone on or ended."""

    def note(self, sentence: str) -> None:
        """Something a user should read."""

    def tick(self) -> None:
        """Time has passed."""

    def close(self) -> None:
        """Leave the terminal as it was."""


def open_progress(kind: str, stream: TextIO | None = None) -> Progress:
    """``kind``: auto (a status line on a terminal, else plain lines), jsonl or none."""
    stream = stream or sys.stderr
    if kind == "jsonl":
        return JsonProgress(stream)
    if kind == "none":
        return SilentProgress(stream)
    return StatusLineProgress(stream) if stream.isatty() else PlainProgress(stream)


class SilentProgress:
    """Nothing but what a user must read."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def event(self, event: Event, run: Run | None = None) -> None: ...

    def tested(self, run: Run, number: int) -> None: ...

    def note(self, sentence: str) -> None:
        put(self.stream, shown(sentence) + "\n")

    def tick(self) -> None: ...

    def close(self) -> None: ...


class JsonProgress(SilentProgress):
    """One object a line: every event of the engine under its name, ``Tested`` for the tests, ``Note`` for the rest."""

    def event(self, event: Event, run: Run | None = None) -> None:
        self._line(event_to_line(event))

    def tested(self, run: Run, number: int) -> None:
        candidate = run.candidates[number]
        tested = {"event": "Tested", "run": run.name, "candidate": number, "state": candidate.test_state}
        self._line(json.dumps(tested | {"done": candidate.tests_done, "total": candidate.tests_total}))

    def note(self, sentence: str) -> None:
        self._line(json.dumps({"event": "Note", "text": sentence}))

    def _line(self, line: str) -> None:
        put(self.stream, line + "\n")


class PlainProgress(SilentProgress):
    """A line when something worth a line has happened; long loads speak at every tenth."""

    def __init__(self, stream: TextIO):
        super().__init__(stream)
        self._last_stage = ""

    def event(self, event: Event, run: Run | None = None) -> None:
        if isinstance(event, Loading):
            tenths = 10 * event.done // event.total if event.total and event.unit == "bytes" else 0
            if f"{event.stage} {tenths}" != self._last_stage:
                self._last_stage = f"{event.stage} {tenths}"
                self.note(loading_text(event))
        elif isinstance(event, Ready):
            self.note(
                f"{event.model} is ready ({event.device}, {event.precision})." + (event.note and f" {event.note}")
            )
        elif isinstance(event, RunStarted):
            count = len(event.candidates)
            prompt = f", prompt of {event.prompt_tokens} tokens" if event.prompt_tokens else ""  # a server keeps it
            self.note(f"{count} candidate{'s' * (count != 1)}, seed {event.seed}{prompt}.")
        elif isinstance(event, CandidateFinished):
            alike = run.candidates[event.candidate].same_as if run else None
            same = f", {alike.reason} as candidate {alike.number}" if alike else ""
            none = ", no code" if run and run.candidates[event.candidate].has_no_code else ""
            took = f"{event.tokens} tokens in {event.at_s:.1f} s"
            self.note(f"Candidate {event.candidate} {event.state}: {took}{none}{same}.")

    def tested(self, run: Run, number: int) -> None:
        candidate = run.candidates[number]
        if candidate.report:
            self.note(
                f"Candidate {number} {candidate.tests_label}" + (f": {one_line(w)}" if (w := candidate.why) else ".")
            )


class StatusLineProgress(SilentProgress):
    """One line that is rewritten in place, at most ten times a second."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic):
        super().__init__(stream)
        self._now, self._drawn_at, self._text, self._drawn = now, -1.0, "", ""

    def event(self, event: Event, run: Run | None = None) -> None:
        if isinstance(event, Ready):
            if event.note:
                self.note(event.note)
        elif isinstance(event, Loading):
            self._text = loading_text(event)
        elif isinstance(event, PromptProgress):
            self._text = f"Reading the prompt: {event.done} of {event.total} tokens"
        elif run is not None:
            self._text = run_text(run)
        self.tick()

    def tested(self, run: Run, number: int) -> None:
        self._text = run_text(run)
        self.tick()

    def note(self, sentence: str) -> None:
        self._erase()
        super().note(sentence)

    def tick(self) -> None:
        if self._text != self._drawn and self._now() - self._drawn_at >= 0.1:
            width = shutil.get_terminal_size().columns - 1
            put(self.stream, f"\r\x1b[2K{one_line(self._text, max(10, width))}")
            self._drawn, self._drawn_at = self._text, self._now()

    def close(self) -> None:
        self._erase()
        self._text = ""

    def _erase(self) -> None:
        if self._drawn:
            put(self.stream, "\r\x1b[2K")
            self._drawn, self._drawn_at = "", -1.0


def loading_text(event: Loading) -> str:
    """ "Download: 120 of 491 MiB" and the like."""
    stage = event.stage[:1].upper() + event.stage[1:]
    if not event.total:
        return f"{stage}…"
    if event.unit == "bytes":
        return f"{stage}: {event.done // _MIB:,} of {event.total // _MIB:,} MiB"
    return f"{stage}: {event.done} of {event.total} {event.unit}"


def run_text(run: Run) -> str:
    """ "3 of 8 finished, 2 tested, 1 passes | 412 tokens | drafts accepted 71 %" """
    candidates = run.candidates.values()
    counts = [f"{sum(c.ended for c in candidates)} of {len(candidates)} finished"]
    if run.tests:
        counts.append(f"{sum(c.report is not None for c in candidates)} tested")
        counts.append(f"{sum(c.passed for c in candidates)} pass")
    parts = [", ".join(counts)]
    if run.totals:
        parts.append(f"{run.totals.tokens:,} tokens")
        if run.totals.at_s > 0:
            parts.append(f"{run.totals.tokens / run.totals.at_s:.0f} tok/s")
        if run.totals.proposed:
            parts.append(f"drafts accepted {100 * run.totals.accepted / run.totals.proposed:.0f} %")
    if run.state == RunState.STOPPING:
        parts.insert(0, RUN_STATES[run.state].word)
    return " | ".join(parts)
