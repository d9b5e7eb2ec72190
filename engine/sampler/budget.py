"""How far a policy wants drafts to go."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.sampler.row import Row


@dataclass(frozen=True)
class DraftBudget:
    """Drafts per row at most, by how they come about.

    ``guesses[b]``: of row b where tokens are guessed, and the policy may still drop some of them by how likely they
    look; ``drawn[b]``: where they are drawn from a distribution, and all will be verified. ``least_chance``: a guess
    that is less likely to stay is not worth making.
    """

    guesses: Sequence[int]
    drawn: Sequence[int]
    least_chance: float = 0.0

    @classmethod
    def of(cls, counts: Sequence[int], least_chance: float = 0.0) -> "DraftBudget":
        """The same for both."""
        return cls(counts, counts, least_chance)

    def within(self, rows: Sequence[Row]) -> "DraftBudget":
        """No draft beyond the last token that may be committed; the target's own token needs one place."""
        most = [row.room - 1 for row in rows]
        guesses, drawn = (list(map(min, counts, most)) for counts in (self.guesses, self.drawn))
        return DraftBudget(guesses, drawn, self.least_chance)
