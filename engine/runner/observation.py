"""The service's end of an observation: one box for one candidate, from its text to what it did on each input."""

import asyncio
import json
import secrets
import time
from typing import Any

from engine.runner.box import Box
from engine.runner.cgroups import Groups
from engine.runner.layers import Layers
from engine.runner.pair import RunnerFault, first_record
from engine.runner.protocol import Observe, Observed
from engine.runner.task import Observation

_MOST = 400  # inputs of one request
_GIVEN = 2 << 20  # characters of all inputs


class Observations:
    """Runs requests in boxes of the role *observer*; the next box is started while the last one is in use."""

    def __init__(self, groups: Groups | None):
        self._groups = groups
        self._layers: Layers | None = None
        self._next: asyncio.Task[Box] | None = None

    async def run(self, request: Observe, layers: Layers) -> Observed:
        """What the candidate did on each input. Raises RunnerFault."""
        start = time.monotonic()
        inputs = [json.loads(text) for text in request.inputs]
        if len(inputs) > _MOST or sum(map(len, request.inputs)) > _GIVEN:
            raise RunnerFault(f"At most {_MOST} inputs are tried at once, and these are more or too long.")
        box = await self._take(layers)
        end = time.monotonic() + request.total_timeout_s
        outcomes: list[dict[str, Any]] = [{"kind": "skipped"} for _ in inputs]
        key = secrets.token_hex(16)
        task = Observation(
            request.solution,
            tuple(inputs),
            request.setup,
            request.twice,
            request.call_timeout_s,
            request.total_timeout_s,
            key=key,
            seconds=request.total_timeout_s,
        )
        done = False
        try:
            await box.give(task)
            while not done and (line := await box.read_line(end - time.monotonic() + _GRACE_S)):
                done = _enter(line, key, outcomes)
        except (TimeoutError, ValueError):
            pass
        finally:
            await box.end()
        why = "" if done else _why(box, time.monotonic() > end)
        return Observed(request.id, tuple(map(json.dumps, outcomes)), why, round(time.monotonic() - start, 3))

    async def _take(self, layers: Layers) -> Box:
        if self._layers != layers:
            await self.close()
            self._layers = layers
        waiting, self._next = self._next, None
        box = await waiting if waiting is not None else await self._start(layers)
        if not box.alive:
            await box.end()
            box = await self._start(layers)
        self._next = asyncio.create_task(self._start(layers))
        return box

    async def _start(self, layers: Layers) -> Box:
        try:
            box = await Box.start(layers, "observer", groups=self._groups)
        except OSError as error:
            raise RunnerFault(f"A process for the candidate could not be started: {error}.") from None
        try:
            await first_record(box)
        except asyncio.CancelledError:
            await box.end()
            raise
        return box

    async def close(self) -> None:
        """Ends the box that waits."""
        waiting, self._next = self._next, None
        if waiting is None:
            return
        try:
            box = await waiting
        except (RunnerFault, asyncio.CancelledError):
            return
        await box.end()


_GRACE_S = 0.5  # the box keeps the same time itself, and says what it has by then


def _enter(line: bytes, key: str, outcomes: list[dict[str, Any]]) -> bool:
    """Takes one record in; whether it was the last one. What is no record is passed over: it is only about itself."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(record, dict) or record.get("key") != key:
        return False
    number, outcome = record.get("number"), record.get("outcome")
    if type(number) is int and 0 <= number < len(outcomes) and isinstance(outcome, dict):
        outcomes[number] = outcome
    return record.get("kind") == "done"


def _why(box: Box, late: bool) -> str:
    if box.has_run_out_of_memory:
        return "It used more memory than a candidate may."
    return "The time for this candidate was used up." if late else "The candidate ended the process."
