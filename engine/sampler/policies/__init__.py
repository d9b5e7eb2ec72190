"""How many drafts to verify per row. A policy is one file and one line in ``engine.sampler.names``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.sampler.acceptance import Proposals
from engine.sampler.budget import DraftBudget
from engine.sampler.cost_table import CostTable
from engine.sampler.drafters import Drafter
from engine.sampler.names import POLICIES
from engine.sampler.row import Row


@dataclass(frozen=True)
class DraftOutcome:
    """What became of one row's drafts in one step. ``drawn``: they came from a draft model."""

    candidate: int
    proposed: int
    accepted: int
    drawn: bool = False


@dataclass(frozen=True)
class StepTimes:
    """Seconds of one step's two expensive halves."""

    draft: float
    verify: float


class Policy(Protocol):
    name: str

    def budget(self, rows: Sequence[Row]) -> DraftBudget:
        """Drafts to ask the drafter for. Must not look at sampled tokens that may yet be dropped."""

    def prune(self, proposals: Proposals) -> Proposals:
        """Those of a deterministic drafter's guesses that are worth verifying; by default all."""
        return proposals

    def observe(self, outcomes: Sequence[DraftOutcome], times: StepTimes) -> None:
        """After a step: one outcome for each row that goes on."""


PolicyFactory = Callable[[str, CostTable, Drafter], Policy]  # of what follows the colon, of costs, and of who drafts


def open_policy(name: str, costs: CostTable, drafter: Drafter) -> Policy:
    """The policy that a request names. Raises BadRequest."""
    factory, argument = POLICIES.find(name)
    return factory(argument, costs, drafter)
