"""A model on a GPU: the same door as ``RaggedModel``, over memory that stays in place and graphs of its passes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from engine.sampler.cache import forward_over
from engine.sampler.fixed_cache import Attention, FixedCache, FixedStep, Room
from engine.sampler.graphs import Capture, CudaCapture, Graphs, Key, bucket
from engine.sampler.ragged_model import RaggedModel, is_spread
from kernels.attention import why_not

FIRST_ROOM = Room(rows=8, slots=512, prompt=1024)
OLDEST = (8, 0)  # compute capability: older ones have no bfloat16, and too little shared memory for the tiles
PREFILL_CHUNK = 2048  # a GPU reads more of a prompt in a tenth of a second than a CPU


def open_model(module: nn.Module, vocabulary: int, *, cache_dtype: torch.dtype | None = None) -> RaggedModel:
    """The fastest door that this machine has to ``module``; its ``note`` says what was given up, and why."""
    note = why_plain(module)
    device = next(module.parameters()).device
    if device.type == "cuda" and not note:
        from kernels.attention.triton import packed_attention

        torch.cuda.set_device(device)  # where this thread launches kernels, whichever GPU it is
        return DeviceModel(module, vocabulary, packed_attention, CudaCapture())
    model = RaggedModel(module, vocabulary, cache_dtype=cache_dtype)
    model.note = note
    return model


def why_plain(module: nn.Module) -> str:
    """Why a model on a GPU has to do without kernels and graphs; empty if it has not to, or is on no GPU."""
    if is_spread(module):
        return "The model is spread over several GPUs, so it runs without captured graphs and with plain attention."
    device = next(module.parameters()).device
    return (why_not() or why_too_old(torch.cuda.get_device_capability(device))) if device.type == "cuda" else ""


def why_too_old(capability: tuple[int, int]) -> str:
    """Why a GPU of that compute capability runs without kernels; empty if they are for it."""
    if capability >= OLDEST:
        return ""
    return "This GPU is older than Ampere, which the kernels are for, so attention runs in plain PyTorch."


class DeviceModel(RaggedModel):
    """``RaggedModel`` with a ``FixedCache``; ``attention`` and ``capture`` as the device has them.

    Logits of a captured pass are overwritten by the next one of the same size.
    """

    cache: FixedCache

    def __init__(
        self,
        module: nn.Module,
        vocabulary: int,
        attention: Attention,
        capture: Capture | None,
        *,
        room: Room = FIRST_ROOM,
    ):
        self._attention, self._room = attention, room
        self.graphs = Graphs(capture)
        self.draft_loop: object | None = None  # of ``drafters.draft_loop``, captured over this room
        super().__init__(module, vocabulary)
        self.is_asynchronous = self.device.type == "cuda"

    def clear(self) -> None:
        """Forget prompt and rows. The room, and the graphs that were captured over it, stay."""
        if hasattr(self, "cache"):
            self.cache.forget()
        else:
            self.cache = FixedCache(self.module.config.num_hidden_layers, self._room)  # type: ignore[union-attr, arg-type]
        self.forget_prompt()

    def prefill(
        self, prompt: Sequence[int], between_chunks: Callable[[int], bool] = lambda done: True
    ) -> Tensor | None:
        self.make_room(self.cache.room.grown(prompt=len(prompt)))
        return super().prefill(prompt, between_chunks)

    @property
    def chunk(self) -> int:
        return PREFILL_CHUNK

    @torch.inference_mode()
    def forward(self, tokens: Sequence[Sequence[int]], starts: Sequence[int], *, last_only: bool = False) -> Tensor:
        cache, total, rows = self.cache, sum(map(len, tokens)), len(tokens)
        if not cache.is_reading:
            slots = max(start + len(row) for start, row in zip(starts, tokens, strict=True)) - cache.prefix_length
            self.make_room(cache.room.grown(rows=rows, slots=slots))
        size = None if cache.is_reading else bucket(total)
        captured = None
        if size is not None:
            captured = self.graphs.find(Key(size, cache.room, last_only), self.new_step, self.run)
            self.note = self.graphs.reason
        if captured is None:
            step = FixedStep(1, total, 0, self.device, self._attention) if cache.is_reading else self.new_step(total)
            step.load(tokens, starts, cache.prefix_length)
            logits = self.run(step, last_only)
        else:
            captured.step.load(tokens, starts, cache.prefix_length)
            captured.replay()
            logits = captured.logits
        return logits[: rows if last_only else total, : self.vocabulary]

    def new_step(self, tokens: int) -> FixedStep:
        """A line of padding over all rows there is room for."""
        room = self.cache.room
        return FixedStep(room.rows, tokens, room.slots, self.device, self._attention)

    def run(self, step: FixedStep, last_only: bool) -> Tensor:
        """The pass itself, as it is captured: logits of every place of the line, or of each row's last."""
        choose = self._can_choose_logits and last_only
        options = {"logits_to_keep": step.last} if choose else {}
        with forward_over(self.cache, step):
            out = self.module(
                input_ids=step.tokens[None],
                position_ids=step.positions,
                use_cache=True,
                **{self._cache_keyword: self.cache},
                **options,
            )
        return out.logits[0][step.last] if last_only and not choose else out.logits[0]

    def release(self) -> None:
        self.make_room(replace(self.cache.room, rows=1, slots=self._room.slots))

    def make_room(self, room: Room) -> None:
        """Move to other room; graphs of the old one go."""
        if room != self.cache.room:
            self.graphs.clear()
            self.draft_loop = None
            self.cache.make_room(room)
