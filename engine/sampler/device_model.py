"""A model on a GPU: the same interface as ``RaggedModel``, over memory that stays in place and graphs of its passes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.backends.device import Capture
from engine.backends.memory import lack_of_memory
from engine.backends.registry import device_of
from engine.models.causal_lm import CausalLM
from engine.models.room import Room, bucket
from engine.sampler.cache import forward_over
from engine.sampler.faults import first_line
from engine.sampler.fixed_cache import Attention, FixedCache, FixedStep
from engine.sampler.forward_pass import NO_FEATURES, Features, Pass
from engine.sampler.graphs import Graphs, Key
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.verdict import DeviceVerifier, Verifier
from kernels.attention.torch import packed_attention as plain_attention

FIRST_ROOM = Room(rows=8, slots=512, prompt=1024)
PREFILL_CHUNK = 2048  # a GPU reads more of a prompt in a tenth of a second than a CPU


class DeviceModel(RaggedModel):
    """``RaggedModel`` with a ``FixedCache``; ``attention`` and ``capture`` as the device has them.

    ``has_kernels``: verdicts and drafts are reached by the device's kernels, too. ``steps_down``: it was tried when it
    was loaded, and what fails later is not the model's fault. Logits of a captured pass are overwritten by the next one
    of the same size.
    """

    cache: FixedCache
    steps_down = False

    def __init__(
        self,
        module: CausalLM,
        vocabulary: int,
        attention: Attention,
        capture: Capture | None,
        *,
        room: Room = FIRST_ROOM,
        has_kernels: bool | None = None,
    ):
        self._attention, self._room = attention, room
        self.graphs = Graphs(capture)
        self.draft_loop: object | None = None  # of ``drafters.draft_loop``, captured over this room
        super().__init__(module, vocabulary)
        self.is_asynchronous = device_of(self.device).is_asynchronous
        self.has_kernels = self.is_asynchronous if has_kernels is None else has_kernels

    @property
    def verifier(self) -> Verifier:
        return DeviceVerifier() if self.has_kernels else super().verifier

    @property
    def place(self) -> str:
        return f"{super().place} {'captured' if self.graphs.are_on else 'eager'}"

    def clear(self) -> None:
        """Forget prompt and rows. The room, and the graphs that were captured over it, stay."""
        if hasattr(self, "cache"):
            self.cache.forget()
        else:
            self.cache = FixedCache(self.module.config.num_hidden_layers, self._room)
        self.forget_prompt()

    def prefill(
        self,
        prompt: Sequence[int],
        between_chunks: Callable[[int], bool] = lambda done: True,
        features: Features = NO_FEATURES,
    ) -> Pass | None:
        self.make_room(self.cache.room.grown(prompt=len(prompt)))
        return super().prefill(prompt, between_chunks, features)

    @torch.inference_mode()
    def reserve(self, rows: int, slots: int, prompt: int, *, last_only: bool = False) -> None:
        """Make room for so much, and capture what will be asked of it, so that no step on the way has to.

        ``last_only``: only each row's last logits will be. A lack of memory is raised.
        """
        self.make_room(self.cache.room.grown(rows, slots, prompt))
        room = self.cache.room
        with self.cache.decoding():
            self.graphs.prepare([Key(size, room, last_only) for size in room.lines], self.new_step, self.run)
        self.note = self.graphs.reason or self.note

    @property
    def chunk(self) -> int:
        return PREFILL_CHUNK

    def forward(
        self,
        tokens: Sequence[Sequence[int]],
        starts: Sequence[int],
        *,
        last_only: bool = False,
        features: Features = NO_FEATURES,
    ) -> Pass:
        """See ``RaggedModel.forward``. A kernel that fails in larger room than it was tried in gives way for good."""
        try:
            return self._forward(tokens, starts, last_only)
        except Exception as error:
            if not self.steps_down or lack_of_memory(error) is not None:
                raise
            self.steps_down = False
            self._attention, self.graphs, self.draft_loop = plain_attention, Graphs(None), None
            self.note = f"Attention went on in plain PyTorch after a kernel failed ({first_line(error)})."
        return self._forward(tokens, starts, last_only)  # what the first try has written is written again

    @torch.inference_mode()
    def _forward(self, tokens: Sequence[Sequence[int]], starts: Sequence[int], last_only: bool) -> Pass:
        cache, total, rows = self.cache, sum(map(len, tokens)), len(tokens)
        if not cache.is_reading:
            slots = max(start + len(row) for start, row in zip(starts, tokens, strict=True)) - cache.prefix_length
            self.make_room(cache.room.grown(rows=rows, slots=slots))
        size = None if cache.is_reading else bucket(total)
        captured = None
        if size is not None:
            captured = self.graphs.find(Key(size, cache.room, last_only), self.new_step, self.run)
            self.note = self.graphs.reason or self.note
        if captured is None:
            step = FixedStep(1, total, 0, self.device, self._attention) if cache.is_reading else self.new_step(total)
            step.load(tokens, starts, cache.prefix_length)
            logits = self.run(step, last_only)
        else:
            captured.step.load(tokens, starts, cache.prefix_length)
            captured.replay()
            logits = captured.logits
        return Pass(logits[: rows if last_only else total, : self.vocabulary])

    def new_step(self, tokens: int) -> FixedStep:
        """A line of padding over all rows there is room for."""
        room = self.cache.room
        return FixedStep(room.rows, tokens, room.slots, self.device, self._attention)

    def run(self, step: FixedStep, last_only: bool) -> Tensor:
        """The pass itself, as it is captured: logits of every place of the line, or of each row's last."""
        choose = self.can_choose_logits and last_only
        options = {"logits_to_keep": step.last} if choose else {}
        with forward_over(self.cache, step):
            out = self.module(
                input_ids=step.tokens[None],
                position_ids=step.positions,
                use_cache=True,
                **{self._cache_keyword: self.cache},
                **options,
            )
        logits: Tensor = out.logits[0]
        return logits[step.last] if last_only and not choose else logits

    def _hold(self, rows: int, slots: int) -> None:
        self.make_room(self.cache.room.grown(rows, slots))

    def release(self) -> None:
        """The room of the first rows, too: what is asked for next is asked of all the memory there is."""
        self.make_room(replace(self.cache.room, rows=1, slots=self._room.slots))

    def make_room(self, room: Room) -> None:
        """Move to other room; graphs of the old one go."""
        if room != self.cache.room:
            self.graphs.clear()
            self.draft_loop = None
            self.cache.make_room(room)
