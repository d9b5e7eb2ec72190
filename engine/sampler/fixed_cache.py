"""The ragged cache in memory that never moves, for the device: what a captured graph has seen stays where it was.

Everything that changes from step to step (tokens, rows, slots, positions, lengths) is a number on the device, copied
there in one piece. The room is fixed instead: rows, slots per row, tokens of prompt. It is made from what a run is
known to need; where that turns out too little, larger room is made and graphs are captured again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from engine.backends.registry import device_of
from engine.models.room import Room
from engine.sampler.cache import RaggedCache, RaggedLayer, Step
from engine.sampler.prefix_reuse import PrefixMatch
from engine.sampler.streams import to_device

Pair = tuple[Tensor, Tensor]  # keys and values
Attention = Callable[..., Tensor]  # see ``kernels.attention.torch.packed_attention``


class FixedStep(Step):
    """The line of one forward pass: ``tokens`` places of which the first few may be used, over at most ``rows`` rows.

    What is not used is padding: its keys go to a slot of row 0 that nothing ever reads, and its output is 0.
    """

    def __init__(self, rows: int, tokens: int, trash: int, device: torch.device, attention: Attention):
        self.packed = True
        self._trash, self.attention = trash, attention
        sizes = [tokens, tokens, tokens, tokens, rows + 1, rows, 1]
        backend = device_of(device)
        self._host = torch.zeros(sum(sizes), dtype=torch.long, pin_memory=backend.is_asynchronous)
        self._device = torch.zeros_like(self._host, device=device)
        self._sizes = sizes
        self._copied = backend.event()
        parts = self._device.split(sizes)
        self.tokens, self.rows, self.token_slots, self.flat_positions, self.starts, self.last, self.prefix = parts
        self.load([], [], 0)

    @property
    def positions(self) -> Tensor:
        """Position ids ``[1, T]``."""
        positions: Tensor = self.flat_positions[None]
        return positions

    def true_tokens(self, per_token: Tensor) -> Tensor:
        """``[1, T, ...]`` -> ``[T, ...]``, padding included."""
        return per_token[0]

    def load(self, tokens: Sequence[Sequence[int]], starts: Sequence[int], prefix_length: int) -> None:
        """Row b's ``tokens[b]`` at absolute positions from ``starts[b]``; one copy to the device."""
        self._copied.synchronize()  # the last copy may still be waiting behind other work
        counts = [len(row) for row in tokens]
        total = sum(counts)
        flat, rows, slots, positions, edges, last, prefix = self._host.split(self._sizes)
        self._host.zero_()
        slots.fill_(self._trash)
        edges.fill_(total)
        last.fill_(max(0, total - 1))
        prefix.fill_(prefix_length)
        if total:
            count = torch.tensor(counts)
            ends = count.cumsum(0)
            owner = torch.repeat_interleave(torch.arange(len(counts)), count)
            flat[:total] = torch.tensor([token for row in tokens for token in row])
            rows[:total] = owner
            positions[:total] = torch.tensor(starts)[owner] + torch.arange(total) - (ends - count)[owner]
            slots[:total] = positions[:total] - prefix_length
            edges[0] = 0
            edges[1 : len(counts) + 1] = ends
            last[: len(counts)] = ends - 1
        self._device.copy_(self._host, non_blocking=True)
        self._copied.record()


class FixedLayer(RaggedLayer):
    """One layer's slabs ``[rows, heads, slots + 1, dim]``, and the prompt's store ``[1, heads, prompt, dim]``.

    While a prompt is read, its store takes the place of row 0's slab: then freezing it is no copy but a length.
    """

    owner: "FixedCache"

    def __init__(self, owner: "FixedCache"):
        super().__init__(owner)
        self.stores: Pair | None = None
        self.length = 0  # tokens in the stores

    @property
    def prefix(self) -> tuple[Tensor, Tensor] | None:
        if self.stores is None or self.length == 0:
            return None
        return self.stores[0][:, :, : self.length], self.stores[1][:, :, : self.length]

    @prefix.setter
    def prefix(self, pair: tuple[Tensor, Tensor] | None) -> None:
        self.length = 0
        if pair is not None:
            self.extend(pair)

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        room = self.owner.room
        self.keys, self.values = self._allocated(room.rows, room.slots + 1, key_states, value_states)
        self.stores = self._allocated(1, room.prompt, key_states, value_states)
        self.is_initialized = True

    def _allocated(self, rows: int, slots: int, *like: Tensor) -> Pair:
        """Empty room for keys and values like these."""
        keys, values = (
            states.new_zeros(rows, states.shape[1], slots, states.shape[3], dtype=self.owner.dtype or states.dtype)
            for states in like
        )
        return keys, values

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Write the line's keys and values; return all slabs, of which the step knows what is real."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        step, (keys, values) = self.owner.step, self.slabs()
        where = (step.rows, slice(None), step.token_slots)
        keys[where] = step.true_tokens(key_states.transpose(1, 2)).to(keys.dtype)
        values[where] = step.true_tokens(value_states.transpose(1, 2)).to(values.dtype)
        return keys, values

    def slabs(self) -> tuple[Tensor, Tensor]:
        if not self.owner.is_reading:
            return self.keys, self.values
        assert self.stores is not None
        return self.stores[0][:, :, self.length :], self.stores[1][:, :, self.length :]

    def freeze(self, length: int) -> None:
        self.length += length

    def take(self, row: int, length: int) -> tuple[Tensor, Tensor]:
        keys, values = self.slabs()
        slots = (slice(row, row + 1), slice(None), slice(0, length))
        return keys[slots].clone(), values[slots].clone()

    @torch.inference_mode()
    def extend(self, more: tuple[Tensor, Tensor]) -> None:
        """Keys and values ``[1, heads, n, dim]`` go on where the prompt ends."""
        count = more[0].shape[2]
        if self.length + count > self.owner.room.prompt:
            self.owner.make_room(self.owner.room.grown(prompt=self.length + count))
        assert self.stores is not None
        for store, part in zip(self.stores, more, strict=True):
            store[:, :, self.length : self.length + count] = part
        self.length += count

    def cut_prefix(self, length: int) -> None:
        self.length = length

    def empty(self) -> None:
        """Slabs are written over."""

    def _room_for(self, rows: int, slots: int) -> tuple[Tensor, Tensor]:
        return self.keys, self.values

    @torch.inference_mode()
    def keep(self, rows: Sequence[int]) -> None:
        if self.is_initialized and list(rows) != list(range(len(rows))):
            index = to_device(torch.tensor(rows, dtype=torch.long), self.keys.device)
            for slabs in (self.keys, self.values):
                slabs[: len(rows)] = slabs[index]

    @torch.inference_mode()
    def resize(self, room: Room) -> None:
        """Move to other room, with what is there and fits. Where memory runs out, all stays as it was."""
        if not self.is_initialized:
            return
        assert self.stores is not None
        slabs, stores = self._allocated(room.rows, room.slots + 1, self.keys, self.values), self.stores
        if room.prompt != stores[0].shape[2]:
            stores = self._allocated(1, room.prompt, self.keys, self.values)
        for new, old in zip(slabs, (self.keys, self.values), strict=True):
            rows, slots = min(len(new), len(old)), min(new.shape[2], old.shape[2]) - 1
            new[:rows, :, :slots] = old[:rows, :, :slots]
        for new, old in zip(stores, self.stores, strict=True):
            if new is not old:
                new[:, :, : self.length] = old[:, :, : self.length]
        (self.keys, self.values), self.stores = slabs, stores


class FixedCache(RaggedCache):
    """``RaggedCache`` in fixed room; ``is_reading`` while a prompt is read."""

    step: FixedStep

    def __init__(self, layers: int, room: Room, dtype: torch.dtype | None = None):
        super().__init__(0, dtype)
        self.room, self.is_reading = room, True
        self.layers = [FixedLayer(self) for _ in range(layers)]

    def make_room(self, room: Room) -> None:
        if room != self.room:
            for layer in self.layers:
                layer.resize(room)
            self.room = room  # not before: where memory runs out half-way, the old room fits into every layer

    def resume(self, match: PrefixMatch) -> None:
        """A prompt is coming: until it is frozen, tokens go to its store."""
        super().resume(match)
        self.is_reading = True

    def freeze(self, length: int) -> None:
        super().freeze(length)
        self.is_reading = False

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Inside, tokens go to the rows' slabs, whatever is read at the moment: for lines of padding to capture."""
        is_reading, self.is_reading = self.is_reading, False
        try:
            yield
        finally:
            self.is_reading = is_reading

    def forget(self) -> None:
        """Neither prompt nor rows; the room stays."""
        self.resume(PrefixMatch(0))

    def attend(self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, options: dict[str, Any]) -> Tensor:
        """See ``RaggedCache.attend``; lengths are read where the kernel runs."""
        layer, step = self.layers[module.layer_idx], self.step  # type: ignore[index]
        prefix = None if self.is_reading and layer.length == 0 else layer.stores
        if prefix is not None and hasattr(module, "expand_kv"):
            prefix = module.expand_kv(*prefix)  # type: ignore[operator]
        line = (step.starts, step.flat_positions, step.prefix)
        return step.attention(query[0].transpose(0, 1), prefix, (key, value), *line, **options)[None]
