"""The one function that turns logits into the distribution tokens are drawn from, for target and draft alike."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.contract import Sampling

FIRST_WIDTH = 64  # ids looked at first; the nucleus of a language model rarely needs more


@dataclass(frozen=True)
class Distributions:
    """Sparse distributions over ``T`` positions: only ids that can be drawn.

    ``ids`` int64 ``[T, K]``; ``log_probs`` float32 ``[T, K]``, normalised over K, -inf where K is not used up.
    """

    ids: Tensor
    log_probs: Tensor


def distributions(logits: Tensor, sampling: Sampling) -> Distributions:
    """Temperature, then top-k, then top-p, over ``logits`` ``[T, V]``; computed in float32 or wider.

    Both cuts keep whole ties: an id stays if it is at least as likely as the last one that belongs. What is kept thus
    depends on the logits alone, never on the order in which equal ones are found.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if sampling.temperature == 0:
        ids = logits.argmax(-1, keepdim=True)
        return Distributions(ids, torch.zeros(ids.shape, dtype=logits.dtype, device=ids.device))
    logits = logits / sampling.temperature
    if sampling.top_k == 0 and sampling.top_p == 1:
        ids = torch.arange(logits.shape[1], device=logits.device).expand(logits.shape)
        return Distributions(ids, torch.log_softmax(logits, -1))
    kept, ids = _truncated(logits, sampling)
    return Distributions(ids, torch.log_softmax(kept, -1))


def _truncated(logits: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
    """The logits ``[T, K]`` that survive top-k and top-p, falling, -inf where they did not; and their ids.

    No full sort: the largest few are taken, and more only while they might not hold the whole support.
    """
    size = logits.shape[1]
    width = max(FIRST_WIDTH, sampling.top_k + 1)
    while True:
        width = min(width, size)
        values, ids = logits.topk(width)
        floor = _floor(values, logits, sampling)
        if width == size or bool((values[:, -1:] < floor).all()):
            break
        width *= 4
    kept = values.masked_fill(values < floor, float("-inf"))
    used = int((kept > float("-inf")).sum(-1).max())
    return kept[:, :used], ids[:, :used]


def _floor(values: Tensor, logits: Tensor, sampling: Sampling) -> Tensor:
    """The smallest logit ``[T, 1]`` that stays; below every value if the values do not reach that far."""
    floor = torch.full_like(values[:, :1], float("-inf"))
    if 0 < sampling.top_k < values.shape[1]:
        floor = values[:, sampling.top_k - 1 : sampling.top_k]
        total = values.masked_fill(values < floor, float("-inf")).logsumexp(-1, keepdim=True)
    else:
        total = logits.logsumexp(-1, keepdim=True)
    if sampling.top_p == 1:
        return floor
    probabilities = (values - total).exp()
    before = probabilities.cumsum(-1) - probabilities  # mass of everything more likely
    in_nucleus = before < sampling.top_p
    last = values.gather(1, in_nucleus.sum(-1, keepdim=True) - 1)
    reached = ~in_nucleus[:, -1:]  # otherwise the nucleus may go on beyond these values
    return torch.where(reached, torch.maximum(floor, last), floor)
