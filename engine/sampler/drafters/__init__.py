"""Cheap guesses of what the target will say. A drafter is one file and one line in ``engine.sampler.names``."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

from engine.contract import Request
from engine.sampler.acceptance import AcceptanceRule, Proposals
from engine.sampler.budget import DraftBudget
from engine.sampler.forward_pass import NO_FEATURES, Features
from engine.sampler.names import DRAFTERS
from engine.sampler.row import Row

if TYPE_CHECKING:
    from engine.sampler.pair import LoadedPair


class Drafter(Protocol):
    """What is not overridden suits a drafter that keeps nothing for rows and guesses from their tokens alone.

    ``draws``: tokens come from a distribution, so all of them must be verified, and how many is planned beforehand.
    """

    name: str
    draws: bool = False

    @property
    def needs(self) -> Features:
        """What it wants to see of the target's passes."""
        return NO_FEATURES

    def cost(self, rows: int, budget: DraftBudget) -> float:
        """Seconds that ``propose`` takes for so many rows, as measured so far; 0 while nothing is known."""
        return 0.0

    def begin(self, prompt: Sequence[int], between_chunks: Callable[[int], bool]) -> bool:
        """A new run of this prompt; False if ``between_chunks`` said to stop while it was read."""
        return True

    def read(self, rows: Sequence[Row], between_pieces: Callable[[], bool]) -> bool:
        """The last of ``rows`` are new and begin with tokens of their own; False if ``between_pieces`` said to stop."""
        return True

    def propose(self, rows: Sequence[Row], budget: DraftBudget) -> Proposals:
        """Tokens that may follow each row. What has been committed since the last call is in the rows."""

    def observe(self, rows: Sequence[Row], hidden: Tensor) -> None:
        """``hidden`` ``[B, size]``: what the target's output layer read where each row's last token was drawn.

        Called after every pass, if ``needs`` asks for it and the pass keeps it.
        """
        return None

    def keep(self, rows: Sequence[int]) -> None:
        """Only these rows, by index, are left."""
        return None

    def reserve(self, rows: int, slots: int, prompt: int) -> None:
        """So many rows of so many tokens at most are coming, behind so many of prompt; a lack of memory is raised."""
        return None

    def release(self) -> None:
        """Memory is short: no row is left, and what was kept for rows goes."""
        return None


DrafterFactory = Callable[["LoadedPair", Request, AcceptanceRule], Drafter]


def open_drafter(name: str, pair: "LoadedPair", request: Request, rule: AcceptanceRule) -> Drafter:
    """The drafter of that name for one run. Raises BadRequest where there is none, or the models do not have it."""
    factory, _ = DRAFTERS.find(name)
    return factory(pair, request, rule)


class NoDrafter(Drafter):
    """Regular decoding: the baseline."""

    name = "none"

    def propose(self, rows: Sequence[Row], budget: DraftBudget) -> Proposals:
        return Proposals([[] for _ in rows])


def open_none(pair: "LoadedPair", request: Request, rule: AcceptanceRule) -> Drafter:
    return NoDrafter()
