"""Two boxes that talk to each other and to nobody else, and a store of such pairs, warm before they are needed."""

import asyncio
import os
import time
from dataclasses import dataclass, replace

from engine.runner.box import Box
from engine.runner.cgroups import Groups
from engine.runner.layers import OUTPUT_KEPT, Layers
from engine.runner.ledger import plain
from engine.runner.task import Task

START_S = 30.0  # until a box has loaded pytest; longer means that something of ours is broken
_WARM_AT_MOST = 4  # each pair holds about 60 MiB
_WARM_S = 120.0  # how long a pair waits for work before it is let go


class RunnerFault(Exception):
    """An error of ours, in a sentence; the report's verdict is *infra*."""


@dataclass
class Pair:
    """``main`` runs the tests; ``candidate`` is None where tests and candidate share one process, or there is none."""

    main: Box
    candidate: Box | None
    hello: bytes
    born_s: float

    @classmethod
    async def start(cls, layers: Layers, split: bool, groups: Groups | None) -> "Pair":
        """Both boxes, loaded and waiting for their tasks. Raises RunnerFault."""
        boxes: list[Box] = []
        try:
            try:
                boxes = await _start_boxes(layers, split, groups)
            except OSError as error:
                raise RunnerFault(f"A process for the candidate could not be started: {error}.") from None
            hellos = [await first_record(box) for box in boxes]
        except BaseException:
            await asyncio.gather(*(box.end() for box in boxes))
            raise
        return cls(boxes[0], boxes[1] if split else None, hellos[0], time.monotonic())

    @property
    def boxes(self) -> list[Box]:
        return [self.main] if self.candidate is None else [self.main, self.candidate]

    @property
    def ready(self) -> bool:
        return all(box.alive for box in self.boxes)

    async def give(self, task: Task, key: str, seconds: float) -> None:
        """To each its part: the tests' box never sees the candidate's text, nor the other way round."""
        if self.candidate is not None:
            await self.candidate.give(Task(task.solution, seconds=seconds))
            task = replace(task, solution="")
        await self.main.give(replace(task, key=key, seconds=seconds))

    async def end(self) -> None:
        await asyncio.gather(*(box.end() for box in self.boxes))

    @property
    def output(self) -> str:
        """What the candidate and the tests printed; what went past Python's own streams comes last."""
        return plain("".join(box.output for box in self.boxes)[:OUTPUT_KEPT])

    @property
    def output_bytes(self) -> int:
        return sum(box.output_bytes for box in self.boxes)

    @property
    def flooded(self) -> bool:
        return any(box.flooded for box in self.boxes)


async def _start_boxes(layers: Layers, split: bool, groups: Groups | None) -> list[Box]:
    if not split:
        return [await Box.start(layers, "alone", groups=groups)]
    questions, answers = os.pipe(), os.pipe()
    main = None
    try:
        main = await Box.start(layers, "tests", (answers[0], questions[1]))
        return [main, await Box.start(layers, "candidate", (questions[0], answers[1]), groups)]
    except BaseException:
        if main is not None:
            await main.end()
        raise
    finally:
        for descriptor in (*questions, *answers):
            os.close(descriptor)


async def first_record(box: Box) -> bytes:
    """What a box says once it has loaded what its role needs. Raises RunnerFault, and the box has ended then."""
    try:
        hello = await box.read_line(START_S)
    except (TimeoutError, ValueError):
        hello = b""
    if hello:
        return hello
    await box.end()
    last_line = plain(box.output).strip().rpartition("\n")[2]
    raise RunnerFault(f"The box for the candidate did not start: {last_line or 'it last_line nothing'}.")


class Store:
    """Gives pairs that are warm, or makes one at once; keeps up to ``count`` of the kind that candidates need now."""

    def __init__(self, groups: Groups | None, count: int):
        self._groups, self._count = groups, min(count, _WARM_AT_MOST)
        self._kind: tuple[Layers, bool] | None = None
        self._warm: list[Pair] = []
        self._making: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def once(self, layers: Layers, split: bool) -> Pair:
        """A pair of a kind that will not be needed again soon. The caller ends it. Raises RunnerFault."""
        return await Pair.start(layers, split, self._groups)

    async def take(self, layers: Layers, split: bool) -> Pair:
        """A pair for a candidate, and the next one becomes warm meanwhile. The caller ends it. Raises RunnerFault."""
        if self._kind != (layers, split):
            self._kind = layers, split
            await self._clear()
        self._fill()
        # Another candidate may ask for another kind while this one waits.
        while self._kind == (layers, split) and (self._warm or self._making):
            if not self._warm:
                await asyncio.wait(self._making, return_when=asyncio.FIRST_COMPLETED)
                continue
            pair = self._warm.pop(0)
            self._fill()
            if pair.ready:
                return pair
            await pair.end()
        return await Pair.start(layers, split, self._groups)

    def _fill(self) -> None:
        for _ in range(self._count - len(self._warm) - len(self._making)):
            task = asyncio.create_task(self._make())
            self._making.add(task)
            task.add_done_callback(self._making.discard)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_WARM_S, lambda: asyncio.ensure_future(self._clear()))

    async def _make(self) -> None:
        if self._kind is None:
            return
        kind = self._kind
        try:
            pair = await Pair.start(*kind, self._groups)
        except RunnerFault:
            return  # whoever takes one makes it and hears why not
        if kind == self._kind:
            self._warm.append(pair)
        else:
            await pair.end()

    async def _clear(self) -> None:
        while self._warm:
            await self._warm.pop().end()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._making):
            task.cancel()
        await asyncio.gather(*self._making, return_exceptions=True)
        await self._clear()
