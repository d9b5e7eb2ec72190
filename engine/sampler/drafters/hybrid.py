"""A mixture: copies, n-grams and a speculator where they are sure enough, a draft model elsewhere."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.contract import Request
from engine.sampler.acceptance import AcceptanceRule, Proposals
from engine.sampler.budget import DraftBudget
from engine.sampler.drafters import Drafter
from engine.sampler.drafters.draft_model import DraftModelDrafter, open_draft_model
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.forward_pass import Features
from engine.sampler.pair import LoadedPair
from engine.sampler.row import Row
from engine.sampler.sampling import Distributions
from engine.sampler.streams import to_device

SURE = 0.6  # chance of a copied guess from which on the draft model is not asked: about what it reaches itself


class HybridDrafter(Drafter):
    """Row by row, one of two drafters. Which one depends on this run's committed tokens only, so it cannot bias what
    follows.

    The draft model lags behind on rows that copied; it catches up with its next pass.
    """

    name = "hybrid"
    draws = True

    def __init__(self, suffix: SuffixDrafter, model: DraftModelDrafter):
        self.suffix, self.model = suffix, model

    @property
    def needs(self) -> Features:
        return self.suffix.needs

    def cost(self, rows: int, budget: DraftBudget) -> float:
        return self.suffix.cost(rows, budget) + self.model.cost(rows, budget)

    def begin(self, prompt: Sequence[int], between_chunks: Callable[[int], bool]) -> bool:
        if self.model.rule.needs_q:
            # Where a guess was drawn, other numbers decide than where it was copied. Which of the two it is must not
            # depend on those numbers, and what was said in a run with the same seed does.
            self.suffix.forget()
        return self.suffix.begin(prompt, between_chunks) and self.model.begin(prompt, between_chunks)

    def read(self, rows: Sequence[Row], between_pieces: Callable[[], bool]) -> bool:
        return self.model.read(rows, between_pieces)

    def propose(self, rows: Sequence[Row], budget: DraftBudget) -> Proposals:
        copied, counts = self.suffix.propose(rows, budget), budget.drawn
        chances = copied.survival or [None] * len(rows)
        copies = [
            chance is not None and len(chance) > 0 and (chance[0] >= SURE or count == 0)
            for chance, count in zip(chances, counts, strict=True)
        ]
        left = [0 if copy else count for copy, count in zip(copies, counts, strict=True)]
        drawn = self.model.propose(rows, DraftBudget.of(left))
        tokens = [(copied if copy else drawn).tokens[row] for row, copy in enumerate(copies)]
        survival = [chance if copy else None for chance, copy in zip(chances, copies, strict=True)]
        return Proposals(tokens, _merged(drawn.q, tokens, copies), survival)

    def observe(self, rows: Sequence[Row], hidden: Tensor) -> None:
        self.suffix.observe(rows, hidden)

    def keep(self, rows: Sequence[int]) -> None:
        self.model.keep(rows)

    def reserve(self, rows: int, slots: int, prompt: int) -> None:
        self.model.reserve(rows, slots, prompt)

    def release(self) -> None:
        self.model.release()


def _merged(q: Distributions | None, tokens: list[list[int]], copies: list[bool]) -> Distributions | None:
    """``q`` over the drafts of all rows: as drawn where they were drawn, one-hot where they were copied."""
    if q is None:
        return None
    ids_line = [token for row in tokens for token in row]
    is_copy = torch.tensor([copy for copy, row in zip(copies, tokens, strict=True) for _ in row], dtype=torch.bool)
    drawn = to_device((~is_copy).nonzero()[:, 0], q.ids.device)
    ids = q.ids.new_zeros(len(ids_line), q.ids.shape[1])
    log_probs = q.log_probs.new_full(ids.shape, float("-inf"))
    ids[:, 0] = to_device(torch.tensor(ids_line, dtype=ids.dtype), ids.device)
    log_probs[:, 0] = 0.0
    ids[drawn], log_probs[drawn] = q.ids, q.log_probs
    return Distributions(ids, log_probs)


def open_hybrid(pair: LoadedPair, request: Request, rule: AcceptanceRule) -> HybridDrafter:
    """Of all that there is."""
    model = open_draft_model(pair, request, rule)
    return HybridDrafter(SuffixDrafter(pair.ngrams, pair.speculator, pair.history), model)
