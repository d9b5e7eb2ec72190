"""The acceptance rules behind one interface: given the verify line, how many drafts stay and what follows.

A rule is one class and one line in ``names``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.sampler.row import Row
from engine.sampler.sampling import Distributions, SamplingPoint
from engine.sampler.streams import to_device
from kernels.acceptance.torch import coupled, draw_draft, rejection
from kernels.philox import DRAFT, TOKEN

Counter = tuple[Tensor, Tensor, Tensor]  # seed, candidate, position: int64, one each per position


@dataclass(frozen=True)
class Proposals:
    """What a drafter offers: ``tokens[b]`` for row b, any number of them.

    ``q``: the distributions the tokens were drawn from, all rows one after the other; None if they were not drawn
    (a deterministic guess). ``survival[b]``: a deterministic drafter's estimate that each token, and all
    before it, will be accepted; None for a row whose tokens were drawn. What was drawn is verified whole: dropping it
    by a look at it would not be lossless.
    """

    tokens: list[list[int]]
    q: Distributions | None = None
    survival: list[list[float] | None] | None = None

    def drawn(self, row: int) -> bool:
        """Whether this row's tokens came from ``q``, if there is one."""
        return self.survival is None or self.survival[row] is None

    def cut(self, keep: Sequence[int]) -> "Proposals":
        """The first ``keep[b]`` tokens of every row."""
        q = self.q
        if q is not None:
            stays = [at < count for row, count in zip(self.tokens, keep, strict=True) for at in range(len(row))]
            index = to_device(torch.tensor(stays, dtype=torch.bool).nonzero()[:, 0], q.ids.device)
            q = Distributions(q.ids[index], q.log_probs[index])
        survival = self.survival and [
            chances and chances[:count] for chances, count in zip(self.survival, keep, strict=True)
        ]
        return Proposals([row[:count] for row, count in zip(self.tokens, keep, strict=True)], q, survival)


@dataclass(frozen=True)
class VerifyLine:
    """The positions of one verify pass, row after row: each row's last token, then its drafts; ``[T]`` each."""

    drafts: Tensor  # the draft that was guessed to follow each position, -1 at a row's last
    rows: Tensor
    counter: Counter
    places: list[SamplingPoint]  # what each position's distribution depends on besides the logits
    drawn: Tensor | None = None  # bool: whether the draft came from q; None where no draft did

    @classmethod
    def of(cls, rows: Sequence[Row], proposals: Proposals, device: torch.device) -> "VerifyLine":
        entries = [
            (draft, index, row.seed, row.candidate, row.position + offset)
            for index, (row, tokens) in enumerate(zip(rows, proposals.tokens, strict=True))
            for offset, draft in enumerate([*tokens, -1])
        ]
        drafts, owners, seeds, candidates, positions = to_device(torch.tensor(entries).T.contiguous(), device)
        places = [
            row.place(tokens[:count])
            for row, tokens in zip(rows, proposals.tokens, strict=True)
            for count in range(len(tokens) + 1)
        ]
        drawn = None
        if proposals.q is not None:
            of_row = [
                proposals.drawn(row) for row, tokens in enumerate(proposals.tokens) for _ in range(len(tokens) + 1)
            ]
            drawn = to_device(torch.tensor(of_row), device)
        return cls(drafts, owners, (seeds, candidates, positions), places, drawn)


def counter_of(rows: Sequence[Row], ahead: Sequence[int], device: torch.device) -> Counter:
    """The counter of the token ``ahead[b]`` places after row b's next one."""
    entries = [(row.seed, row.candidate, row.position + n) for row, n in zip(rows, ahead, strict=True)]
    seeds, candidates, positions = to_device(torch.tensor(entries).T.contiguous(), device)
    return seeds, candidates, positions


class AcceptanceRule(Protocol):
    """``draws_by``: the purpose (``kernels.philox``) of the numbers that drafts are drawn by. ``needs_q``: what drafts
    were drawn from decides with. ``kernel``: the name the device's kernels know this rule by; empty if they do not."""

    name: str
    draws_by: int
    needs_q: bool
    kernel: str = ""

    def accept(self, p: Distributions, line: VerifyLine, q: Distributions | None) -> tuple[Tensor, Tensor]:
        """Accepted counts ``[B]`` and next tokens ``[B]``; ``p``: the target's, of every position of the line."""

    def draw_draft(self, q: Distributions, counter: Counter) -> Tensor:
        """One draft token per position of ``q``."""


RuleFactory = Callable[[], AcceptanceRule]


class Coupled(AcceptanceRule):
    """Plain decoding is *defined* by shared Gumbel noise; a draft stays while it is what plain decoding draws.

    The text is then, token for token, that of plain decoding with the same seed, whatever was guessed.
    """

    name, draws_by, needs_q, kernel = "coupled", TOKEN, False, "coupled"

    def accept(self, p: Distributions, line: VerifyLine, q: Distributions | None) -> tuple[Tensor, Tensor]:
        """Accepted counts ``[B]`` and next tokens ``[B]``."""
        return coupled(p.ids, p.log_probs, line.drafts, line.rows, line.counter)

    def draw_draft(self, q: Distributions, counter: Counter) -> Tensor:
        """One draft token per position of ``q``."""
        return draw_draft(q.ids, q.log_probs, counter, is_coupled=True)


class Rejection(AcceptanceRule):
    """Speculative sampling as published: accept with min(1, p/q), else draw from the residual.

    That is for drafts that were drawn. A guess, which was copied or looked up, is met by *draw and follow*: the token
    is drawn from p, as plain decoding draws it, and the guess stays if it is that token. It is accepted as often, with
    the chance p(guess). But a guess may be copied from a run with the same seed, whose text depends on the very numbers
    by which this one is decided; where no number judges it, what was guessed cannot shift what is said.
    """

    name, draws_by, needs_q, kernel = "rejection", DRAFT, True, "rejection"

    def accept(self, p: Distributions, line: VerifyLine, q: Distributions | None) -> tuple[Tensor, Tensor]:
        """Accepted counts ``[B]`` and next tokens ``[B]``."""
        if q is None:
            return coupled(p.ids, p.log_probs, line.drafts, line.rows, line.counter)
        q = _spread(q, line.drafts)
        return rejection(p.ids, p.log_probs, line.drafts, q.ids, q.log_probs, line.rows, line.counter, line.drawn)

    def draw_draft(self, q: Distributions, counter: Counter) -> Tensor:
        """One draft token per position of ``q``."""
        return draw_draft(q.ids, q.log_probs, counter, is_coupled=False)


def _spread(q: Distributions, drafts: Tensor) -> Distributions:
    """``q`` of the drafts ``[D, K]`` laid out over the line ``[T, K]``; where nothing was guessed it is nothing."""
    has_draft = drafts >= 0
    ids = q.ids.new_zeros(len(drafts), q.ids.shape[1])
    log_probs = q.log_probs.new_full(ids.shape, float("-inf"))
    ids[has_draft], log_probs[has_draft] = q.ids, q.log_probs
    return Distributions(ids, log_probs)
