"""A draft model on a GPU: its loop is one captured graph that feeds itself, and the host hears once, at the end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.sampler.acceptance import Coupled, Proposals, counter_of
from engine.sampler.device_model import DeviceModel
from engine.sampler.drafters.draft_model import DraftModelDrafter
from engine.sampler.graphs import WARM_UPS
from engine.sampler.penalties import has_penalty
from engine.sampler.sampling import Distributions
from engine.sampler.stopping import Row
from engine.sampler.streams import sent
from engine.sampler.verdict import cuts_of_places
from kernels.acceptance.triton import Counter, Drawn, draw
from kernels.philox import DRAFT, TOKEN

LIMIT = 32  # tokens that are ever drafted in one go


class DraftLoop:
    """Each replay reads every row's last draft and draws the next; tokens, slots and counters move on the device.

    ``depths``: drafts of which it keeps what they were drawn from, for the rejection rule; 0 for the coupled one.
    """

    def __init__(self, model: DeviceModel, depths: int):
        room, device = model.cache.room, model.device
        self._model, self.depths = model, depths
        self._q = torch.empty(depths, room.rows, model.vocabulary, device=device)
        self._step = model.new_step(room.rows)
        self._counter = Counter(*torch.zeros(3, room.rows, dtype=torch.long, device=device))
        self._cuts = torch.ones(room.rows, 4, device=device)
        self._active, self._depth = torch.zeros(2, room.rows, dtype=torch.long, device=device)
        self._drafts = torch.zeros(LIMIT, room.rows, dtype=torch.long, device=device)
        self._replay: Callable[[], object] = model.graphs.capture(self._one) or self._one

    def run(self, rows: Sequence[Row], first: Drawn, length: int) -> Tensor:
        """Drafts int64 ``[length, rows]`` that go on from ``first``, each row's first draft."""
        count, cache = len(rows), self._model.cache
        self._step.load([[0]] * count, [row.position for row in rows], cache.prefix_length)
        self._step.tokens[:count] = first.tokens
        for part, now in zip(self._counter, counter_of(rows, [1] * count, self._cuts.device), strict=True):
            part[:count] = now
        self._cuts[:count] = first.cuts
        self._active[:count], self._active[count:] = 1, 0
        self._depth.fill_(1)
        self._drafts[0, :count] = first.tokens
        if self.depths:
            self._q[0, :count] = first.log_probs()
        for _ in range(length - 1):
            self._replay()
        return self._drafts[:length, :count]

    def _one(self) -> Tensor:
        step = self._step
        logits = self._model.run(step, last_only=False)[:, : self._model.vocabulary]
        drawn = draw(logits, self._cuts, self._counter, DRAFT if self.depths else TOKEN)
        if self.depths:
            self._q.index_copy_(0, self._depth[:1], drawn.log_probs()[None])
        tokens = drawn.tokens.long()
        self._drafts.scatter_(0, self._depth[None], tokens[None])
        step.tokens.copy_(tokens)
        step.flat_positions.add_(self._active)
        step.token_slots.add_(self._active)
        self._counter.position.add_(1)
        self._depth.add_(1)
        return tokens

    def q(self, counts: Sequence[int]) -> Distributions:
        """What each row's first ``counts[b]`` drafts of the last run were drawn from, row after row."""
        places = [(depth, row) for row, count in enumerate(counts) for depth in range(count)]
        depths, rows = sent(torch.tensor(places).T.contiguous(), self._q.device)
        ids = torch.arange(self._q.shape[2], device=self._q.device)
        return Distributions(ids.expand(len(places), -1), self._q[depths, rows])


@dataclass
class LoopedDraftDrafter(DraftModelDrafter):
    """``DraftModelDrafter`` on a GPU. What the loop cannot do, penalties, the plain way does."""

    @torch.inference_mode()
    def propose(self, rows: Sequence[Row], counts: Sequence[int]) -> Proposals:
        counts = [min(max(0, count), LIMIT) for count in counts]
        length = max(counts, default=0)
        if length < 1 or any(has_penalty(row.sampling) for row in rows):
            return super().propose(rows, counts)
        model = self.model
        assert isinstance(model, DeviceModel)
        slots = max(row.position for row in rows) + length - model.prompt_length
        model.make_room(model.cache.room.grown(rows=len(rows), slots=slots))
        self._fed += [[] for _ in rows[len(self._fed) :]]
        logits = self._advance(rows, [[] for _ in rows], list(range(len(rows))))
        cuts = cuts_of_places([row.place([]) for row in rows], logits.device)
        at = Counter(*(part.contiguous() for part in counter_of(rows, [0] * len(rows), logits.device)))
        is_coupled = isinstance(self.rule, Coupled)
        loop = self._loop_over(model, 0 if is_coupled else length)
        first = draw(logits, cuts, at, TOKEN if is_coupled else DRAFT)
        drafts = loop.run(rows, first, length).T.tolist()
        for index, (row, drafted) in enumerate(zip(rows, drafts, strict=True)):
            self._fed[index] = row.tokens + drafted[:-1]
        tokens = [drafted[:count] for drafted, count in zip(drafts, counts, strict=True)]
        return Proposals(tokens, None if is_coupled else loop.q(counts))

    @staticmethod
    def _loop_over(model: DeviceModel, depths: int) -> DraftLoop:
        """Kept by the model, whose room it was captured over: the next run finds it there, if it keeps as much."""
        loop = model.draft_loop
        if not isinstance(loop, DraftLoop) or bool(loop.depths) != bool(depths) or loop.depths < depths:
            most = max(depths, WARM_UPS + 1)  # the warm-up goes as deep
            model.draft_loop = loop = DraftLoop(model, depths and 1 << (most - 1).bit_length())
        return loop
