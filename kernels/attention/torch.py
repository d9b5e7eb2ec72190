"""Bifurcated attention in plain torch: one prompt for all rows, and each row's own suffix.

The prompt part is one tall matrix product of all rows' queries against the single copy of the prompt's keys
(Bifurcated attention, arXiv 2403.08845, section 4); the two parts meet in one softmax.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor


def prefix_suffix_attention(
    query: Tensor,
    prefix: tuple[Tensor, Tensor] | None,
    suffix: tuple[Tensor, Tensor],
    mask: Tensor,
    *,
    scaling: float,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Attention output ``[B, Hq, Q, Dv]`` in the query's dtype; computed in the keys' dtype, float32 at least.

    query    ``[B, Hq, Q, D]``
    prefix   keys ``[1, G, P, D]`` and values ``[1, G, P, Dv]``, seen by every row, or None
    suffix   keys ``[B, G, S, D]`` and values ``[B, G, S, Dv]``, one slab per row; G divides Hq
    mask     ``[B, Q, P + S]``, 0 where the query sees the key and -inf elsewhere; see ``visibility``
    sinks    ``[Hq]``, one logit per head that takes weight and gives no value
    """
    batch, heads, count, dim = query.shape
    groups = suffix[0].shape[1]
    wide = torch.promote_types(suffix[0].dtype, torch.float32)
    # Heads that share a key head stand one under the other: keys are never repeated.
    grouped = (query.to(wide) * scaling).reshape(batch, groups, -1, dim)  # [B, G, (Hq/G)*Q, D]
    scores = grouped @ suffix[0].to(wide).transpose(-1, -2)
    if prefix is not None:
        tall = grouped.transpose(0, 1).reshape(groups, -1, dim)  # [G, B*(Hq/G)*Q, D]
        prompt_scores = (tall @ prefix[0][0].to(wide).transpose(-1, -2)).view(groups, batch, grouped.shape[2], -1)
        scores = torch.cat([prompt_scores.transpose(0, 1), scores], dim=-1)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.view(batch, groups, heads // groups, count, -1) + mask[:, None, None].to(wide)
    weights = _softmax(scores, sinks, groups).view(batch, groups, grouped.shape[2], -1)
    length = 0 if prefix is None else prefix[0].shape[2]
    out = weights[..., length:] @ suffix[1].to(wide)
    if prefix is not None:
        tall = weights[..., :length].transpose(0, 1).reshape(groups, -1, length)
        out = out + (tall @ prefix[1][0].to(wide)).view(groups, batch, grouped.shape[2], -1).transpose(0, 1)
    return out.view(batch, heads, count, -1).to(query.dtype)


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
) -> Tensor:
    """The same over a packed line: output ``[T, Hq, Dv]`` in the query's dtype; the truth for ``triton.py``.

    query          ``[T, Hq, D]``: row b's queries are ``starts[b] : starts[b + 1]``, any number of them, none too
    prefix         keys ``[1, G, room, D]`` and values ``[1, G, room, Dv]``, or None; slots beyond the length are unused
    suffix         keys ``[B, G, S, D]`` and values ``[B, G, S, Dv]``
    starts         ``[B + 1]`` integers; tokens from ``starts[B]`` on are padding, and their output is 0
    positions      ``[T]`` integers, absolute
    prefix_length  ``[1]`` integer: tokens of the prompt; the suffix slot j holds position ``prefix_length + j``
    """
    edges, length = starts.tolist(), int(prefix_length)
    out = query.new_zeros(*query.shape[:2], suffix[1].shape[3])
    prompt = None if prefix is None or length == 0 else (prefix[0][:, :, :length], prefix[1][:, :, :length])
    for row, (start, stop) in enumerate(pairwise(edges)):
        if start == stop:
            continue
        row_positions = positions[start:stop][None]
        slots = min(suffix[0].shape[2], max(1, int(row_positions.max()) - length + 1))
        slab = (suffix[0][row : row + 1, :, :slots], suffix[1][row : row + 1, :, :slots])
        mask = visibility(row_positions, length, slots, window)
        grid = query[start:stop].transpose(0, 1)[None]
        answer = prefix_suffix_attention(grid, prompt, slab, mask, scaling=scaling, softcap=softcap, sinks=sinks)
        out[start:stop] = answer[0].transpose(0, 1)
    return out


def attention_by_rows(
    query: Tensor,
    prefix: tuple[Tensor, Tensor] | None,
    suffix: tuple[Tensor, Tensor],
    rows: Tensor,
    slots: Tensor,
    *,
    window: int | None = None,
    **options: Any,
) -> Tensor:
    """The same over a line whose tokens come in any order: output ``[T, Hq, Dv]`` in the query's dtype.

    query, prefix, suffix  as above, with all of the prefix in use
    rows                   ``[T]`` integers: the slab of each token
    slots                  ``[T]`` integers: its slot there; it sees the slots up to its own
    """
    out = query.new_zeros(*query.shape[:2], suffix[1].shape[3])
    length = 0 if prefix is None else prefix[0].shape[2]
    for row in rows.unique().tolist():
        own = (rows == row).nonzero()[:, 0]
        mask = visibility(slots[own][None] + length, length, suffix[0].shape[2], window)
        slab = (suffix[0][row : row + 1], suffix[1][row : row + 1])
        grid = query[own].transpose(0, 1)[None]
        out[own] = prefix_suffix_attention(grid, prefix, slab, mask, **options)[0].transpose(0, 1)
    return out


def _softmax(scores: Tensor, sinks: Tensor | None, groups: int) -> Tensor:
    """Softmax over the last axis of ``[B, G, Hq/G, Q, K]``, with the sinks' share left out."""
    if sinks is None:
        return torch.softmax(scores, dim=-1)
    sink = sinks.to(scores.dtype).view(1, groups, -1, 1, 1).expand(*scores.shape[:-1], 1)
    return torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)[..., :-1]


def visibility(positions: Tensor, prefix_length: int, slots: int, window: int | None = None) -> Tensor:
    """Which keys each query sees, as the ``mask`` of ``prefix_suffix_attention``, float32.

    ``positions`` ``[B, Q]`` are absolute; the suffix slot j holds position ``prefix_length + j``. A slot beyond the
    query's own position is stale or not yet written, so one comparison is all the masking there is.
    ``window``: only the last ``window`` positions, the query's own included, are seen.
    """
    key_positions = torch.arange(prefix_length + slots, device=positions.device)
    visible = key_positions <= positions[..., None]
    if window is not None:
        visible &= key_positions > positions[..., None] - window
    return torch.zeros(visible.shape, device=positions.device).masked_fill_(~visible, float("-inf"))
