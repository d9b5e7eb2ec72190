"""The one function that turns logits into the distribution tokens are drawn from, for target and draft alike."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.contract import Sampling
from engine.sampler.penalties import TokenCounts, has_penalty, penalised
from kernels.logit_stats import CHUNK, LogitStats, logit_stats

FIRST_WIDTH = 64  # ids looked at first; the nucleus of a language model rarely needs more
BINS, SPAN = 4096, 32.0  # of a histogram over logits: bins, and how far below the largest it reaches
ROUNDING = 1e-6  # of a float32 logarithm near 1: an id at min-p's very edge stays


@dataclass(frozen=True)
class Distributions:
    """Sparse distributions over ``T`` positions: only ids that can be drawn.

    ``ids`` int64 ``[T, K]``; ``log_probs`` float32 ``[T, K]``, normalised over K, -inf where K is not used up.
    ``totals`` ``[T]``: log sum exp of the model's own logits, where it was come by on the way.
    """

    ids: Tensor
    log_probs: Tensor
    totals: Tensor | None = None


@dataclass(frozen=True)
class SamplingPoint:
    """One position to draw for: how, and after what.

    ``counts``: what the row has committed, None if nothing is known of it; ``ahead``: the drafts between that and this
    position. Both matter to penalties only.
    """

    sampling: Sampling
    counts: TokenCounts | None = None
    ahead: Sequence[int] = ()


def distributions(logits: Tensor, places: Sampling | Sequence[SamplingPoint]) -> Distributions:
    """Penalties, temperature, then top-k, top-p and min-p, over ``logits`` ``[T, V]``; in float32 or wider.

    ``places``: one for each position; or one ``Sampling`` for all of them, where there is nothing to penalise.
    All cuts keep whole ties: an id stays if it is at least as likely as the last one that belongs. What is kept thus
    depends on the logits alone, never on the order in which equal ones are found.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if isinstance(places, Sampling):
        places = [SamplingPoint(places)] * len(logits)
    are_own = not any(has_penalty(place.sampling) for place in places)
    if not are_own:
        logits = penalised(logits, [(place.sampling, place.counts, place.ahead) for place in places])
    samplings = [place.sampling for place in places]
    if all(sampling.temperature == 0 for sampling in samplings):
        ids = logits.argmax(-1, keepdim=True)
        return Distributions(ids, torch.zeros(ids.shape, dtype=logits.dtype, device=ids.device))
    temperatures = _column([sampling.temperature or 1.0 for sampling in samplings], logits)
    if not any(map(_truncates, samplings)):
        ids = torch.arange(logits.shape[1], device=logits.device).expand(logits.shape)
        return Distributions(ids, torch.log_softmax(logits / temperatures, -1))
    seen = logit_stats(logits, 1 / temperatures[:, 0])
    kept, ids = _truncated(logits, temperatures, seen, samplings)
    return Distributions(ids, torch.log_softmax(kept, -1), seen.total if are_own else None)


def _truncates(sampling: Sampling) -> bool:
    return sampling.temperature == 0 or sampling.top_k > 0 or sampling.top_p < 1 or sampling.min_p > 0


def _column(values: Sequence[float], like: Tensor) -> Tensor:
    """One value per position, ``[T, 1]``."""
    return torch.tensor(values, dtype=like.dtype, device=like.device)[:, None]


def _truncated(
    logits: Tensor, temperatures: Tensor, seen: LogitStats, samplings: Sequence[Sampling]
) -> tuple[Tensor, Tensor]:
    """The logits ``[T, K]``, divided by ``temperatures`` ``[T, 1]``, that survive every cut, -inf where they did not;
    and their ids.

    No full sort: the largest few are taken, and where they might not hold the whole support, that one position is
    looked at as a whole.
    """
    width = min(max(FIRST_WIDTH, 1 + max(sampling.top_k for sampling in samplings)), logits.shape[1])
    values, ids = _largest(logits, width, seen.maxima)
    values = values / temperatures
    floor = _floor(values, seen.scaled_total[:, None], samplings)
    kept = values.masked_fill(values < floor, -math.inf)
    for at, sampling in enumerate(samplings):
        if sampling.temperature == 0:  # greedy among sampled rows: exactly one id, also of equal ones
            ids[at, 0], kept[at, 1:] = logits[at].argmax(), -math.inf
    if width < logits.shape[1]:
        reaches_on = ((kept[:, -1] > -math.inf).nonzero()[:, 0]).tolist()
        scaled = {at: logits[at] / temperatures[at] for at in reaches_on}
        wide = {at: _support(scaled[at], values[at], samplings[at]) for at in reaches_on}
        kept, ids = _widened(kept, ids, scaled, wide)
    used = int((kept > -math.inf).sum(-1).max())
    return kept[:, :used], ids[:, :used]


def _largest(logits: Tensor, width: int, maxima: Tensor) -> tuple[Tensor, Tensor]:
    """``topk``, in half the time where there are many logits: the largest lie in the chunks with the largest maxima."""
    count = maxima.shape[1]
    if width > count:
        return logits.topk(width)
    starts = maxima.topk(width).indices[:, :, None] * CHUNK
    ids = (starts + torch.arange(CHUNK, device=logits.device)).flatten(1)
    rest = torch.arange(count * CHUNK, logits.shape[1], device=logits.device)
    ids = torch.cat([ids, rest.expand(len(logits), -1)], dim=1)
    values, places = logits.gather(1, ids).topk(width)
    return values, ids.gather(1, places)


def _floor(values: Tensor, total: Tensor, samplings: Sequence[Sampling]) -> Tensor:
    """The smallest logit ``[T, 1]`` that stays; at most the last of ``values`` if they may not reach that far.

    ``values`` ``[T, K]``: the largest logits; ``total`` ``[T, 1]``: log sum exp of all of them.
    """
    largest, nothing = values[:, :1], torch.full_like(values[:, :1], -math.inf)
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
    if any(counts):
        left = values.masked_fill(values < by_count, -math.inf).logsumexp(-1, keepdim=True)
        total = torch.where(count > 0, left, total)
    top_p = _column([sampling.top_p for sampling in samplings], values)
    probabilities = (values - total).exp()
    before = probabilities.cumsum(-1) - probabilities  # mass of everything more likely
    in_nucleus = (before < top_p) | (top_p == 1)
    last = values.gather(1, in_nucleus.sum(-1, keepdim=True) - 1)
    return torch.maximum(floor, torch.where(top_p == 1, nothing, last))


def _support(logits: Tensor, values: Tensor, sampling: Sampling) -> Tensor:
    """Ids ``[K]`` that survive every cut at one position of ``[V]``, when they are more than the largest ``values``."""
    floor = values[0] + math.log(sampling.min_p) - ROUNDING if sampling.min_p else logits.new_tensor(-math.inf)
    if sampling.top_k:
        floor = torch.maximum(floor, by_count := values[sampling.top_k - 1])
        logits = logits.masked_fill(logits < by_count, -math.inf)
    if sampling.top_p < 1:
        floor = torch.maximum(floor, _nucleus_floor(logits, sampling.top_p))
    return ((logits >= floor) & logits.isfinite()).nonzero()[:, 0]


def _nucleus_floor(logits: Tensor, top_p: float) -> Tensor:
    """The last logit of ``[V]`` that the nucleus needs, by a histogram of probability over logits.

    Only the bin in which the nucleus ends has to be sorted: the same result as a full sort, in the time of a few sums.
    """
    probabilities = logits.softmax(-1)
    bins = ((logits.max() - logits) * (BINS / SPAN)).clamp(max=BINS - 1).long()
    reached = torch.bincount(bins, probabilities, minlength=BINS).cumsum(0)
    end = int((reached < top_p).sum())
    if end == BINS:
        return logits.min()  # rounding: all of it together does not come to p
    before = reached[end - 1] if end else reached.new_zeros(())
    inside, order = logits[bins == end].sort(descending=True)
    mass = probabilities[bins == end][order].to(reached.dtype)
    return inside[int((before + mass.cumsum(0) - mass < top_p).sum()) - 1]


def _widened(kept: Tensor, ids: Tensor, scaled: dict[int, Tensor], wide: dict[int, Tensor]) -> tuple[Tensor, Tensor]:
    """``kept`` and ``ids`` ``[T, K]`` with room for the positions whose support is given as ids in ``wide``."""
    if not wide:
        return kept, ids
    room = max(map(len, wide.values())) - kept.shape[1]
    kept = torch.nn.functional.pad(kept, (0, max(0, room)), value=-math.inf)
    ids = torch.nn.functional.pad(ids, (0, max(0, room)))
    for at, support in wide.items():
        kept[at] = -math.inf
        kept[at, : len(support)], ids[at, : len(support)] = scaled[at][support], support
    return kept, ids
