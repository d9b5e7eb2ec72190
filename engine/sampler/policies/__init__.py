"""How many drafts to verify per row. A policy is one file and one line in ``open_policy``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.sampler.acceptance import Proposals
from engine.sampler.cost_table import CostTable
from engine.sampler.stopping import Row


@dataclass(frozen=True)
class Outcome:
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

    def plan(self, rows: Sequence[Row]) -> list[int]:
        """Drafts to ask the drafter for, per row. Must not look at sampled tokens that may yet be dropped."""

    def least_chance(self, rows: int) -> float:
        """A guess that is less likely to stay is not worth making, with so many rows; by default every guess is."""
        return 0.0

    def choose(self, proposals: Proposals) -> Proposals:
        """Those of a deterministic drafter's guesses that are worth verifying; by default all."""
        return proposals

    def observe(self, outcomes: Sequence[Outcome], times: StepTimes) -> None:
        """After a step: one outcome for each row that goes on."""


def open_policy(name: str, costs: CostTable, *, free_drafts: bool) -> Policy:
    """The policy a request names: ``goodput`` (also ``auto``), ``bass`` or ``fixed:N``.

    ``free_drafts``: the drafter guesses in no time to speak of, so only verifying costs.
    """
    from engine.sampler.policies.bass import Bass
    from engine.sampler.policies.fixed import Fixed
    from engine.sampler.policies.goodput import Goodput

    if name == "bass":
        return Bass()
    if name.startswith("fixed:"):
        return Fixed(int(name.removeprefix("fixed:")))
    return Goodput(costs, free_drafts=free_drafts)
