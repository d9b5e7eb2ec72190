"""Bifurcated attention for packed ragged rows on the device: one launch over all keys, one small reduction.

``torch.packed_attention`` is its twin, with the same arguments. The grid holds two kinds of programs side by side: a
*prompt* program takes a tile of all rows' queries against a range of the shared prompt, a *suffix* program a tile of
one row's queries against a range of its own slab. Each writes the output and log-sum-exp of its range; the reduction
combines them. The keys are split into ranges so that a few queries still fill the chip.

All lengths (prompt, rows, positions) are read on the device and nothing is copied to the host: a captured graph serves
every length. Only Python integers shape the launch, and all of those are in ``Tiling`` and in the tensors' sizes.
"""

from dataclasses import dataclass
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2_E = tl.constexpr(1.4426950408889634)
FAR = tl.constexpr(1 << 30)
JOINED = 16  # splits that the reduction holds at a time: all of them would not fit into a program's registers
# Triton's interpreter multiplies bfloat16 as the integers it stores it in; there, and only there, it is widened first.
WIDEN = tl.constexpr(triton.knobs.runtime.interpret)


@dataclass(frozen=True)
class Tiling:
    """How one call is cut up. Changes speed, and the last bits of the result; nothing else.

    ``prompt_rows``, ``suffix_rows``: rows of a tile, a query times the heads that share a key head, a power of two from
    16; ``prompt_splits``, ``suffix_splits``: programs along the keys; ``keys``: keys read at a time.
    """

    prompt_rows: int
    prompt_splits: int
    suffix_rows: int
    suffix_splits: int
    keys: int = 64
    warps: int = 4
    stages: int = 2

    @classmethod
    def choose(
        cls, tokens: int, rows: int, ratio: int, groups: int, width: int, prompt: int, slots: int, processors: int
    ) -> "Tiling":
        """From sizes alone: ``ratio`` query heads per key head, ``prompt`` and ``slots`` as room, not as lengths.

        ``width``: bytes of a head's keys in one slot. What a program holds at a time stays below the 99 KB of shared
        memory that the smallest of the GPUs has.
        """
        largest, keys = next((rows, keys) for most, rows, keys in _SHARED if width <= most)
        prompt_rows = _tile(tokens * ratio, largest)
        prompt_programs = triton.cdiv(tokens * ratio, prompt_rows) * groups
        suffix_rows = max(_tile(triton.cdiv(tokens, rows) * ratio, min(largest, 64)), triton.next_power_of_2(ratio))
        suffix_programs = max(rows, triton.cdiv(tokens, suffix_rows // ratio)) * groups
        wanted = 2 * processors
        return cls(
            prompt_rows=prompt_rows,
            prompt_splits=_splits(wanted, prompt_programs, prompt) if prompt else 0,
            suffix_rows=suffix_rows,
            suffix_splits=_splits(wanted, suffix_programs, slots),
            keys=keys,
            warps=8 if prompt_rows == 128 or width > 256 else 4,
        )


# Bytes of a head in one slot, up to which tiles have so many rows at most, and so many keys are read at a time.
_SHARED = ((256, 128, 64), (512, 64, 32), (1 << 30, 16, 16))


def _tile(rows: int, largest: int) -> int:
    """One of three sizes: each is a kernel to be compiled."""
    return next(size for size in (16, 64, 128) if size >= min(rows, largest))


def _splits(wanted: int, programs: int, keys: int) -> int:
    """Enough to fill the chip, as long as each has 256 keys to read."""
    return max(1, min(-(-wanted // programs), -(-keys // 256), 64))


@cache
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def packed_attention(
    query: Tensor,
    prefix: tuple[Tensor, Tensor] | None,
    suffix: tuple[Tensor, Tensor],
    starts: Tensor,
    positions: Tensor,
    prefix_length: Tensor,
    *,
    scaling: float,
    window: int | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    tiling: Tiling | None = None,
) -> Tensor:
    """See ``kernels.attention.torch.packed_attention``; float16, bfloat16 or float32, sums in float32."""
    tokens, heads, dim = query.shape
    rows, (_, groups, slots, value_dim) = len(starts) - 1, suffix[1].shape  # there may be more slabs than rows
    ratio = heads // groups
    room = 0 if prefix is None else prefix[0].shape[2]
    if tiling is None:
        width = triton.next_power_of_2(max(dim, value_dim)) * suffix[0].element_size()
        tiling = Tiling.choose(tokens, rows, ratio, groups, width, room, slots, _processors(query.device))
    splits = tiling.prompt_splits + tiling.suffix_splits
    partial = torch.empty(splits, tokens, heads, value_dim, dtype=torch.float32, device=query.device)
    weight = torch.empty(splits, tokens, heads, dtype=torch.float32, device=query.device)
    out = torch.empty(tokens, heads, value_dim, dtype=query.dtype, device=query.device)
    query = query if query.stride(-1) == 1 else query.contiguous()
    prompt_keys, prompt_values = prefix if prefix is not None else suffix  # never read if there is none
    queries_per_tile = tiling.suffix_rows // ratio
    prompt_tiles = triton.cdiv(tokens * ratio, tiling.prompt_rows) if tiling.prompt_splits else 0
    suffix_tiles = tokens // queries_per_tile + rows  # enough for any spread of the tokens over the rows
    _partial_kernel[(prompt_tiles * tiling.prompt_splits + suffix_tiles * tiling.suffix_splits, groups)](
        query, prompt_keys, prompt_values, suffix[0], suffix[1], starts, positions, prefix_length, partial, weight,
        scaling * LOG2_E.value if softcap is None else scaling / softcap,
        0.0 if softcap is None else softcap * LOG2_E.value,
        tokens, rows, prompt_tiles, tiling.prompt_splits, suffix_tiles, tiling.suffix_splits,
        query.stride(0), query.stride(1),
        prompt_keys.stride(1), prompt_keys.stride(2), prompt_values.stride(1), prompt_values.stride(2),
        *suffix[0].stride()[:3], *suffix[1].stride()[:3],
        HEADS=heads, RATIO=ratio, DIM=dim, VALUE_DIM=value_dim, WINDOW=window or 0, HAS_SOFTCAP=softcap is not None,
        PROMPT_ROWS=tiling.prompt_rows, SUFFIX_ROWS=tiling.suffix_rows, QUERIES=queries_per_tile, KEYS=tiling.keys,
        BLOCK_ROWS=max(32, triton.next_power_of_2(rows)),
        BLOCK_DIM=max(16, triton.next_power_of_2(dim)), BLOCK_VALUE=max(16, triton.next_power_of_2(value_dim)),
        num_warps=tiling.warps, num_stages=tiling.stages, enable_fp_fusion=True,
    )  # fmt: skip
    _merge_kernel[(tokens, heads)](
        partial, weight, sinks if sinks is not None else weight, starts, out, tokens, rows, splits,
        HEADS=heads, VALUE_DIM=value_dim, HAS_SINKS=sinks is not None,
        BLOCK_SPLITS=triton.next_power_of_2(splits), JOINED=JOINED,
        BLOCK_VALUE=max(16, triton.next_power_of_2(value_dim)),
        num_warps=2, enable_fp_fusion=True,
    )  # fmt: skip
    return out


# These change from step to step: a kernel compiled for one value of them would be compiled again for the next.
_VARYING = ["tokens", "rows", "prompt_tiles", "prompt_splits", "suffix_tiles", "suffix_splits"]
_PARTS = ["starts", "positions", "prefix_length"]  # of one tensor: aligned or not as the line's length falls


@triton.jit(do_not_specialize=_VARYING, do_not_specialize_on_alignment=_PARTS)
def _partial_kernel(
    query, prompt_keys, prompt_values, suffix_keys, suffix_values, starts, positions, prefix_length, partial, weight,
    scale, softcap, tokens, rows, prompt_tiles, prompt_splits, suffix_tiles, suffix_splits, query_token, query_head,
    prompt_key_group, prompt_key_slot, prompt_value_group, prompt_value_slot,
    suffix_key_row, suffix_key_group, suffix_key_slot, suffix_value_row, suffix_value_group, suffix_value_slot,
    HEADS: tl.constexpr, RATIO: tl.constexpr, DIM: tl.constexpr, VALUE_DIM: tl.constexpr, WINDOW: tl.constexpr,
    HAS_SOFTCAP: tl.constexpr, PROMPT_ROWS: tl.constexpr, SUFFIX_ROWS: tl.constexpr, QUERIES: tl.constexpr,
    KEYS: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_DIM: tl.constexpr, BLOCK_VALUE: tl.constexpr,
):  # fmt: skip
    program, group = tl.program_id(0), tl.program_id(1).to(tl.int64)
    length = tl.load(prefix_length).to(tl.int32)
    if program < prompt_tiles * prompt_splits:
        # Tiles run fastest, so that programs which read the same keys run side by side and share them in the cache.
        tile, split = program % prompt_tiles, program // prompt_tiles
        token, head, inside = _prompt_tile(tile, starts, rows, RATIO, PROMPT_ROWS)
        _attend(
            query, prompt_keys + group * prompt_key_group, prompt_values + group * prompt_value_group, positions,
            partial, weight, split, prompt_splits, split, token, group * RATIO + head, inside,
            0, length, scale, softcap, tokens, query_token, query_head, prompt_key_slot, prompt_value_slot,
            HEADS, DIM, VALUE_DIM, WINDOW, HAS_SOFTCAP, PROMPT_ROWS, KEYS, BLOCK_DIM, BLOCK_VALUE,
        )  # fmt: skip
    else:
        place = program - prompt_tiles * prompt_splits
        tile_, split_ = place % suffix_tiles, place // suffix_tiles
        row, token_, head_, inside_ = _suffix_tile(tile_, starts, rows, RATIO, SUFFIX_ROWS, QUERIES, BLOCK_ROWS)
        _attend(
            query, suffix_keys + row * suffix_key_row + group * suffix_key_group,
            suffix_values + row * suffix_value_row + group * suffix_value_group, positions,
            partial, weight, split_, suffix_splits, prompt_splits + split_, token_, group * RATIO + head_, inside_,
            length, FAR, scale, softcap, tokens, query_token, query_head, suffix_key_slot, suffix_value_slot,
            HEADS, DIM, VALUE_DIM, WINDOW, HAS_SOFTCAP, SUFFIX_ROWS, KEYS, BLOCK_DIM, BLOCK_VALUE,
        )  # fmt: skip


@triton.jit
def _prompt_tile(tile, starts, rows, RATIO: tl.constexpr, ROWS: tl.constexpr):
    """Token and head (within its group) of each row of a tile that runs over all tokens; what is beyond is padding."""
    flat = tile * ROWS + tl.arange(0, ROWS)
    token = flat // RATIO
    return token, flat % RATIO, token < tl.load(starts + rows)


@triton.jit
def _suffix_tile(
    tile, starts, rows, RATIO: tl.constexpr, ROWS: tl.constexpr, QUERIES: tl.constexpr, BLOCK_ROWS: tl.constexpr
):
    """The same for a tile within one row of the batch, and that row.

    Row b's first tile is number starts[b] // QUERIES + b: rising, and far enough apart for any counts.
    """
    number = tl.arange(0, BLOCK_ROWS)
    first_tile = tl.load(starts + number, mask=number < rows, other=FAR) // QUERIES + number
    row = tl.sum((first_tile <= tile).to(tl.int32), 0) - 1
    start = tl.load(starts + row)
    in_tile = tl.arange(0, ROWS)
    token = start + (tile - start // QUERIES - row) * QUERIES + in_tile // RATIO
    inside = (token < tl.load(starts + row + 1)) & (in_tile < QUERIES * RATIO)
    return row.to(tl.int64), token, in_tile % RATIO, inside


@triton.jit
def _attend(
    query, keys, values, positions, partial, weight, split, splits, slice_, token, head, inside, offset, length,
    scale, softcap, tokens, query_token, query_head, key_slot, value_slot,
    HEADS: tl.constexpr, DIM: tl.constexpr, VALUE_DIM: tl.constexpr, WINDOW: tl.constexpr, HAS_SOFTCAP: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, BLOCK_DIM: tl.constexpr, BLOCK_VALUE: tl.constexpr,
):  # fmt: skip
    """A tile of queries against one split of the keys in slots 0 .. ``length``; slot j holds position offset + j."""
    last = tl.load(positions + token, mask=inside, other=0).to(tl.int32) - offset  # the last slot that a query sees
    stop = tl.minimum(tl.max(tl.where(inside, last, -1), 0) + 1, length)
    first = 0
    if WINDOW > 0:
        first = tl.maximum(tl.min(tl.where(inside, last, FAR), 0) - WINDOW + 1, 0)
    share = tl.cdiv(tl.cdiv(tl.maximum(stop - first, 0), splits), KEYS) * KEYS
    begin = first + split * share
    end = tl.minimum(begin + share, stop)

    dims, value_dims, in_block = tl.arange(0, BLOCK_DIM), tl.arange(0, BLOCK_VALUE), tl.arange(0, KEYS)
    line = token.to(tl.int64)
    q = tl.load(
        query + line[:, None] * query_token + head[:, None] * query_head + dims,
        mask=inside[:, None] & (dims < DIM),
        other=0.0,
    )
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    out = tl.zeros([ROWS, BLOCK_VALUE], tl.float32)
    for at in range(begin, end, KEYS):
        slot = at + in_block
        k = tl.load(
            keys + slot[None, :] * key_slot + dims[:, None],
            mask=(slot[None, :] < end) & (dims[:, None] < DIM),
            other=0.0,
        )
        scores = _product(q, k) * scale
        if HAS_SOFTCAP:
            scores = softcap * (1.0 - 2.0 / (tl.exp(2.0 * tl.minimum(scores, 20.0)) + 1.0))  # tanh
        visible = (slot[None, :] <= last[:, None]) & (slot[None, :] < end)
        if WINDOW > 0:
            visible &= slot[None, :] > last[:, None] - WINDOW
        scores = tl.where(visible, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        base = tl.where(new_top == float("-inf"), 0.0, new_top)  # nothing seen yet: any number does
        chances = tl.exp2(scores - base[:, None])
        fade = tl.exp2(top - base)
        v = tl.load(
            values + slot[:, None] * value_slot + value_dims,
            mask=(slot[:, None] < end) & (value_dims < VALUE_DIM),
            other=0.0,
        )
        out = out * fade[:, None] + _product(chances.to(v.dtype), v)
        total = total * fade + tl.sum(chances, 1)
        top = new_top

    place = (slice_ * tokens + line) * HEADS + head
    divisor = tl.where(total > 0, total, 1.0)
    tl.store(weight + place, tl.where(total > 0, top + tl.log2(divisor), float("-inf")), mask=inside)
    if begin < end:  # the reduction does not read what has no weight
        tl.store(
            partial + place[:, None] * VALUE_DIM + value_dims,
            out / divisor[:, None],
            mask=inside[:, None] & (value_dims < VALUE_DIM),
        )


@triton.jit
def _product(a, b):
    if WIDEN:
        a, b = a.to(tl.float32), b.to(tl.float32)
    return tl.dot(a, b, input_precision="ieee")


@triton.jit(do_not_specialize=["tokens", "rows", "splits"], do_not_specialize_on_alignment=_PARTS[:1])
def _merge_kernel(
    partial, weight, sinks, starts, out, tokens, rows, splits,
    HEADS: tl.constexpr, VALUE_DIM: tl.constexpr, HAS_SINKS: tl.constexpr,
    BLOCK_SPLITS: tl.constexpr, JOINED: tl.constexpr, BLOCK_VALUE: tl.constexpr,
):  # fmt: skip
    """One head of one token: the splits' outputs, each by its share of the softmax. Padding gives zeros."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    value_dims, all_splits = tl.arange(0, BLOCK_VALUE), tl.arange(0, BLOCK_SPLITS)
    splits = tl.where(token < tl.load(starts + rows), splits, 0)
    weights = tl.load(
        weight + (all_splits * tokens + token) * HEADS + head, mask=all_splits < splits, other=float("-inf")
    )
    top = tl.max(weights, 0)
    if HAS_SINKS:
        sink = tl.load(sinks + head).to(tl.float32) * LOG2_E
        top = tl.maximum(top, sink)
    base = tl.where(top == float("-inf"), 0.0, top)
    total = tl.sum(tl.exp2(weights - base), 0)
    if HAS_SINKS:
        total += tl.exp2(sink - base)
    result = tl.zeros([BLOCK_VALUE], tl.float32)
    for first in range(0, splits, JOINED):
        split = first + tl.arange(0, JOINED)
        place = (split * tokens + token) * HEADS + head
        shares = tl.exp2(tl.load(weight + place, mask=split < splits, other=float("-inf")) - base)
        outputs = tl.load(
            partial + place[:, None] * VALUE_DIM + value_dims,
            mask=(shares > 0)[:, None] & (value_dims < VALUE_DIM),
            other=0.0,
        )
        result += tl.sum(outputs * shares[:, None], 0)
    result = result / tl.where(total > 0, total, 1.0)
    tl.store(
        out + (token * HEADS + head) * VALUE_DIM + value_dims,
        result.to(out.dtype.element_ty),
        mask=value_dims < VALUE_DIM,
    )
