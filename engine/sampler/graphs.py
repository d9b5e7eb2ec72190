"""Forward passes captured as graphs: one launch for a whole pass, for every length it may have.

A graph holds pointers and Python integers as they were when it was captured. Pointers stay because the cache does not
move (``fixed_cache``), lengths are read on the device, and every integer that shapes a launch is in the graph's key.
Graphs are captured largest first, so that the smaller ones fit into the memory of one shared pool.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor

from engine.backends.device import Capture
from engine.backends.memory import lack_of_memory
from engine.models.room import Room
from engine.sampler.faults import first_line
from engine.sampler.fixed_cache import FixedStep


@dataclass(frozen=True)
class Key:
    """All that shapes a launch: ``tokens`` of the line, the cache's room, and whether each row's last logits do."""

    tokens: int
    room: Room
    last_only: bool


@dataclass(frozen=True)
class Captured:
    """One graph: load ``step``, replay, read ``logits``."""

    step: FixedStep
    replay: Callable[[], None]
    logits: Tensor


class Graphs:
    """The graphs of one model, by key. ``fault``: what went wrong with a capture, if anything; then there are none."""

    def __init__(self, capture: Capture | None):
        self._capture, self.fault = capture, ""
        self._captured: dict[Key, Captured] = {}

    @property
    def reason(self) -> str:
        """Why there are none, a sentence for the doctor; or empty."""
        return f"The model cannot be captured as a graph ({self.fault})." if self.fault else ""

    @property
    def are_on(self) -> bool:
        return self._capture is not None

    def clear(self) -> None:
        """The cache has moved: what was captured points to nowhere."""
        self._captured.clear()

    def prepare(
        self,
        keys: Iterable[Key],
        new_step: Callable[[int], FixedStep],
        run: Callable[[FixedStep, bool], Tensor],
    ) -> None:
        """Capture those of ``keys`` that are not there yet, in this order: the largest first.

        ``new_step(tokens)`` makes a line of padding, ``run`` is the pass itself. A lack of memory is raised; any other
        fault means that this model has no graphs any more.
        """
        for key in keys:
            if self._capture is not None and key not in self._captured:
                self._add(key, new_step(key.tokens), run)

    def find(
        self,
        key: Key,
        new_step: Callable[[int], FixedStep],
        run: Callable[[FixedStep, bool], Tensor],
    ) -> Captured | None:
        """The graph for ``key``, with all that its room can ask for; None where there are no graphs."""
        if self._capture is None:
            return None
        if key not in self._captured:
            others = () if key.last_only else (Key(size, key.room, False) for size in key.room.lines)
            self.prepare([*others, key], new_step, run)
        return self._captured.get(key)

    def capture(self, work: Callable[[], Tensor]) -> Callable[[], None] | None:
        """``work`` to replay, captured beside the passes; None where there are no graphs."""
        found = self._try(work)
        return found and found[0]

    def _add(self, key: Key, step: FixedStep, run: Callable[[FixedStep, bool], Tensor]) -> None:
        found = self._try(lambda: run(step, key.last_only))
        if found is not None:
            self._captured[key] = Captured(step, *found)

    def _try(self, work: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor] | None:
        if self._capture is None:
            return None
        try:
            return self._capture(work)
        except Exception as error:
            self._captured.clear()  # they shared a pool with what failed
            if lack_of_memory(error) is not None:
                raise  # fewer rows may fit; that is not this model's fault
            self._capture = None  # a model that asks the device something in the middle of its pass, say
            self.fault = first_line(error) or type(error).__name__
            return None
