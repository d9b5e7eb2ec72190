"""Always the same draft length."""

from collections.abc import Sequence

from engine.sampler.policies import Outcome, Policy, StepTimes
from engine.sampler.stopping import Row


class Fixed(Policy):
    def __init__(self, length: int):
        self.length = length
        self.name = f"fixed:{length}"

    def plan(self, rows: Sequence[Row]) -> list[int]:
        return [self.length] * len(rows)

    def observe(self, outcomes: Sequence[Outcome], times: StepTimes) -> None:
        """Nothing is learned."""
