"""Ragged rows through unmodified transformers models: one cache class and one attention function.

Each row owns a slab of slots. A token's slot is its absolute position less the prompt's length, so a query at
position p may read the slots up to p and nothing else needs masking. That also makes rollback free: a row is
shortened by forgetting, and the next write lands on the stale slots.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.cache_utils import Cache, CacheLayerMixin

from engine.sampler.prefix_reuse import PrefixMatch, Segment
from kernels.attention import native
from kernels.attention.torch import prefix_suffix_attention, visibility

# Any other registered name works, as long as it holds no "/", "sdpa", "flex_attention" or "flash_attention".
# No mask function is registered under it: transformers then builds no [B, 1, Q, S] mask at all.
ATTENTION_NAME = "bassline"
GROWTH = 128  # slots added when a slab is full
PADDING = 2  # padded queries that cost about as much as one more call of the attention


@dataclass(frozen=True)
class RowGroup:
    """Neighbouring rows of a step that attend in one call, each with ``width`` queries, padding included.

    ``tokens``: where the rows' queries lie in the packed line. ``places``: row within the stretch and offset of each
    of them; None where every row has ``width`` and nothing is padded.
    """

    rows: slice
    tokens: slice
    width: int
    places: tuple[Tensor, Tensor] | None

    def gather(self, line: Tensor) -> Tensor:
        """Packed queries ``[1, H, T, D]`` -> those of the stretch, one line per row ``[b, H, width, D]``."""
        tokens = line[0, :, self.tokens].transpose(0, 1)  # [t, H, D]
        if self.places is None:
            lines: Tensor = tokens.unflatten(0, (-1, self.width))
            return lines.transpose(1, 2)
        grid = tokens.new_zeros(self.rows.stop - self.rows.start, self.width, *tokens.shape[1:])
        grid[self.places] = tokens
        return grid.transpose(1, 2)

    def scatter(self, out: Tensor) -> Tensor:
        """``[b, H, width, D]`` -> ``[t, H, D]``, in line order, without padding."""
        out = out.transpose(1, 2)
        return out.flatten(0, 1) if self.places is None else out[self.places]


def row_groups(counts: Sequence[int], device: torch.device) -> list[RowGroup]:
    """Cut the rows where padding them to one width would cost more than another call does."""
    edges, start, width, total = [0], 0, 0, 0
    for row, count in enumerate(counts):
        width, total = max(width, count), total + count
        if width * (row + 1 - start) - total > PADDING:
            edges.append(row)
            start, width, total = row, count, count
    found, token = [], 0
    for first, last in pairwise([*edges, len(counts)]):
        own = counts[first:last]
        places = None
        if min(own) < max(own):
            rows, offsets = _places(own)
            places = torch.tensor(rows, device=device), torch.tensor(offsets, device=device)
        found.append(RowGroup(slice(first, last), slice(token, token + sum(own)), max(own), places))
        token += sum(own)
    return found


def _places(counts: Sequence[int]) -> tuple[list[int], list[int]]:
    """Row and offset of every token. By hand: torch wakes its threads for as much."""
    rows = [row for row, count in enumerate(counts) for _ in range(count)]
    return rows, [offset for count in counts for offset in range(count)]


class Step:
    """Where the tokens of one forward pass go. The cache owns it, because not every model passes keywords on.

    The line of tokens is either *packed*, ``[1, T]`` with any number of tokens per row, or *padded*, ``[B, Q]``.
    """

    def __init__(
        self, counts: Sequence[int], starts: Sequence[int], prefix_length: int, *, packed: bool, device: torch.device
    ):
        self.batch, self.width = len(counts), max(counts)
        self.prefix_length, self.packed = prefix_length, packed
        # Row, offset and slot of every true token, in line order: [T] each.
        self.rows, self.offsets = (torch.tensor(each, device=device) for each in _places(counts))
        first = torch.tensor(starts, device=device)[:, None]
        # [B, Q]; a padded query sees what the row's own tokens see, and its output is thrown away.
        self.grid = first + torch.arange(self.width, device=device)
        self.token_slots = self.grid[self.rows, self.offsets] - prefix_length
        self.slots = int(max(s + c for s, c in zip(starts, counts, strict=True))) - prefix_length
        self._counts = counts
        self._masks: dict[tuple[int, int | None, torch.dtype], Tensor] = {}

    @cached_property
    def row_groups(self) -> list[RowGroup]:
        """For attention in torch: which rows of a packed line attend together."""
        return row_groups(self._counts, self.grid.device)

    @property
    def positions(self) -> Tensor:
        """Position ids for the model: ``[1, T]`` packed, ``[B, Q]`` padded."""
        return self.token_slots[None] + self.prefix_length if self.packed else self.grid

    def line(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Token ids in the line's shape."""
        if self.packed:
            return torch.tensor([[token for row in tokens for token in row]], device=self.grid.device)
        return torch.tensor([[*row, *[0] * (self.width - len(row))] for row in tokens], device=self.grid.device)

    def true_tokens(self, per_token: Tensor) -> Tensor:
        """``[1, T, ...]`` or ``[B, Q, ...]`` -> ``[T, ...]`` without padding."""
        return per_token[0] if self.packed else per_token[self.rows, self.offsets]

    def mask(self, rows: slice, width: int, window: int | None, dtype: torch.dtype) -> Tensor:
        """Of some rows, shared by all layers with the same window: ``[b, width, P + S]``."""
        key = (rows.start, window, dtype)
        if key not in self._masks:
            grid = self.grid[rows, :width]
            self._masks[key] = visibility(grid, self.prefix_length, self.slots, window).to(dtype)
        return self._masks[key]


class RaggedLayer(CacheLayerMixin):
    """Keys and values of one layer: ``[rows, heads, slots, dim]`` slabs and the prompt's shared prefix."""

    def __init__(self, owner: "RaggedCache"):
        super().__init__()
        self.owner = owner
        self.prefix: tuple[Tensor, Tensor] | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        dtype = self.owner.dtype or key_states.dtype
        self.keys = key_states.new_zeros(0, key_states.shape[1], 0, key_states.shape[3], dtype=dtype)
        self.values = value_states.new_zeros(0, value_states.shape[1], 0, value_states.shape[3], dtype=dtype)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Write the line's keys and values; return each active row's slab ``[B, heads, S, dim]``."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        step = self.owner.step
        self._reserve(step.batch, step.slots)
        where = (step.rows, slice(None), step.token_slots)
        self.keys[where] = step.true_tokens(key_states.transpose(1, 2)).to(self.keys.dtype)
        self.values[where] = step.true_tokens(value_states.transpose(1, 2)).to(self.values.dtype)
        return self.keys[: step.batch, :, : step.slots], self.values[: step.batch, :, : step.slots]

    def _reserve(self, rows: int, slots: int) -> None:
        """Grow the slabs in strides, so that a long answer is copied seldom and a short one stays small."""
        have_rows, _, have_slots, _ = self.keys.shape
        if rows <= have_rows and slots <= have_slots:
            return
        if slots > have_slots:
            slots = -(-slots // GROWTH) * GROWTH
        size = (max(rows, have_rows), max(slots, have_slots))
        self.keys, self.values = _grown(self.keys, *size), _grown(self.values, *size)

    def freeze(self, length: int) -> None:
        """Put the first ``length`` slots of row 0 behind the prefix that every row attends to; empty the slabs."""
        self.extend(self.take(0, length))
        self.empty()

    def take(self, row: int, length: int) -> tuple[Tensor, Tensor]:
        """A copy of a row's first slots."""
        slots = (slice(row, row + 1), slice(None), slice(0, length))
        return self.keys[slots].clone(), self.values[slots].clone()

    def extend(self, more: tuple[Tensor, Tensor]) -> None:
        """Keys and values ``[1, heads, n, dim]`` go on where the prefix ends."""
        if self.prefix is not None:
            more = (torch.cat([self.prefix[0], more[0]], dim=2), torch.cat([self.prefix[1], more[1]], dim=2))
        self.prefix = more

    def cut_prefix(self, length: int) -> None:
        if self.prefix is not None:
            self.prefix = (self.prefix[0][:, :, :length], self.prefix[1][:, :, :length]) if length else None

    def empty(self) -> None:
        if self.is_initialized:
            self.keys, self.values = self.keys[:0, :, :0].clone(), self.values[:0, :, :0].clone()

    def put(self, row: int, segment: tuple[Tensor, Tensor], length: int) -> None:
        """The first slots of a row are those of ``segment``, ``[1, heads, tokens, dim]``."""
        slabs = self._room_for(row + 1, length)
        for slab, part in zip(slabs, segment, strict=True):
            slab[row, :, :length] = part[0, :, :length]

    def share(self, row: int, others: Sequence[int], length: int) -> None:
        """The first slots of a row are those of others, too."""
        for slab in self._room_for(max(others) + 1, length):
            slab[list(others), :, :length] = slab[row, :, :length].clone()

    def _room_for(self, rows: int, slots: int) -> tuple[Tensor, Tensor]:
        self._reserve(rows, slots)
        return self.keys, self.values

    def keep(self, rows: Sequence[int]) -> None:
        if not self.is_initialized:
            return
        self._reserve(max(rows, default=-1) + 1, 0)  # a row that was never written has no slab yet
        index = torch.tensor(rows, dtype=torch.long, device=self.keys.device)
        self.keys, self.values = self.keys[index], self.values[index]

    # Asked only by code we do not use (mask building, default positions); constants that do no harm.
    def get_seq_length(self) -> int:
        return 0

    def get_max_length(self) -> int:
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return query_length, 0


def _grown(slabs: Tensor, rows: int, slots: int) -> Tensor:
    bigger = slabs.new_zeros(rows, slabs.shape[1], slots, slabs.shape[3])
    bigger[: slabs.shape[0], :, : slabs.shape[2]] = slabs
    return bigger


class RaggedCache(Cache):
    """The KV cache of all rows of one model, over one shared copy of the prompt's.

    ``dtype``: what keys and values are kept in, and attention is computed in; None is the model's own.
    """

    def __init__(self, layers: int, dtype: torch.dtype | None = None):
        self.dtype = dtype
        self.step: Step = Step([1], [0], 0, packed=False, device=torch.device("cpu"))
        self.prefix_length = 0
        super().__init__([RaggedLayer(self) for _ in range(layers)])

    def freeze(self, length: int) -> None:
        """The prompt has been read as row 0, to ``length`` tokens in all: share it. Slots count from here on."""
        for layer in self.layers:
            layer.freeze(length - self.prefix_length)
        self.prefix_length = length

    def take(self, row: int, length: int) -> Segment:
        """Copies of a row's first slots, all layers."""
        return [layer.take(row, length) for layer in self.layers]

    @torch.inference_mode()
    def put(self, row: int, segment: Segment, length: int) -> None:
        """A row begins with the first ``length`` tokens of what ``take`` gave."""
        for layer, part in zip(self.layers, segment, strict=True):
            layer.put(row, part, length)

    @torch.inference_mode()
    def share(self, row: int, others: Sequence[int], length: int) -> None:
        """Other rows begin with the same ``length`` tokens as this one."""
        for layer in self.layers:
            layer.share(row, others, length)

    def resume(self, match: PrefixMatch) -> None:
        """Make what is known of the next prompt its prefix: a beginning of the last one, and of an answer to it."""
        for index, layer in enumerate(self.layers):
            layer.empty()
            layer.cut_prefix(match.prompt)
            if match.segment is not None:
                keys, values = match.segment[index]
                layer.extend((keys[:, :, : match.answer], values[:, :, : match.answer]))
        self.prefix_length = match.prompt + match.answer

    def extend_prefix(self, length: int) -> None:
        """Pretend that the prompt had ``length`` tokens: what is there, over and over. To measure, not to answer."""
        index = torch.arange(length) % self.prefix_length
        for layer in self.layers:
            keys, values = layer.prefix
            layer.prefix = (keys[:, :, index.to(keys.device)], values[:, :, index.to(values.device)])
        self.prefix_length = length

    def keep(self, rows: Sequence[int]) -> None:
        """Compaction: only these rows stay, in this order. Row numbers change accordingly."""
        for layer in self.layers:
            layer.keep(rows)

    def attend(self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, options: dict[str, Any]) -> Tensor:
        """Attention of the step's queries, ``[1, T, Hq, Dv]`` or ``[B, Q, Hq, Dv]``.

        ``options``: the model's scaling, window, softcap and sinks, as in ``kernels.attention``.
        """
        step = self.step
        prefix = self.layers[module.layer_idx].prefix
        if prefix is not None and hasattr(module, "expand_kv"):  # MLA caches latents and expands what update() returned
            prefix = module.expand_kv(*prefix)  # type: ignore[operator]
        if is_compiled(query, key, value):
            return self._attend_compiled(query, prefix, (key, value), options)
        window, wide = options.pop("window"), torch.promote_types(key.dtype, torch.float32)

        def attend(query: Tensor, rows: slice) -> Tensor:
            mask = step.mask(rows, query.shape[2], window, wide).to(query.device)
            return prefix_suffix_attention(query, prefix, (key[rows], value[rows]), mask, **options)

        if not step.packed:
            return attend(query, slice(0, step.batch)).transpose(1, 2).contiguous()
        parts = [part.scatter(attend(part.gather(query), part.rows)) for part in step.row_groups]
        return (parts[0] if len(parts) == 1 else torch.cat(parts))[None]

    def _attend_compiled(
        self,
        query: Tensor,
        prefix: tuple[Tensor, Tensor] | None,
        suffix: tuple[Tensor, Tensor],
        options: dict[str, Any],
    ) -> Tensor:
        step = self.step
        tokens = step.true_tokens(query.transpose(1, 2))
        out = native.packed_attention(tokens, prefix, suffix, step.rows, step.token_slots, **options)
        if step.packed:
            return out[None]
        grid = out.new_zeros(step.batch, step.width, *out.shape[1:])
        grid[step.rows, step.offsets] = out
        return grid


def is_compiled(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether the loops of ``kernels.attention.native`` serve; torch does otherwise."""
    plain = query.is_cpu and query.dtype == key.dtype == value.dtype == torch.float32
    return plain and not native.why_not(key.shape[-1], value.shape[-1])


# The cache of the forward pass in progress on this thread. Two engines may be in the middle of a pass at once: one that
# was asked to stop is still at its last step when the next begins.
_current: ContextVar[RaggedCache] = ContextVar("cache of the pass in progress")


@contextmanager
def forward_over(cache: RaggedCache, step: Step) -> Iterator[None]:
    """The attention function below belongs to ``cache`` and ``step`` while this is open."""
    cache.step = step
    before = _current.set(cache)
    try:
        yield
    finally:
        _current.reset(before)


def ragged_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **kwargs: object,
) -> tuple[Tensor, None]:
    """What models call in place of eager attention; the signature is transformers'.

    ``query`` ``[1, Hq, T, D]`` or ``[B, Hq, Q, D]``; ``key``, ``value`` as ``RaggedLayer.update`` returned them.
    """
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    options = {"scaling": scaling, "window": sliding_window, "softcap": softcap, "sinks": s_aux}
    return _current.get().attend(module, query, key, value, options), None


AttentionInterface.register(ATTENTION_NAME, ragged_attention)
