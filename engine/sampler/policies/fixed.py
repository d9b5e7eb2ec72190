"""Always the same draft length."""

from collections.abc import Sequence

from engine.sampler.budget import DraftBudget
from engine.sampler.cost_table import CostTable
from engine.sampler.drafters import Drafter
from engine.sampler.policies import DraftOutcome, Policy, StepTimes
from engine.sampler.row import Row


class Fixed(Policy):
    def __init__(self, length: int):
        self.length = length
        self.name = f"fixed:{length}"

    def budget(self, rows: Sequence[Row]) -> DraftBudget:
        return DraftBudget.of([self.length] * len(rows))

    def observe(self, outcomes: Sequence[DraftOutcome], times: StepTimes) -> None:
        """Nothing is learned."""


def open_fixed(length: str, costs: CostTable, drafter: Drafter) -> Fixed:
    return Fixed(int(length))
