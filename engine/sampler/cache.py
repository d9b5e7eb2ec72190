"""Ragged rows through unmodified transformers models: one cache class and one attention function.

Each row owns a slab of slots. A token's slot is its absolute position less the prompt's length, so a query at
position p may read the slots up to p and nothing else needs masking. That also makes rollback free: a row is
shortened by forgetting, and the next write lands on the stale slots.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.cache_utils import Cache, CacheLayerMixin

from kernels.attention.torch import prefix_suffix_attention, visibility

# Any other registered name works, as long as it holds no "/", "sdpa", "flex_attention" or "flash_attention".
# No mask function is registered under it: transformers then builds no [B, 1, Q, S] mask at all.
ATTENTION_NAME = "bassline"
GROWTH = 128  # slots added when a slab is full


class Step:
    """Where the tokens of one forward pass go. The cache owns it, because not every model passes keywords on.

    The line of tokens is either *packed*, ``[1, T]`` with any number of tokens per row, or *padded*, ``[B, Q]``.
    """

    def __init__(
        self, counts: Sequence[int], starts: Sequence[int], prefix_length: int, *, packed: bool, device: torch.device
    ):
        self.batch, self.width = len(counts), max(counts)
        self.prefix_length, self.packed = prefix_length, packed
        # Row, offset and position of every true token, in line order: [T] each.
        self.rows = torch.repeat_interleave(torch.arange(self.batch), torch.tensor(counts)).to(device)
        self.offsets = torch.cat([torch.arange(count) for count in counts]).to(device)
        first = torch.tensor(starts, device=device)[:, None]
        # [B, Q]; a padded query sees what the row's own tokens see, and its output is thrown away.
        self.grid = first + torch.arange(self.width, device=device)
        self.is_uniform = min(counts) == self.width
        self.slots = int(max(s + c for s, c in zip(starts, counts, strict=True))) - prefix_length
        self._masks: dict[int | None, Tensor] = {}

    @property
    def positions(self) -> Tensor:
        """Position ids for the model: ``[1, T]`` packed, ``[B, Q]`` padded."""
        return self.grid[self.rows, self.offsets][None] if self.packed else self.grid

    def line(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Token ids in the line's shape."""
        if self.packed:
            return torch.tensor([[token for row in tokens for token in row]], device=self.grid.device)
        return torch.tensor([[*row, *[0] * (self.width - len(row))] for row in tokens], device=self.grid.device)

    def true_tokens(self, per_token: Tensor) -> Tensor:
        """``[1, T, ...]`` or ``[B, Q, ...]`` -> ``[T, ...]`` without padding."""
        return per_token[0] if self.packed else per_token[self.rows, self.offsets]

    def mask(self, window: int | None) -> Tensor:
        """Shared by all layers with the same window: ``[B, Q, P + S]``."""
        if window not in self._masks:
            self._masks[window] = visibility(self.grid, self.prefix_length, self.slots, window)
        return self._masks[window]


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
        slots = step.grid[step.rows, step.offsets] - step.prefix_length
        self.keys[step.rows, :, slots] = step.true_tokens(key_states.transpose(1, 2)).to(self.keys.dtype)
        self.values[step.rows, :, slots] = step.true_tokens(value_states.transpose(1, 2)).to(self.values.dtype)
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
        """Make the first ``length`` slots of row 0 the prefix that every row attends to; empty the slabs."""
        self.prefix = (self.keys[:1, :, :length].clone(), self.values[:1, :, :length].clone())
        self.keys, self.values = self.keys[:0, :, :0].clone(), self.values[:0, :, :0].clone()

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
        """The prompt has been read as row 0: share it. Slots count from here on."""
        for layer in self.layers:
            layer.freeze(length)
        self.prefix_length = length

    def keep(self, rows: Sequence[int]) -> None:
        """Compaction: only these rows stay, in this order. Row numbers change accordingly."""
        for layer in self.layers:
            layer.keep(rows)


_current: list[RaggedCache] = []  # the cache of the forward pass in progress; target and draft take turns


@contextmanager
def forward_over(cache: RaggedCache, step: Step) -> Iterator[None]:
    """The attention function below belongs to ``cache`` and ``step`` while this is open."""
    cache.step = step
    _current.append(cache)
    try:
        yield
    finally:
        _current.pop()


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
    cache = _current[-1]
    step = cache.step
    prefix = cache.layers[module.layer_idx].prefix
    if prefix is not None and hasattr(module, "expand_kv"):  # MLA caches latents and expands what update() returned
        prefix = module.expand_kv(*prefix)  # type: ignore[operator]
    out = prefix_suffix_attention(
        _to_grid(query, step),
        prefix,
        (key, value),
        step.mask(sliding_window),
        scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
        softcap=softcap,
        sinks=s_aux,
    )
    return _to_line(out.transpose(1, 2), step), None


def _to_grid(query: Tensor, step: Step) -> Tensor:
    """Packed queries ``[1, H, T, D]`` -> one line per row ``[B, H, Q, D]``; padded ones are that already."""
    if not step.packed:
        return query
    tokens = query[0].transpose(0, 1)  # [T, H, D]
    if step.is_uniform:
        return tokens.unflatten(0, (step.batch, step.width)).transpose(1, 2)
    grid = tokens.new_zeros(step.batch, step.width, *tokens.shape[1:])
    grid[step.rows, step.offsets] = tokens
    return grid.transpose(1, 2)


def _to_line(out: Tensor, step: Step) -> Tensor:
    """``[B, Q, H, D]`` -> ``[1, T, H, D]`` when packed."""
    if not step.packed:
        return out.contiguous()
    if step.is_uniform:
        return out.reshape(1, -1, *out.shape[2:])
    return out[step.rows, step.offsets][None]


AttentionInterface.register(ATTENTION_NAME, ragged_attention)
