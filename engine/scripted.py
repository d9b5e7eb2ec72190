"""An engine that plays recorded text on a clock: for tests, screenshots and trying Bassline without a model.

It obeys the contract to the letter (states, order, one RunFinished) and says nothing about speed or quality.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.contract import (
    Add,
    Cancel,
    CandidateFinished,
    Close,
    Closed,
    Emit,
    Generate,
    Load,
    LoadFailed,
    Loading,
    Mailbox,
    Message,
    Metrics,
    PromptProgress,
    Ready,
    RunFinished,
    RunOutcome,
    RunStarted,
    StepDone,
    StopReason,
    TextAdded,
)
from engine.contract.states import LEFT_BY, STATE_AFTER


class Clock(Protocol):
    """Seconds that pass, or are made to pass."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None:
        """Return when ``seconds`` have gone by on this clock."""


class WallClock:
    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class HandClock:
    """Time moves only by ``advance``; a sleeper on another thread wakes when its moment has come."""

    def __init__(self) -> None:
        self._now = 0.0
        self._moved = threading.Condition()

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        with self._moved:
            self._now += seconds
            self._moved.notify_all()

    def sleep(self, seconds: float) -> None:
        with self._moved:
            until = self._now + seconds
            self._moved.wait_for(lambda: self._now >= until - 1e-9)


@dataclass(frozen=True)
class ScriptedCandidate:
    """Text given in ``chunks``, one a step; ``fails`` ends it as failed instead of done."""

    chunks: tuple[str, ...]
    mean_logprob: float = -0.25
    fails: bool = False


@dataclass(frozen=True)
class Script:
    """What to play. A run of more candidates than recorded starts over from the first."""

    candidates: tuple[ScriptedCandidate, ...]
    step_s: float = 0.02
    load_stages: tuple[tuple[str, int], ...] = (("weights", 4), ("warm-up", 1))
    load_failure: str = ""
    run_failure: str = ""
    failure_kind: str = ""
    speedup: float | None = None
    prompt_steps: int = 2
    model: str = "scripted"


def from_texts(texts: Sequence[str], chunk: int = 4, **options: object) -> Script:
    """A script that plays each text in pieces of ``chunk`` characters."""
    pieces = (tuple(text[i : i + chunk] for i in range(0, len(text), chunk)) for text in texts)
    return Script(tuple(ScriptedCandidate(p, mean_logprob=-0.2 - 0.01 * i) for i, p in enumerate(pieces)), **options)  # type: ignore[arg-type]


class ScriptedEngine:
    """See ``engine.contract.Engine``."""

    def __init__(self, script: Script, clock: Clock | None = None):
        self.script = script
        self.clock = clock or WallClock()
        self.mailbox = Mailbox()

    def submit(self, message: Message) -> None:
        self.mailbox.put(message)

    def run(self, emit: Emit) -> None:
        while not isinstance(message := self.mailbox.next(), Close):
            if isinstance(message, Load):
                self._load(emit)
            else:
                _Performance(self, message, emit).play()
        emit(Closed())

    def _load(self, emit: Emit) -> None:
        for stage, count in self.script.load_stages:
            for done in range(count + 1):
                emit(Loading(stage, done, count, "steps"))
                self.clock.sleep(self.script.step_s)
                if self.mailbox.during(""):
                    emit(LoadFailed("Loading was stopped.", cancelled=True))
                    return
        if self.script.load_failure:
            emit(LoadFailed(self.script.load_failure, kind=self.script.failure_kind))
        else:
            emit(Ready(self.script.model, "scripted", "none", context=8192))


class _Performance:
    """One run of the script."""

    def __init__(self, engine: ScriptedEngine, message: Generate, emit: Emit):
        self.engine, self.run, self.request, self.emit = engine, message.run, message.request, emit
        self.prompt_tokens = len(self.request.prompt.split())
        self.played: dict[int, int] = {}  # candidate -> chunks given so far
        self.finished_at: dict[int, float] = {}
        self.steps = self.most_at_once = 0
        self.start = engine.clock.now()

    def play(self) -> None:
        numbers = tuple(self.request.numbers)
        self.emit(RunStarted(self.run, self.prompt_tokens, numbers, self.request.seed))
        self.played = dict.fromkeys(numbers, 0)
        outcome = self._read_prompt()
        while outcome == RunOutcome.FINISHED and self.active():
            outcome = self._step()
        for number in self.active():
            self._finish(number, LEFT_BY[outcome])
        failed = outcome == RunOutcome.FAILED
        reason, kind = (self.engine.script.run_failure, self.engine.script.failure_kind) if failed else ("", "")
        self.emit(RunFinished(self.run, outcome, self._metrics(), reason, kind=kind))

    def active(self) -> list[int]:
        return [number for number in self.played if number not in self.finished_at]

    def _now(self) -> float:
        return self.engine.clock.now() - self.start

    def _read_prompt(self) -> RunOutcome:
        total = self.engine.script.prompt_steps
        for done in range(1, total + 1):
            self.engine.clock.sleep(self.engine.script.step_s)
            self.emit(PromptProgress(self.run, done * self.prompt_tokens // total, self.prompt_tokens))
            if self._stopped():
                return RunOutcome.STOPPED
        return RunOutcome.FINISHED

    def _step(self) -> RunOutcome:
        self.engine.clock.sleep(self.engine.script.step_s)
        if self._stopped():
            return RunOutcome.STOPPED
        if self.request.time_budget_s is not None and self._now() >= self.request.time_budget_s:
            return RunOutcome.BUDGET
        if self.engine.script.run_failure and self.steps >= 3:
            return RunOutcome.FAILED
        self.steps += 1
        self.most_at_once = max(self.most_at_once, len(self.active()))
        for number in self.active():
            script = self._script(number)
            chunk = self.played[number]
            if chunk < len(script.chunks):
                self.played[number] += 1
                self.emit(TextAdded(self.run, number, script.chunks[chunk], self.played[number], self._now()))
            if self.played[number] >= self.request.sampling.max_tokens:
                self._finish(number, StopReason.LENGTH)
            elif self.played[number] == len(script.chunks):
                self._finish(number, StopReason.ERROR if script.fails else StopReason.STOP)
        tokens = sum(self.played.values())
        self.emit(StepDone(self.run, self.steps, tokens, tokens, tokens * 3 // 4, len(self.active()), self._now()))
        return RunOutcome.FINISHED

    def _stopped(self) -> bool:
        for message in self.engine.mailbox.during(self.run):
            if isinstance(message, Add):
                first = max(self.played) + 1
                self.played |= dict.fromkeys(range(first, first + message.count), 0)
            elif isinstance(message, Cancel) and message.candidate is None:
                return True
            elif isinstance(message, Cancel) and message.candidate in self.active():
                self._finish(message.candidate, StopReason.CANCELLED)
        return False

    def _script(self, number: int) -> ScriptedCandidate:
        return self.engine.script.candidates[(number - 1) % len(self.engine.script.candidates)]

    def _finish(self, number: int, stop_reason: StopReason) -> None:
        script, tokens = self._script(number), self.played[number]
        self.finished_at[number] = self._now()
        text = "".join(script.chunks[:tokens])
        counts = (tokens, tokens, tokens * 3 // 4)
        logprob = script.mean_logprob if tokens else None
        self.emit(
            CandidateFinished(
                self.run, number, STATE_AFTER[stop_reason], stop_reason, text, *counts, logprob, self._now()
            )
        )

    def _metrics(self) -> Metrics:
        total, tokens = self._now(), sum(self.played.values())
        rates = [
            1e3 * at / self.played[n]
            for n, at in sorted(self.finished_at.items(), key=lambda x: x[1])
            if self.played[n]
        ]
        return Metrics(
            time_to_first_token_s=self.engine.script.step_s * (self.engine.script.prompt_steps + 1) if tokens else None,
            time_to_first_finished_s=min(self.finished_at.values(), default=None),
            total_s=total,
            tokens_per_second=tokens / total if total else None,
            ms_per_token_first=rates[0] if rates else None,
            ms_per_token_last=rates[-1] if rates else None,
            ms_per_token_mean=sum(rates) / len(rates) if rates else None,
            acceptance_rate=0.75 if tokens else None,
            steps=self.steps,
            device="scripted",
            precision="none",
            drafter=self.request.speculation.drafter,
            policy=self.request.speculation.policy,
            acceptance=self.request.speculation.acceptance,
            speedup=self.engine.script.speedup,
            width=self.most_at_once,
        )
