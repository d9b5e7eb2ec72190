"""From the target's logits to accepted counts, next tokens and log-probabilities, without leaving the device.

``engine.sampler.sampling`` and ``torch.py`` together are its twin. The vocabulary is read three times in wide, even
chunks: for its sums, to count what may still be drawn, and to list that. Only the list, mostly a few hundred ids, is
then searched: thresholds of top-k and top-p are bisected over the bits of a float, so nothing is sorted and ties stay
whole, as in the twin. Noise is that of ``kernels.philox``: the uniform bits are the same on every device.

All arguments of one call are on one device and nothing is copied to the host.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.philox import ACCEPT, RESIDUAL, TOKEN
from kernels.philox.triton import philox_words, uniform_of

CHUNK, PIECE = 4096, 256  # ids per program, and ids whose maximum is kept to bound a top-k
LIST = 1024  # listed ids looked at together
ROUNDING = tl.constexpr(1e-6)  # of a float32 logarithm near 1: an id at min-p's very edge stays
SLACK = tl.constexpr(1e-3)  # of a bound that only has to be low enough
COUPLED, REJECTION = 0, 1
_EXACT = {"enable_fp_fusion": False}  # each operation rounds by itself, as in the twin
_COIN, _TOKEN, _RESIDUAL = tl.constexpr(ACCEPT), tl.constexpr(TOKEN), tl.constexpr(RESIDUAL)


class Counter(NamedTuple):
    """Where in the stream of random numbers each position stands: int64 ``[T]`` each."""

    seed: Tensor
    candidate: Tensor
    position: Tensor


@dataclass(frozen=True)
class Drawn:
    """One token per position, and the distribution it came from.

    ``tokens`` int32 ``[T]``. An id's probability is ``exp(x - totals)`` where ``x``, its logit over the temperature, is
    at least ``floors``, and 0 elsewhere; both float32 ``[T]``. ``raw_totals``: log-sum-exp of the untouched logits.
    """

    logits: Tensor
    cuts: Tensor
    tokens: Tensor
    floors: Tensor
    totals: Tensor
    raw_totals: Tensor

    def log_probs(self) -> Tensor:
        """Of every id, float32 ``[T, V]``; what was drawn at temperature 0 is certain."""
        temperature = self.cuts[:, :1]
        x = self.logits.float() / torch.where(temperature > 0, temperature, 1.0)
        nothing = torch.full_like(x, float("-inf"))
        kept = torch.where(x >= self.floors[:, None], x - self.totals[:, None], nothing)
        return torch.where(temperature > 0, kept, nothing.scatter(1, self.tokens.long()[:, None], 0.0))


def cuts_of(samplings: list[tuple[float, int, float, float]], device: torch.device) -> Tensor:
    """(temperature, top-k, top-p, min-p) of each position as the kernels read them: float32 ``[T, 4]``."""
    return torch.tensor(samplings, dtype=torch.float32).to(device, non_blocking=True)


def dense(ids: Tensor, log_probs: Tensor, vocabulary: int) -> Drawn:
    """A sparse distribution, ids and log-probabilities ``[D, K]``, as one that tokens were drawn from here.

    What has no probability may repeat an id that has some.
    """
    count = len(ids)
    full = torch.full((count, vocabulary), float("-inf"), dtype=torch.float32, device=ids.device)
    full.scatter_reduce_(1, ids, log_probs.float(), "amax")
    cuts = full.new_zeros(count, 4)
    cuts[:, ::2] = 1.0  # temperature and top-p
    nowhere = torch.empty(count, dtype=torch.int32, device=ids.device)
    floors, totals = full.new_full((count,), float("-inf")), full.new_zeros(count)
    return Drawn(full, cuts, nowhere, floors, totals, totals)


def draw(logits: Tensor, cuts: Tensor, counter: Counter, purpose: int, *, raw: Tensor | None = None) -> Drawn:
    """One token for every position of ``logits`` ``[T, V]``, by shared Gumbel noise of this purpose.

    ``raw``: the logits before penalties, where there were any. Temperature 0 takes the first of the largest.
    """
    support = _Support(logits, cuts, raw)
    nothing = torch.full((len(logits),), -1, dtype=torch.int32, device=logits.device)
    tokens, _ = support.choose(counter, nothing, None, COUPLED, purpose)
    return Drawn(logits, cuts, tokens, support.floors, support.totals, support.raw_totals)


def accept(
    logits: Tensor,
    cuts: Tensor,
    counter: Counter,
    drafts: Tensor,
    starts: Tensor,
    rule: int,
    *,
    q: tuple[Drawn, Tensor] | None = None,
    raw: Tensor | None = None,
) -> Tensor:
    """Accepted drafts and the next token of each row, and log-probabilities; int32 ``[2 B + T]``, see ``unpack``.

    ``drafts`` int32 ``[T]``: the draft that was guessed to follow each position, -1 at a row's last; ``starts`` int32
    ``[B + 1]``: row b's positions are ``starts[b] : starts[b + 1]``, at least one. ``rule``: COUPLED or REJECTION.
    ``q``: what the drafts were drawn from, and int32 ``[T]`` which of its positions belongs to each of these, -1 for a
    draft that was not drawn; None if none was. What was not drawn is met as under COUPLED.
    Log-probabilities are raw: of the logits before penalties, temperature and cuts.
    """
    support = _Support(logits, cuts, raw)
    tokens, stays = support.choose(counter, drafts, q, rule, TOKEN)
    rows, positions = len(starts) - 1, len(drafts)
    result = torch.empty(2 * rows + positions, dtype=torch.int32, device=logits.device)
    _leading_kernel[(rows,)](
        support.raw, support.raw_totals, tokens, stays, drafts, starts, result, result.view(torch.float32),
        support.raw.stride(0), rows, BLOCK=128, num_warps=1, **_EXACT,
    )  # fmt: skip
    return result


def unpack(result: Tensor, rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Accepted counts ``[B]``, next tokens ``[B]``, and the log-probability of what stands at each position ``[T]``.

    Beyond a row's next token, log-probabilities mean nothing. On the host, after the one copy of ``result``.
    """
    return result[:rows], result[rows : 2 * rows], result[2 * rows :].view(torch.float32)


class _Support:
    """What may be drawn at each position, listed: ids and scaled logits, ``[T, V]`` of room each."""

    def __init__(self, logits: Tensor, cuts: Tensor, raw: Tensor | None):
        self.logits, self.cuts, self.raw = logits, cuts, logits if raw is None else raw
        positions, size = logits.shape
        chunks = triton.cdiv(size, CHUNK)
        grid = (positions, chunks)
        singles, words = logits.new_empty(0, dtype=torch.float32), logits.new_empty(0, dtype=torch.int32)
        sums, pieces = singles.new_empty(positions, chunks, 4), singles.new_empty(positions, chunks * (CHUNK // PIECE))
        # Each by itself: where parts of one tensor begin depends on T, and a kernel is compiled for each alignment.
        self.tops, self.bounds, self.totals, self.raw_totals, self.floors = (
            singles.new_empty(positions) for _ in range(5)
        )
        self.counts = words.new_empty(positions, chunks)
        self.ids, self.values = words.new_empty(positions, size), singles.new_empty(positions, size)
        strides = (logits.stride(0), self.raw.stride(0))
        _sum_kernel[grid](
            logits, self.raw, cuts, sums, pieces, *strides, size, chunks, CHUNK=CHUNK, PIECE=PIECE, **_EXACT
        )
        _bound_kernel[(positions,)](
            sums, pieces, cuts, self.tops, self.bounds, self.totals, self.raw_totals, size, chunks, pieces.shape[1],
            CHUNKS=triton.next_power_of_2(chunks), PIECES=triton.next_power_of_2(pieces.shape[1]), **_EXACT,
        )  # fmt: skip
        _count_kernel[grid](logits, cuts, self.bounds, self.counts, strides[0], size, chunks, CHUNK=CHUNK, **_EXACT)
        _list_kernel[grid](
            logits, cuts, self.bounds, self.counts, self.ids, self.values, strides[0], size, chunks,
            CHUNK=CHUNK, CHUNKS=triton.next_power_of_2(chunks), **_EXACT,
        )  # fmt: skip
        self._chunks = chunks

    def choose(
        self, counter: Counter, drafts: Tensor, q: tuple[Drawn, Tensor] | None, rule: int, purpose: int
    ) -> tuple[Tensor, Tensor]:
        """Token and verdict (1: the draft stays) of every position, int32 ``[T]`` each."""
        positions, size = self.logits.shape
        tokens, stays = torch.empty_like(drafts), torch.empty_like(drafts)
        own = Drawn(self.logits, self.cuts, tokens, self.floors, self.totals, self.raw_totals)
        other, places = q if q is not None else (own, drafts)  # never read if there is none
        _choose_kernel[(positions,)](
            self.logits, self.cuts, self.tops, self.bounds, self.counts, self.ids, self.values, self.floors,
            self.totals, *counter, drafts, other.logits, other.cuts, other.floors, other.totals, places, tokens, stays,
            self.logits.stride(0), other.logits.stride(0), size, other.logits.shape[1], self._chunks,
            PURPOSE=purpose, IS_REJECTION=rule == REJECTION, HAS_Q=q is not None,
            CHUNKS=triton.next_power_of_2(self._chunks), LIST=LIST, **_EXACT,
        )  # fmt: skip
        return tokens, stays


@triton.jit
def _scaled(logits, cuts):
    """Logits as float32 over the temperature at ``cuts``; 1 stands in for 0."""
    temperature = tl.load(cuts)
    return tl.div_rn(logits.to(tl.float32), tl.where(temperature > 0, temperature, 1.0))


@triton.jit
def _key(x):
    """An integer that orders as the float32 does."""
    bits = x.to(tl.int32, bitcast=True)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64)


@triton.jit
def _unkey(key):
    return (key ^ ((key >> 63) & 0x7FFFFFFF)).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _sum_kernel(
    logits, raw, cuts, sums, pieces, stride, raw_stride, size, chunks, CHUNK: tl.constexpr, PIECE: tl.constexpr
):
    """Of one chunk: maximum and sum of exponentials, scaled and raw; and the maximum of each piece."""
    position, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    id_ = chunk * CHUNK + tl.arange(0, CHUNK)
    x = _scaled(tl.load(logits + position * stride + id_, mask=id_ < size, other=float("-inf")), cuts + position * 4)
    untouched = tl.load(raw + position * raw_stride + id_, mask=id_ < size, other=float("-inf")).to(tl.float32)
    out = sums + (position * chunks + chunk) * 4
    top, raw_top = tl.max(x, 0), tl.max(untouched, 0)
    base, raw_base = tl.where(top == float("-inf"), 0.0, top), tl.where(raw_top == float("-inf"), 0.0, raw_top)
    tl.store(out, top)
    tl.store(out + 1, tl.sum(tl.exp(x - base), 0))
    tl.store(out + 2, raw_top)
    tl.store(out + 3, tl.sum(tl.exp(untouched - raw_base), 0))
    piece = chunk * (CHUNK // PIECE) + tl.arange(0, CHUNK // PIECE)
    maxima = tl.max(tl.reshape(x, (CHUNK // PIECE, PIECE)), 1)
    tl.store(pieces + position * chunks * (CHUNK // PIECE) + piece, maxima)


@triton.jit
def _bound_kernel(
    sums, pieces, cuts, tops, bounds, totals, raw_totals, size, chunks, piece_count,
    CHUNKS: tl.constexpr, PIECES: tl.constexpr,
):  # fmt: skip
    """A value that every id which may be drawn reaches, so that the list to search stays short."""
    position = tl.program_id(0).to(tl.int64)
    chunk = tl.arange(0, CHUNKS)
    at, there = sums + (position * chunks + chunk) * 4, chunk < chunks
    maxima, raw_maxima = tl.load(at, mask=there, other=float("-inf")), tl.load(at + 2, there, other=float("-inf"))
    top, raw_top = tl.max(maxima, 0), tl.max(raw_maxima, 0)
    total = top + tl.log(tl.sum(tl.load(at + 1, mask=there, other=0.0) * tl.exp(maxima - top), 0))
    raw_total = raw_top + tl.log(tl.sum(tl.load(at + 3, mask=there, other=0.0) * tl.exp(raw_maxima - raw_top), 0))
    temperature, top_k = tl.load(cuts + position * 4), tl.load(cuts + position * 4 + 1)
    top_p, min_p = tl.load(cuts + position * 4 + 2), tl.load(cuts + position * 4 + 3)

    bound = tl.where(temperature == 0, top, float("-inf"))
    if top_k == 0:
        if min_p > 0:
            bound = tl.maximum(bound, top + tl.log(min_p) - ROUNDING)
        if top_p < 1:
            # Whatever is in the nucleus has (1 - p) of the mass at or below it, shared by at most all ids.
            bound = tl.maximum(bound, total + tl.log((1 - top_p) / size) - SLACK)
    elif top_k <= piece_count:
        # The k-th largest piece maximum: at least k ids reach it. All k must be listed, for their mass.
        piece = tl.arange(0, PIECES)
        keys = _key(tl.load(pieces + position * piece_count + piece, mask=piece < piece_count, other=float("-inf")))
        low, high = tl.min(keys, 0), _key(top)
        while low < high:
            middle = (low + high) >> 1
            if tl.sum((keys > middle).to(tl.int32), 0) < top_k:
                high = middle
            else:
                low = middle + 1
        bound = tl.maximum(bound, _unkey(low))
    tl.store(tops + position, top)
    tl.store(totals + position, total)
    tl.store(bounds + position, bound)
    tl.store(raw_totals + position, raw_total)


@triton.jit
def _count_kernel(logits, cuts, bounds, counts, stride, size, chunks, CHUNK: tl.constexpr):
    position, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    id_ = chunk * CHUNK + tl.arange(0, CHUNK)
    x = _scaled(tl.load(logits + position * stride + id_, mask=id_ < size, other=float("-inf")), cuts + position * 4)
    reached = (x >= tl.load(bounds + position)) & (x > float("-inf"))
    tl.store(counts + position * chunks + chunk, tl.sum(reached.to(tl.int32), 0))


@triton.jit
def _list_kernel(
    logits, cuts, bounds, counts, ids, values, stride, size, chunks, CHUNK: tl.constexpr, CHUNKS: tl.constexpr
):
    """Ids that reach the bound, in their order: each chunk knows from the counts where its own begin."""
    position, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    id_ = chunk * CHUNK + tl.arange(0, CHUNK)
    x = _scaled(tl.load(logits + position * stride + id_, mask=id_ < size, other=float("-inf")), cuts + position * 4)
    reached = (x >= tl.load(bounds + position)) & (x > float("-inf"))
    other = tl.arange(0, CHUNKS)
    before = tl.sum(tl.load(counts + position * chunks + other, mask=other < chunk, other=0), 0)
    place = position * size + before + tl.cumsum(reached.to(tl.int32), 0) - 1
    tl.store(ids + place, id_, mask=reached)
    tl.store(values + place, x, mask=reached)


@triton.jit
def _above(values, count, key, top, BY_MASS: tl.constexpr, LIST: tl.constexpr):
    """How many listed values lie strictly above ``key``, or how much mass, in units of exp(top)."""
    total = tl.zeros([LIST], tl.float32)
    for start in range(0, count, LIST):
        at = start + tl.arange(0, LIST)
        x = tl.load(values + at, mask=at < count, other=float("-inf"))
        total += tl.where(_key(x) > key, tl.exp(x - top) if BY_MASS else 1.0, 0.0)
    return tl.sum(total, 0)


@triton.jit
def _lowest(values, count, wanted, top, low, BY_MASS: tl.constexpr, LIST: tl.constexpr):
    """The lowest key, from ``low`` on, above which there is less than ``wanted``: what reaches it belongs, ties too."""
    high = _key(top)
    while low < high:
        middle = (low + high) >> 1
        if _above(values, count, middle, top, BY_MASS, LIST) < wanted:
            high = middle
        else:
            low = middle + 1
    return low


@triton.jit
def _floor_of(values, count, cuts, top, bound, total, LIST: tl.constexpr):
    """The smallest value that may be drawn: top-k, then top-p of what that leaves, and min-p."""
    temperature, top_k, top_p, min_p = tl.load(cuts), tl.load(cuts + 1), tl.load(cuts + 2), tl.load(cuts + 3)
    low = _key(bound)
    mass = tl.exp(total - top)
    if top_k > 0:
        low = _lowest(values, count, top_k, top, low, False, LIST)
        mass = _above(values, count, low - 1, top, True, LIST)
    if top_p < 1:
        low = _lowest(values, count, top_p * mass, top, low, True, LIST)
    floor = _unkey(low)
    if min_p > 0:
        floor = tl.maximum(floor, top + tl.log(min_p) - ROUNDING)
    return tl.where(temperature > 0, floor, top)


@triton.jit
def _uniform(seed, candidate, position, index, purpose):
    c2 = index.to(tl.uint32)
    c3 = tl.zeros_like(c2) + purpose.to(tl.uint32)
    c0, c1 = tl.zeros_like(c2) + candidate.to(tl.uint32), tl.zeros_like(c2) + position.to(tl.uint32)
    k0, k1 = (seed & 0xFFFFFFFF).to(tl.uint32), ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    word, _, _, _ = philox_words(c0, c1, c2, c3, k0, k1)
    return uniform_of(word)


@triton.jit
def _gumbel(u):
    """-log(-log1p(-u)); near 0, which is the end that decides an argmax, the inner logarithm is a series."""
    series = 1 / 5 + u * (1 / 6 + u * (1 / 7 + u / 8))
    series = u * (1.0 + u * (1 / 2 + u * (1 / 3 + u * (1 / 4 + u * series))))
    return -tl.log(tl.where(u < 0.0625, series, -tl.log(1.0 - u)))


@triton.jit
def _q_of(ids, inside, draft, logits, cuts, floor, total, size):
    """The draft's probability of each id; a draft that was drawn at temperature 0 is certain."""
    x = _scaled(tl.load(logits + ids, mask=inside & (ids < size), other=float("-inf")), cuts)
    drawn = tl.where(x >= floor, tl.exp(x - total), 0.0)
    return tl.where(tl.load(cuts) > 0, drawn, tl.where(ids == draft, 1.0, 0.0))


@triton.jit(do_not_specialize_on_alignment=["seeds", "candidates", "counters", "drafts", "q_places"])
def _choose_kernel(
    logits, cuts, tops, bounds, counts, ids, values, floors, totals, seeds, candidates, counters, drafts,
    q_logits, q_cuts, q_floors, q_totals, q_places, tokens, stays, stride, q_stride, size, q_size, chunks,
    PURPOSE: tl.constexpr, IS_REJECTION: tl.constexpr, HAS_Q: tl.constexpr, CHUNKS: tl.constexpr, LIST: tl.constexpr,
):  # fmt: skip
    position = tl.program_id(0).to(tl.int64)
    chunk = tl.arange(0, CHUNKS)
    count = tl.sum(tl.load(counts + position * chunks + chunk, mask=chunk < chunks, other=0), 0)
    ids, values, cuts = ids + position * size, values + position * size, cuts + position * 4
    top, draft, temperature = tl.load(tops + position), tl.load(drafts + position), tl.load(cuts)
    seed, candidate, counter = tl.load(seeds + position), tl.load(candidates + position), tl.load(counters + position)
    floor = _floor_of(values, count, cuts, top, tl.load(bounds + position), tl.load(totals + position), LIST)
    kept = tl.zeros([LIST], tl.float32)
    for start in range(0, count, LIST):
        at = start + tl.arange(0, LIST)
        x = tl.load(values + at, mask=at < count, other=float("-inf"))
        kept += tl.where(x >= floor, tl.exp(x - top), 0.0)
    total = top + tl.log(tl.sum(kept, 0))

    is_judged = IS_REJECTION & HAS_Q & (draft >= 0) & (temperature > 0)
    q_floor, q_total, left = 0.0, 0.0, 0.0
    stay = draft < -1
    if HAS_Q:
        place = tl.load(q_places + position)
        is_judged = is_judged & (place >= 0)  # what was not drawn is met by a draw from p, and followed
        place = tl.maximum(place, 0).to(tl.int64)
        q_logits, q_cuts = q_logits + place * q_stride, q_cuts + place * 4
        q_floor, q_total = tl.load(q_floors + place), tl.load(q_totals + place)
    if is_judged:
        logit = _scaled(tl.load(logits + position * stride + draft), cuts)
        p = tl.where(logit >= floor, tl.exp(logit - total), 0.0)
        q = _q_of(draft, draft >= 0, draft, q_logits, q_cuts, q_floor, q_total, q_size)
        stay = _uniform(seed, candidate, counter, tl.zeros_like(draft), tl.zeros_like(draft) + _COIN) * q < p
        stay = stay & (q > 0)
        leftover = tl.zeros([LIST], tl.float32)
        for start in range(0, count, LIST):
            at = start + tl.arange(0, LIST)
            id_, x = tl.load(ids + at, at < count, other=0), tl.load(values + at, at < count, other=float("-inf"))
            p_here = tl.where(x >= floor, tl.exp(x - total), 0.0)
            q_here = _q_of(id_, at < count, draft, q_logits, q_cuts, q_floor, q_total, q_size)
            leftover += tl.maximum(p_here - q_here, 0.0)
        left = tl.sum(leftover, 0)

    best, token = float("-inf"), size
    for start in range(0, count, LIST):
        at = start + tl.arange(0, LIST)
        id_, x = tl.load(ids + at, at < count, other=0), tl.load(values + at, at < count, other=float("-inf"))
        weight = tl.where(x >= floor, x - total, float("-inf"))
        purpose = tl.where(is_judged, tl.zeros_like(draft) + _RESIDUAL, PURPOSE)
        if is_judged:
            q_here = _q_of(id_, at < count, draft, q_logits, q_cuts, q_floor, q_total, q_size)
            rest = tl.exp(weight) - q_here
            rest = tl.where(rest > 0, tl.log(tl.where(rest > 0, rest, 1.0)), float("-inf"))
            weight = tl.where(left > 0, rest, weight)  # nothing left of p: p itself
        noise = _gumbel(_uniform(seed, candidate, counter, id_, purpose))
        score = weight + tl.where(temperature > 0, noise, 0.0)
        highest = tl.max(score, 0)
        first = tl.min(tl.where(score == highest, id_, size), 0)
        token = tl.where(highest > best, first, token)
        best = tl.maximum(best, highest)
    tl.store(tokens + position, token)
    tl.store(stays + position, tl.where(is_judged, stay, draft == token).to(tl.int32))
    tl.store(floors + position, floor)
    tl.store(totals + position, total)


@triton.jit(do_not_specialize=["rows"])
def _leading_kernel(raw, raw_totals, tokens, stays, drafts, starts, result, scores, stride, rows, BLOCK: tl.constexpr):
    """One row: the drafts before the first that does not stay, the token there, and what all that was worth."""
    row = tl.program_id(0)
    start, stop = tl.load(starts + row), tl.load(starts + row + 1)
    accepted = stop - start - 1
    for begin in range(start, stop, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        stay = tl.load(stays + at, mask=at < stop, other=0)
        accepted = tl.minimum(accepted, tl.min(tl.where((stay == 0) & (at < stop), at - start, 1 << 30), 0))
    for begin in range(start, stop, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        is_next = at == start + accepted
        committed = tl.load(tokens + at, mask=is_next, other=0)
        committed = tl.where(is_next, committed, tl.load(drafts + at, mask=at < start + accepted, other=0))
        place = at.to(tl.int64) * stride + committed
        logit = tl.load(raw + place, mask=at <= start + accepted, other=0.0).to(tl.float32)
        log_prob = logit - tl.load(raw_totals + at, mask=at < stop, other=0.0)
        tl.store(scores + 2 * rows + at, log_prob, mask=at < stop)
    tl.store(result + row, accepted)
    tl.store(result + rows + row, tl.load(tokens + start + accepted))
