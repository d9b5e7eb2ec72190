"""The one function that turns logits into the distribution tokens are drawn from, for target and draft alike."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.contract import Sampling
from engine.sampler.penalties import Said, has_penalty, penalised

FIRST_WIDTH = 64  # ids looked at first; the nucleus of a language model rarely needs more
ROUNDING = 1e-6  # of a float32 logarithm near 1: an id at min-p's very edge stays


@dataclass(frozen=True)
class Distributions:
    """Sparse distributions over ``T`` positions: only ids that can be drawn.

    ``ids`` int64 ``[T, K]``; ``log_probs`` float32 ``[T, K]``, normalised over K, -inf where K is not used up.
    """

    ids: Tensor
    log_probs: Tensor


@dataclass(frozen=True)
class Place:
    """One position to draw for: how, and after what.

    ``said``: what the row has committed, None if nothing is known of it; ``ahead``: the drafts between that and this
    position. Both matter to penalties only.
    """

    sampling: Sampling
    said: Said | None = None
    ahead: Sequence[int] = ()


def distributions(logits: Tensor, places: Sampling | Sequence[Place]) -> Distributions:
    """Penalties, temperature, then top-k, top-p and min-p, over ``logits`` ``[T, V]``; in float32 or wider.

    ``places``: one for each position; or one ``Sampling`` for all of them, where there is nothing to penalise.
    All cuts keep whole ties: an id stays if it is at least as likely as the last one that belongs. What is kept thus
    depends on the logits alone, never on the order in which equal ones are found.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if isinstance(places, Sampling):
        places = [Place(places)] * len(logits)
    if any(has_penalty(place.sampling) for place in places):
        logits = penalised(logits, [(place.sampling, place.said, place.ahead) for place in places])
    samplings = [place.sampling for place in places]
    if all(sampling.temperature == 0 for sampling in samplings):
        ids = logits.argmax(-1, keepdim=True)
        return Distributions(ids, torch.zeros(ids.shape, dtype=logits.dtype, device=ids.device))
    scaled = logits / _column([sampling.temperature or 1.0 for sampling in samplings], logits)
    if not any(map(_truncates, samplings)):
        ids = torch.arange(logits.shape[1], device=logits.device).expand(logits.shape)
        return Distributions(ids, torch.log_softmax(scaled, -1))
    kept, ids = _truncated(scaled, samplings)
    return Distributions(ids, torch.log_softmax(kept, -1))


def _truncates(sampling: Sampling) -> bool:
    return sampling.temperature == 0 or sampling.top_k > 0 or sampling.top_p < 1 or sampling.min_p > 0


def _column(values: Sequence[float], like: Tensor) -> Tensor:
    """One value per position, ``[T, 1]``."""
    return torch.tensor(values, dtype=like.dtype, device=like.device)[:, None]


def _truncated(logits: Tensor, samplings: Sequence[Sampling]) -> tuple[Tensor, Tensor]:
    """The logits ``[T, K]`` that survive every cut, falling, -inf where they did not; and their ids.

    No full sort: the largest few are taken, and more only while they might not hold the whole support.
    """
    size = logits.shape[1]
    width = max(FIRST_WIDTH, 1 + max(sampling.top_k for sampling in samplings))
    while True:
        width = min(width, size)
        values, ids = logits.topk(width)
        floor = _floor(values, logits, samplings)
        if width == size or bool((values[:, -1:] < floor).all()):
            break
        width *= 4
    kept = values.masked_fill(values < floor, float("-inf"))
    for index, sampling in enumerate(samplings):
        if sampling.temperature == 0:  # greedy among sampled rows: exactly one id, also of equal ones
            ids[index, 0], kept[index, 1:] = logits[index].argmax(), float("-inf")
    used = int((kept > float("-inf")).sum(-1).max())
    return kept[:, :used], ids[:, :used]


def _floor(values: Tensor, logits: Tensor, samplings: Sequence[Sampling]) -> Tensor:
    """The smallest logit ``[T, 1]`` that stays; below every value if the values do not reach that far."""
    largest, nothing = values[:, :1], torch.full_like(values[:, :1], float("-inf"))
    greedy = _column([sampling.temperature == 0 for sampling in samplings], values)
    floor = torch.where(greedy > 0, largest, nothing)
    if any(sampling.min_p > 0 for sampling in samplings):
        min_p = _column([sampling.min_p for sampling in samplings], values)
        floor = torch.maximum(floor, largest + min_p.log() - ROUNDING)
    counts = [sampling.top_k if sampling.top_k < values.shape[1] else 0 for sampling in samplings]
    by_count = nothing
    if any(counts):
        count = torch.tensor(counts, device=values.device)[:, None]
        by_count = torch.where(count > 0, values.gather(1, (count - 1).clamp(min=0)), nothing)
    floor = torch.maximum(floor, by_count)
    if all(sampling.top_p == 1 for sampling in samplings):
        return floor
    # Of what top-k left: the nucleus, up to and including the id that brings it to p.
    total = logits.logsumexp(-1, keepdim=True)
    if any(counts):
        left = values.masked_fill(values < by_count, float("-inf")).logsumexp(-1, keepdim=True)
        total = torch.where(count > 0, left, total)
    top_p = _column([sampling.top_p for sampling in samplings], values)
    probabilities = (values - total).exp()
    before = probabilities.cumsum(-1) - probabilities  # mass of everything more likely
    in_nucleus = (before < top_p) | (top_p == 1)
    last = values.gather(1, in_nucleus.sum(-1, keepdim=True) - 1)
    reached = ~in_nucleus[:, -1:]  # otherwise the nucleus may go on beyond these values
    return torch.where(reached, torch.maximum(floor, last), floor)
