"""How often a guess of a kind turned out right: what the chances of the next one are estimated from."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

LONGEST = 12  # matches of this many tokens or more are one kind


class GuessKind(Protocol):
    """What tells guesses apart by how good they look; equal ones are counted together."""

    @property
    def prior(self) -> float:
        """Share of guesses of this grade that were right before this run."""

    def __hash__(self) -> int: ...


class Agreement(IntEnum):
    """How the places that were copied from agree on the next token."""

    DIVIDED = 0
    SINGLE = 1  # one place only
    UNANIMOUS = 2  # several, all the same


@dataclass(frozen=True)
class CopyKind:
    """``match``: tokens that agree before the guess, guesses that were followed included; 2 to LONGEST."""

    match: int
    agreement: Agreement

    @property
    def prior(self) -> float:
        return BEFORE_ANYTHING_WAS_SEEN[self.agreement][self.match - 2]


# Share of guesses that were right, by match length from 2; 48 answers of Qwen2.5-Coder 0.5B to three prompts.
BEFORE_ANYTHING_WAS_SEEN = {
    Agreement.DIVIDED: (0.3, 0.27, 0.25, 0.35, 0.35, 0.5, 0.55, 0.5, 0.4, 0.5, 0.47),
    Agreement.SINGLE: (0.61, 0.64, 0.64, 0.71, 0.79, 0.8, 0.75, 0.8, 0.8, 0.8, 0.89),
    Agreement.UNANIMOUS: (0.6, 0.7, 0.78, 0.84, 0.9, 0.85, 0.86, 0.88, 0.88, 0.93, 0.97),
}
WEIGHT = 20.0  # guesses of this run that weigh as much as the figures above


@dataclass
class Confidence:
    """Counts of right and judged guesses by kind, on top of what is known beforehand."""

    _right: dict[GuessKind, int] = field(default_factory=dict)
    _judged: dict[GuessKind, int] = field(default_factory=dict)

    def of(self, kind: GuessKind) -> float:
        """Chance that a guess of this kind is right, given that those before it were."""
        return (WEIGHT * kind.prior + self._right.get(kind, 0)) / (WEIGHT + self._judged.get(kind, 0))

    def learn(self, kind: GuessKind, was_right: bool) -> None:
        self._judged[kind] = self._judged.get(kind, 0) + 1
        self._right[kind] = self._right.get(kind, 0) + was_right
