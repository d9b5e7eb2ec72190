"""Verify as many drafts as raise the expected committed tokens per second on this machine, and no more."""

from collections.abc import Sequence

from engine.sampler.acceptance import Proposals
from engine.sampler.budget import DraftBudget
from engine.sampler.cost_table import CostTable
from engine.sampler.drafters import Drafter
from engine.sampler.policies import DraftOutcome, Policy, StepTimes
from engine.sampler.row import Row

LIMIT = 16  # drafts per row that are considered at all
PRIOR = (4.0, 2.0)  # accepted and rejected drafts that a candidate is born with
DECAY = 0.95  # per step, of what was seen of a candidate
MARGIN = 1.06  # what drafts must promise over none: figures this close are noise, and drafts have costs of their own
LATELY = 8  # steps
PROBE_SHARE = 0.03  # of the time that may be spent on finding out whether drafts pay again


class Goodput(Policy):
    """Two kinds of drafter, one aim: (tokens that will be committed) / (seconds that takes).

    Guesses say how likely each of them is to survive: those of all rows are taken in falling order while the rate still
    rises. What is drawn must all be verified, so its length is fixed before it starts: from how often each candidate's
    drafts were accepted, and from what they cost (``Drafter.cost``). A hybrid brings both.
    """

    name = "goodput"

    def __init__(self, costs: CostTable, drafter: Drafter):
        self._costs, self._drafter = costs, drafter
        self._tally: dict[int, tuple[float, float]] = {}  # candidate -> accepted, first rejections; both fading
        self._price = 0.0  # recent threshold: the probability above which a deterministic drafter's guess was verified
        self._is_probe = False
        self._all_seconds = self._probe_seconds = 0.0

    def budget(self, rows: Sequence[Row]) -> DraftBudget:
        # ``prune`` decides on guesses, when it is known how good they are.
        drawn = self._drawn(rows) if self._drafter.draws else 0
        return DraftBudget([LIMIT] * len(rows), [drawn] * len(rows), self.least_chance(len(rows)))

    def _drawn(self, rows: Sequence[Row]) -> int:
        """Tokens to draw for each row."""
        rates = [self._acceptance(row.candidate) for row in rows]
        best = max(range(LIMIT + 1), key=lambda length: self._rate(rates, length))
        self._is_probe = best == 0 and self._probe_seconds <= PROBE_SHARE * self._all_seconds
        if self._is_probe:
            best = 1  # otherwise a draft model that once did not pay would never be asked again
        return best

    def least_chance(self, rows: int) -> float:
        """What one more token in the line costs, in tokens that are had in that time.

        Without drafts, and where it is cheapest; or, if that is more, with drafts as they paid lately.
        """
        plain = self._costs.seconds(rows)
        cheapest = min((self._costs.seconds(rows + more) - plain) / more for more in (1, 2, 4, 8))
        return max(rows * cheapest / plain, self._price)

    def prune(self, proposals: Proposals) -> Proposals:
        if proposals.survival is None:
            return proposals
        rows = len(proposals.tokens)
        guesses = sorted((chance for row in proposals.survival for chance in row or ()), reverse=True)
        drawn = sum(len(row) for index, row in enumerate(proposals.tokens) if proposals.drawn(index))
        # What was drawn is verified in any case; how much of it stays is nothing that a guess more or less changes.
        expected, tokens = float(rows), rows + drawn
        best_rate, taken = MARGIN * expected / self._costs.seconds(tokens), 0
        for count, chance in enumerate(guesses, start=1):
            expected += chance
            rate = expected / self._costs.seconds(tokens + count)
            if rate > best_rate:
                best_rate, taken = rate, count
        last = self._costs.seconds(tokens + taken) - self._costs.seconds(tokens + taken - 1) if taken else 0.0
        self._price += (best_rate * last - self._price) / LATELY
        threshold = guesses[taken - 1] if taken else float("inf")
        # Survival falls along a row, so what stays of each row is a beginning of it.
        return proposals.cut(
            [
                len(row) if chances is None else sum(chance >= threshold for chance in chances)
                for row, chances in zip(proposals.tokens, proposals.survival, strict=True)
            ]
        )

    def observe(self, outcomes: Sequence[DraftOutcome], times: StepTimes) -> None:
        for outcome in outcomes:
            if not outcome.drawn:
                continue
            accepted, rejected = self._tally.get(outcome.candidate, PRIOR)
            missed = outcome.accepted < outcome.proposed
            self._tally[outcome.candidate] = (accepted * DECAY + outcome.accepted, rejected * DECAY + missed)
        spent = times.draft + times.verify
        if self._is_probe:
            self._probe_seconds += max(0.0, spent - self._costs.seconds(max(1, len(outcomes))))
        self._all_seconds += spent

    def _acceptance(self, candidate: int) -> float:
        """Accepted / (accepted + first rejections): what was never judged says nothing."""
        accepted, rejected = self._tally.get(candidate, PRIOR)
        return accepted / (accepted + rejected)

    def _rate(self, rates: Sequence[float], length: int) -> float:
        """Expected tokens per second if every row drafts ``length`` tokens."""
        expected = sum(length + 1 if a >= 1 else (1 - a ** (length + 1)) / (1 - a) for a in rates)
        drafting = self._drafter.cost(len(rates), DraftBudget.of([length] * len(rates)))
        return expected / (self._costs.seconds(len(rates) * (length + 1)) + drafting)


def open_goodput(argument: str, costs: CostTable, drafter: Drafter) -> Goodput:
    return Goodput(costs, drafter)
