"""A draft model on a GPU: its loop is one captured graph that feeds itself, and the host hears once, at the end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.sampler.acceptance import Coupled, Proposals, counter_of
from engine.sampler.device_model import DeviceModel
from engine.sampler.drafters.draft_model import DraftModelDrafter
from engine.sampler.penalties import has_penalty
from engine.sampler.stopping import Row
from engine.sampler.verdict import cuts_of_places
from kernels.acceptance.triton import Counter, draw
from kernels.philox import TOKEN

LIMIT = 32  # tokens that are ever drafted in one go


class DraftLoop:
    """Each replay reads every row's last draft and draws the next; tokens, slots and counters move on the device."""

    def __init__(self, model: DeviceModel):
        room, device = model.cache.room, model.device
        self._model = model
        self._step = model.new_step(room.rows)
        self._counter = Counter(*torch.zeros(3, room.rows, dtype=torch.long, device=device))
        self._cuts = torch.ones(room.rows, 4, device=device)
        self._active, self._depth = torch.zeros(2, room.rows, dtype=torch.long, device=device)
        self._drafts = torch.zeros(LIMIT, room.rows, dtype=torch.long, device=device)
        self._replay: Callable[[], object] = model.graphs.capture(self._one) or self._one

    def run(self, rows: Sequence[Row], first: Tensor, cuts: Tensor, length: int) -> Tensor:
        """Drafts int64 ``[length, rows]`` that go on from ``first`` int32 ``[rows]``, each row's first draft."""
        count, cache = len(rows), self._model.cache
        self._step.load([[0]] * count, [row.position for row in rows], cache.prefix_length)
        self._step.tokens[:count] = first
        for part, now in zip(self._counter, counter_of(rows, [1] * count, first.device), strict=True):
            part[:count] = now
        self._cuts[:count] = cuts
        self._active[:count], self._active[count:] = 1, 0
        self._depth.fill_(1)
        self._drafts[0, :count] = first
        for _ in range(length - 1):
            self._replay()
        return self._drafts[:length, :count]

    def _one(self) -> Tensor:
        step = self._step
        logits = self._model.run(step, last_only=False)[:, : self._model.vocabulary]
        tokens = draw(logits, self._cuts, self._counter, TOKEN).tokens.long()
        self._drafts.scatter_(0, self._depth[None], tokens[None])
        step.tokens.copy_(tokens)
        step.flat_positions.add_(self._active)
        step.token_slots.add_(self._active)
        self._counter.position.add_(1)
        self._depth.add_(1)
        return tokens


@dataclass
class LoopedDraftDrafter(DraftModelDrafter):
    """``DraftModelDrafter`` for the coupled rule on a GPU. Whatever the loop cannot do, the plain way does."""

    @torch.inference_mode()
    def propose(self, rows: Sequence[Row], counts: Sequence[int]) -> Proposals:
        length = min(max(counts, default=0), LIMIT)
        if length < 1 or not isinstance(self.rule, Coupled) or any(has_penalty(row.sampling) for row in rows):
            return super().propose(rows, counts)
        model = self.model
        assert isinstance(model, DeviceModel)
        slots = max(row.position for row in rows) + length - model.prompt_length
        model.make_room(model.cache.room.grown(rows=len(rows), slots=slots))
        self._fed += [[] for _ in rows[len(self._fed) :]]
        logits = self._advance(rows, [[] for _ in rows], list(range(len(rows))))
        cuts = cuts_of_places([row.place([]) for row in rows], logits.device)
        at = Counter(*(part.contiguous() for part in counter_of(rows, [0] * len(rows), logits.device)))
        first = draw(logits, cuts, at, TOKEN).tokens
        drafts = self._loop_over(model).run(rows, first, cuts, length).T.tolist()
        for index, (row, drafted) in enumerate(zip(rows, drafts, strict=True)):
            self._fed[index] = row.tokens + drafted[:-1]
        return Proposals([drafted[: max(0, count)] for drafted, count in zip(drafts, counts, strict=True)])

    @staticmethod
    def _loop_over(model: DeviceModel) -> DraftLoop:
        """Kept by the model, whose room it was captured over: the next run finds it there."""
        if model.draft_loop is None:
            model.draft_loop = DraftLoop(model)
        assert isinstance(model.draft_loop, DraftLoop)
        return model.draft_loop
