"""A draft model on a GPU: its loop is one captured graph that feeds itself; the host gets the tokens at the end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.models.memory_plan import DRAWN_BYTES
from engine.sampler.acceptance import Proposals, counter_of
from engine.sampler.device_model import DeviceModel
from engine.sampler.drafters.draft_model import DraftModelDrafter
from engine.sampler.penalties import has_penalty
from engine.sampler.row import Row
from engine.sampler.sampling import Distributions
from engine.sampler.streams import to_device
from engine.sampler.verdict import cuts_of_places
from kernels.acceptance.triton import Counter, Drawn, draw

LIMIT = 32  # tokens that are ever drafted in one go


class DraftLoop:
    """Each replay reads every row's last draft and draws the next; tokens, slots and counters move on the device.

    ``depths``: drafts of which it keeps what they were drawn from, 0 for a rule that does not ask for it; ``draws_by``:
    see ``AcceptanceRule``.
    """

    def __init__(self, model: DeviceModel, depths: int, draws_by: int):
        room, device = model.cache.room, model.device
        self._model, self.depths, self.draws_by = model, depths, draws_by
        self._q = torch.empty(depths, room.rows, model.vocabulary, device=device)
        self._step = model.new_step(room.rows)
        self._counter = Counter(*torch.zeros(3, room.rows, dtype=torch.long, device=device))
        self._cuts = torch.ones(room.rows, 4, device=device)
        self._feeds, self._depth = torch.zeros(2, room.rows, dtype=torch.long, device=device)
        self._drafts = torch.zeros(LIMIT, room.rows, dtype=torch.long, device=device)
        with model.cache.decoding():
            self._replay: Callable[[], object] = model.graphs.capture(self._one) or self._one

    def run(self, rows: Sequence[Row], first: Drawn, counts: Sequence[int]) -> Tensor:
        """Drafts int64 ``[longest, rows]`` that go on from ``first``, each row's first draft.

        Of row b the first ``counts[b]`` mean something. Its last draft is not fed, nor is anything behind it: there may
        be no slot, and no position, for more.
        """
        count, cache, length = len(rows), self._model.cache, max(counts)
        self._step.load([[0]] * count, [row.position for row in rows], cache.prefix_length)
        self._step.tokens[:count] = first.tokens
        for part, now in zip(self._counter, counter_of(rows, [1] * count, self._cuts.device), strict=True):
            part[:count] = now
        self._cuts[:count] = first.cuts
        self._feeds[:count] = to_device(torch.tensor(counts) - 1, self._feeds.device)
        self._feeds[count:] = 0
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
        drawn = draw(logits, self._cuts, self._counter, self.draws_by)
        if self.depths:
            deepest = self._depth[:1].clamp(max=self.depths - 1)  # the passes of a warm-up may go beyond it
            self._q.index_copy_(0, deepest, drawn.log_probs()[None])
        tokens = drawn.tokens.long()
        self._drafts.scatter_(0, self._depth[None], tokens[None])
        # A row that is through feeds its last token again, in the same slot, which changes nothing.
        goes_on = self._depth < self._feeds
        step.tokens.copy_(torch.where(goes_on, tokens, step.tokens))
        step.flat_positions.add_(goes_on)
        step.token_slots.add_(goes_on)
        self._counter.position.add_(1)
        self._depth.add_(1)
        return tokens

    def q(self, counts: Sequence[int]) -> Distributions:
        """What each row's first ``counts[b]`` drafts of the last run were drawn from, row after row."""
        places = [(depth, row) for row, count in enumerate(counts) for depth in range(count)]
        depths, rows = to_device(torch.tensor(places).T.contiguous(), self._q.device)
        ids = torch.arange(self._q.shape[2], device=self._q.device)
        return Distributions(ids.expand(len(places), -1), self._q[depths, rows])


@dataclass
class LoopedDraftDrafter(DraftModelDrafter):
    """``DraftModelDrafter`` on a GPU. What the loop cannot do, penalties, the plain way does."""

    @torch.inference_mode()
    def reserve(self, rows: int, slots: int, prompt: int) -> None:
        super().reserve(rows, slots, prompt)
        assert isinstance(self.model, DeviceModel)
        self._loop_over(self.model)

    def _draft(self, rows: Sequence[Row], counts: Sequence[int]) -> Proposals:
        model = self.model
        assert isinstance(model, DeviceModel)
        most = self._most(model.vocabulary, model.cache.room.grown(rows=len(rows)).rows)
        counts = [min(max(0, count), most) for count in counts]
        if max(counts, default=0) < 1 or any(has_penalty(row.sampling) for row in rows):
            return super()._draft(rows, counts)
        feeds = [max(1, count - 1) for count in counts]
        slots = max(row.position + fed for row, fed in zip(rows, feeds, strict=True)) - model.prompt_length
        model.make_room(model.cache.room.grown(rows=len(rows), slots=slots))
        self._fed += [[] for _ in rows[len(self._fed) :]]
        logits = self._advance(rows, [[] for _ in rows], list(range(len(rows))))
        cuts = cuts_of_places([row.place([]) for row in rows], logits.device)
        at = Counter(*(part.contiguous() for part in counter_of(rows, [0] * len(rows), logits.device)))
        loop = self._loop_over(model)
        first = draw(logits, cuts, at, self.rule.draws_by)
        drafts = loop.run(rows, first, counts).T.tolist()
        if max(counts) > 1:
            for index, (row, drafted) in enumerate(zip(rows, drafts, strict=True)):
                self._fed[index] = row.own + drafted[: feeds[index]]
        tokens = [drafted[:count] for drafted, count in zip(drafts, counts, strict=True)]
        return Proposals(tokens, loop.q(counts) if self.rule.needs_q else None)

    def _most(self, vocabulary: int, rows: int) -> int:
        """Drafts per row. What they were drawn from, a number for every id, is kept for a rule that asks for it."""
        return min(LIMIT, max(1, DRAWN_BYTES // (4 * vocabulary * rows))) if self.rule.needs_q else LIMIT

    def _loop_over(self, model: DeviceModel) -> DraftLoop:
        """Kept by the model, whose room it was captured over: the next run finds it there."""
        loop, rows = model.draft_loop, model.cache.room.rows
        depths = self._most(model.vocabulary, rows) if self.rule.needs_q else 0
        if not isinstance(loop, DraftLoop) or (loop.depths, loop.draws_by) != (depths, self.rule.draws_by):
            model.draft_loop = None  # two of them need not fit
            model.draft_loop = loop = DraftLoop(model, depths, self.rule.draws_by)
        return loop
