"""The two acceptance rules of speculative sampling, over one packed line of positions.

A *line* holds the verify positions of all rows, one row after the other. Row b with l drafts owns l + 1 positions:
the first is its last committed token, then the drafts. At position t the target's distribution is known, and
``drafts[t]`` is the draft that was guessed to follow (-1 at a row's last position: nothing was guessed).

Distributions are sparse: ``ids`` and ``log_probs`` are ``[T, K]``, normalised over K, -inf where K is not used up.
"""

import torch
from torch import Tensor

from kernels.philox import ACCEPT, DRAFT, RESIDUAL, TOKEN
from kernels.philox.torch import gumbel, uniform


def draw(ids: Tensor, log_weights: Tensor, counter: tuple[Tensor, Tensor, Tensor], purpose: int) -> Tensor:
    """One id per position ``[T]``: argmax over the support of log weight + Gumbel noise.

    ``counter`` is (seed, candidate, position), each int64 ``[T]``. Weights need not be normalised.
    """
    if ids.shape[1] == 1:
        return ids[:, 0]
    seed, candidate, position = (part[:, None] for part in counter)
    noise = gumbel(seed, candidate, position, ids, purpose).to(log_weights.dtype)
    return ids.gather(1, (log_weights + noise).argmax(-1, keepdim=True))[:, 0]


def coupled(
    ids: Tensor, log_probs: Tensor, drafts: Tensor, rows: Tensor, counter: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Accept a draft while it equals the token that plain decoding draws at that position.

    ``drafts`` ``[T]``; ``rows`` ``[T]`` says which row owns each position, in order.
    Returns accepted counts ``[B]`` and each row's next token ``[B]``.
    """
    tokens = draw(ids, log_probs, counter, TOKEN)
    accepted, stop = _leading(drafts == tokens, rows)
    return accepted, tokens[stop]


def rejection(
    ids: Tensor,
    log_probs: Tensor,
    drafts: Tensor,
    draft_ids: Tensor,
    draft_log_probs: Tensor,
    rows: Tensor,
    counter: tuple[Tensor, Tensor, Tensor],
    drawn: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Accept a draft x with probability min(1, p(x)/q(x)); at the first rejection draw from norm(max(0, p - q)).

    ``draft_ids``, ``draft_log_probs`` ``[T, Kq]``: the distribution q that ``drafts[t]`` was drawn from.
    (Leviathan et al., arXiv 2211.17192, algorithm 1; BASS, section 3.)
    ``drawn`` ``[T]``, bool: False where the draft was not drawn from anything; it stays if the token that is drawn from
    p is the same, as under the coupled rule. None: all were.
    Returns accepted counts ``[B]`` and each row's next token ``[B]``.
    """
    tokens = draw(ids, log_probs, counter, TOKEN)
    ratio = acceptance_probability(ids, log_probs, drafts, draft_ids, draft_log_probs)
    stays = uniform(*counter, torch.zeros_like(drafts), ACCEPT) < ratio
    is_judged = drafts >= 0
    if drawn is not None:
        stays, is_judged = torch.where(drawn, stays, drafts == tokens), is_judged & drawn
    accepted, stop = _leading(stays, rows)
    at_stop = (counter[0][stop], counter[1][stop], counter[2][stop])
    p_ids, p_log_probs = ids[stop], log_probs[stop]
    leftover = residual(p_ids, p_log_probs, draft_ids[stop], draft_log_probs[stop])
    return accepted, torch.where(is_judged[stop], draw(p_ids, leftover.log(), at_stop, RESIDUAL), tokens[stop])


def draw_draft(ids: Tensor, log_probs: Tensor, counter: tuple[Tensor, Tensor, Tensor], *, is_coupled: bool) -> Tensor:
    """A draft token per row ``[B]``; under the coupled rule with the target's own noise, so that they agree often."""
    return draw(ids, log_probs, counter, TOKEN if is_coupled else DRAFT)


def acceptance_probability(
    ids: Tensor, log_probs: Tensor, drafts: Tensor, draft_ids: Tensor, draft_log_probs: Tensor
) -> Tensor:
    """min(1, p(x)/q(x)) for each draft ``[T]``; 0 where there is none."""
    p = _probability_of(drafts, ids, log_probs)
    q = _probability_of(drafts, draft_ids, draft_log_probs)
    return torch.where(q > 0, (p / q).clamp(max=1.0), 0.0)


def residual(ids: Tensor, log_probs: Tensor, draft_ids: Tensor, draft_log_probs: Tensor) -> Tensor:
    """max(0, p - q) on p's support ``[B, K]``, not normalised; p itself where nothing finite is left."""
    p = log_probs.exp()
    size = int(max(ids.max(), draft_ids.max())) + 1
    q = p.new_zeros(len(p), size).scatter_add_(1, draft_ids, draft_log_probs.exp().to(p.dtype))
    left = (p - q.gather(1, ids)).clamp(min=0.0)
    total = left.sum(-1, keepdim=True)
    return torch.where((total > 0) & total.isfinite(), left, p)


def _probability_of(tokens: Tensor, ids: Tensor, log_probs: Tensor) -> Tensor:
    """The probability of ``tokens`` ``[T]`` under sparse distributions ``[T, K]``; 0 outside the support."""
    return torch.where(ids == tokens[:, None], log_probs.exp(), 0.0).sum(-1)


def _leading(accept: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Per row: how many positions are accepted before the first that is not, and the index of that one."""
    count = int(rows[-1]) + 1
    at = torch.arange(len(accept), device=accept.device)
    far = torch.full((count,), len(accept), device=accept.device)
    start = far.scatter_reduce(0, rows, at, "amin")
    stop = far.scatter_reduce(0, rows, torch.where(accept, len(accept), at), "amin")
    return stop - start, stop
