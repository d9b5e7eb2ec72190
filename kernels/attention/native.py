"""Packed attention compiled for this very processor, in float32 with one order of summation: see ``loops``.

torch's own matrix products choose their order by the shape of the batch, so that a token's last bits depend on its
neighbours; and for the few queries of a decoding step they spend most of the time on the way there.
"""

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from kernels import llvm, thread_pool
from kernels.attention.loops import HeadShape, attention_module, fits
from kernels.attention.torch import attention_by_rows
from kernels.once import once
from kernels.vector import WIDTH

NEEDED = frozenset({"avx2", "fma"})
_kept = threading.local()


@functools.cache
def why_not(key_size: int = 4, value_size: int = 4) -> str:
    """Why heads of these sizes are left to torch; empty where they are not."""
    if reason := llvm.why_not():
        return reason
    if not llvm.features() >= NEEDED:
        return "this processor has no AVX2"
    return "" if fits(key_size, value_size) else "the size of a head is no multiple of 4"


def packed_attention(
    query: Tensor,
    prefix: tuple[Tensor, Tensor] | None,
    suffix: tuple[Tensor, Tensor],
    rows: Tensor,
    slots: Tensor,
    *,
    scaling: float,
    window: int | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Attention output ``[T, Hq, Dv]`` of a packed line: float32 on the CPU, or else torch does it.

    Raises ValueError for tensors that do not belong together, and for a row or slot that is not there.

    query   ``[T, Hq, D]``
    prefix  keys ``[1, G, P, D]`` and values ``[1, G, P, Dv]``, seen by every row, or None
    suffix  keys ``[B, G, S, D]`` and values ``[B, G, S, Dv]``, one slab per row; G divides Hq
    rows    ``[T]`` int64: the slab of each token
    slots   ``[T]`` int64: its slot there; it sees the slots up to its own, and is at position ``P + slot``
    sinks   ``[Hq]``, one logit per head that takes weight and gives no value
    """
    given = (query, *(prefix or ()), *suffix, *(() if sinks is None else (sinks,)))
    if not all(serves(each) for each in given) or why_not(suffix[0].shape[-1], suffix[1].shape[-1]):
        options: dict[str, Any] = {"scaling": scaling, "window": window, "softcap": softcap, "sinks": sinks}
        return attention_by_rows(query, prefix, suffix, rows, slots, **options)
    _check(query, prefix, suffix, rows, slots, sinks)
    tokens, query_heads, _ = query.shape
    query = query if query.stride(2) == 1 else query.contiguous()
    keys, values = map(_dense, suffix)
    prefix = (keys[:1, :, :0], values[:1, :, :0]) if prefix is None else (_dense(prefix[0]), _dense(prefix[1]))
    length, (groups, slab) = prefix[0].shape[2], keys.shape[1:3]
    shape = HeadShape(keys.shape[3], values.shape[3], query_heads // groups, softcap is not None, sinks is not None)
    out = torch.empty(tokens, query_heads, shape.value_size)
    apart = (length + slab + 2 * WIDTH) // WIDTH * WIDTH
    pieces = min(thread_pool.pieces(), max(1, tokens * groups))
    room = _room(pieces * max(shape.chunks) * apart).view(pieces, -1, apart)
    sinks = room if sinks is None else sinks.contiguous()
    tensors = (query, *prefix, keys, values, rows.contiguous(), slots.contiguous(), sinks, out, room)
    strides = [each.stride(1) for each in prefix]
    strides += [each.stride(axis) for each in (keys, values) for axis in (0, 1)]
    sizes = (tokens, groups, length, window or 0, *query.stride()[:2], *strides, room.stride(0), apart)
    run = _compiled(shape)
    thread_pool.thread_pool().wake()
    run(*map(Tensor.data_ptr, tensors), *sizes, scaling, softcap or 0.0, pieces)
    return out


def _room(floats: int) -> Tensor:
    """Memory for scores, kept from call to call: what is new to a process has to be made by its system first."""
    room: Tensor | None = getattr(_kept, "room", None)
    if room is None or len(room) < floats:
        room = _kept.room = torch.empty(floats)
    return room[:floats]


def _dense(heads: Tensor) -> Tensor:
    """``[B, G, S, D]`` with the slots of a head one behind the other; a copy only where they are not."""
    lies = heads.stride(3) == 1 and (heads.stride(2) == heads.shape[3] or heads.shape[2] <= 1)
    return heads if lies else heads.contiguous()


def serves(floats: Tensor) -> bool:
    """Whether the loops can read such a tensor."""
    return floats.is_cpu and floats.dtype == torch.float32 and floats.layout == torch.strided


def _check(
    query: Tensor,
    prefix: tuple[Tensor, Tensor] | None,
    suffix: tuple[Tensor, Tensor],
    rows: Tensor,
    slots: Tensor,
    sinks: Tensor | None,
) -> None:
    """What does not fit together would be read, and mixed, from whatever lies there. Raises ValueError."""
    (tokens, heads, size), (batch, groups, slab, _) = query.shape, suffix[0].shape
    sizes = (size, suffix[1].shape[3])
    fits = suffix[0].shape[3] == size and suffix[1].shape[:3] == (batch, groups, slab) and heads % max(groups, 1) == 0
    if prefix is not None:
        shapes = [(groups, prefix[0].shape[2], own) for own in sizes]
        fits = fits and [part.shape[1:] for part in prefix] == shapes and all(len(part) > 0 for part in prefix)
    if not fits or not (sinks is None or sinks.shape == (heads,)):
        raise ValueError("queries, keys and values are not of one attention")
    for indices in (rows, slots):
        if not indices.is_cpu or indices.dtype != torch.int64 or indices.shape != (tokens,):
            raise ValueError(f"one int64 on the CPU for each of {tokens} tokens says its row, and one its slot")
    _check_range(rows, slots, batch, slab)


def _check_range(rows: Tensor, slots: Tensor, batch: int, slab: int) -> None:
    """Every layer of a step has the same rows and slots: they are looked at once."""
    last = getattr(_kept, "places", None)
    if last is None or last[0] is not rows or last[1] is not slots:
        bounds = [int(each) for part in (rows, slots) for each in part.aminmax()] if len(rows) else [0] * 4
        last = _kept.places = (rows, slots, bounds)
    (first_row, last_row, first_slot, last_slot), tokens = last[2], len(rows)
    if tokens and not (0 <= first_row <= last_row < batch and 0 <= first_slot <= last_slot < slab):
        raise ValueError(f"a token's row and slot are not in {batch} slabs of {slab} slots")


@once
def _compiled(shape: HeadShape) -> Callable[..., None]:
    kinds = [ctypes.c_void_p] * 10 + [ctypes.c_int64] * 14 + [ctypes.c_float] * 2 + [ctypes.c_int64]
    return thread_pool.compiled(attention_module(shape)).function("attend", *kinds)
