"""BASS algorithm 1: one draft length for the batch, which follows its best row."""

import math
from collections.abc import Sequence

from engine.sampler.budget import DraftBudget
from engine.sampler.cost_table import CostTable
from engine.sampler.drafters import Drafter
from engine.sampler.policies import DraftOutcome, Policy, StepTimes
from engine.sampler.row import Row

FIRST, STEP_UP, SHRINK, LIMIT = 7, 2, 10, 32  # l0, l_incre, l_mod and l_limit of the paper


class Bass(Policy):
    """Grows by two while some row accepts all it was offered; shrinks, faster the second time, when none does."""

    name = "bass"

    def __init__(self) -> None:
        self.length = FIRST
        self.shrinking = 0  # s

    def budget(self, rows: Sequence[Row]) -> DraftBudget:
        return DraftBudget.of([self.length] * len(rows))

    def observe(self, outcomes: Sequence[DraftOutcome], times: StepTimes) -> None:
        tried = [outcome for outcome in outcomes if outcome.proposed]
        if not tried:
            return
        best = max(outcome.accepted for outcome in tried)
        if any(outcome.accepted == best == outcome.proposed for outcome in tried):
            self.length, self.shrinking = min(self.length + STEP_UP, LIMIT), 0
        else:
            shorter = self.length - math.ceil(self.length / SHRINK) - self.shrinking
            self.length, self.shrinking = max(1, best, shorter), 1


def open_bass(argument: str, costs: CostTable, drafter: Drafter) -> Bass:
    return Bass()
