"""Cheap guesses of what the target will say. A drafter is one file and one line in the engine."""

from collections.abc import Callable, Sequence
from typing import Protocol

from torch import Tensor

from engine.sampler.acceptance import Proposals
from engine.sampler.stopping import Row


class Drafter(Protocol):
    name: str
    is_free: bool  # guesses in no time to speak of; a draft model does not

    def begin(self, prompt: Sequence[int], between_chunks: Callable[[int], bool]) -> bool:
        """A new run of this prompt; False if ``between_chunks`` said to stop while it was read."""

    def propose(self, rows: Sequence[Row], counts: Sequence[int]) -> Proposals:
        """At most ``counts[b]`` tokens for row b. What has been committed since the last call is in the rows."""

    def observe(self, rows: Sequence[Row], hidden: Tensor) -> None:
        """``hidden`` ``[B, size]``: what the target's output layer read where each row's last token was drawn.

        Called after a pass of a target that keeps it (``RaggedModel.keep_hidden``).
        """

    def keep(self, rows: Sequence[int]) -> None:
        """Only these rows, by index, are left."""

    def reserve(self, rows: int, slots: int, prompt: int) -> None:
        """So many rows of so many tokens at most are coming, behind so many of prompt; a lack of memory is raised."""

    def release(self) -> None:
        """Memory is short: no row is left, and what was kept for rows goes."""


class NoDrafter:
    """Regular decoding: the baseline."""

    name = "none"
    is_free = True

    def begin(self, prompt: Sequence[int], between_chunks: Callable[[int], bool]) -> bool:
        return True

    def propose(self, rows: Sequence[Row], counts: Sequence[int]) -> Proposals:
        return Proposals([[] for _ in rows])

    def observe(self, rows: Sequence[Row], hidden: Tensor) -> None:
        """Nothing is guessed from it."""

    def keep(self, rows: Sequence[int]) -> None:
        """There is nothing to keep."""

    def reserve(self, rows: int, slots: int, prompt: int) -> None:
        """It needs no memory."""

    def release(self) -> None:
        """It has none to give."""
