"""How many drafts to verify per row. A policy is one file and one line in ``open_policy``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.contract import BadRequest
from engine.sampler.stopping import Row


@dataclass(frozen=True)
class Outcome:
    """What became of one row's drafts in one step."""

    proposed: int
    accepted: int


class Policy(Protocol):
    name: str

    def plan(self, rows: Sequence[Row]) -> list[int]:
        """Drafts to verify for each row. Must not look at tokens that were sampled and may yet be dropped."""

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """After a step: one outcome for each row that goes on."""


def open_policy(name: str) -> Policy:
    """The policy a request names: ``bass`` or ``fixed:N``."""
    from engine.sampler.policies.bass import Bass
    from engine.sampler.policies.fixed import Fixed

    if name in ("bass", "auto"):
        return Bass()
    if name.startswith("fixed:"):
        return Fixed(int(name.removeprefix("fixed:")))
    raise BadRequest(f"The policy {name} is not available here yet; choose bass or fixed:N.")
