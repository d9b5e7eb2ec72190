"""Drafts from a second, smaller model of the same vocabulary: the drafter of the paper."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.contract import BadRequest, Request
from engine.sampler.acceptance import AcceptanceRule, Proposals, counter_of
from engine.sampler.budget import DraftBudget
from engine.sampler.device_model import DeviceModel
from engine.sampler.drafters import Drafter
from engine.sampler.drafters.timing import DraftTimer
from engine.sampler.openings import Line, read_behind
from engine.sampler.pair import LoadedPair
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.row import Row
from engine.sampler.sampling import Distributions, distributions
from engine.sampler.streams import to_device


@dataclass
class DraftModelDrafter(Drafter):
    """Autoregressive drafts with a ragged cache of their own.

    The cache may lag behind a row by any number of tokens (no drafts for a while, a correction, a fully accepted
    draft): ``_fed`` remembers what each row's slab really holds, and whatever is missing goes in with the first pass.
    """

    model: RaggedModel
    rule: AcceptanceRule
    name = "draft-model"
    draws = True
    _fed: list[list[int]] = field(default_factory=list)  # tokens behind the shared prompt, by row
    _timer: DraftTimer = field(default_factory=DraftTimer)

    def cost(self, rows: int, budget: DraftBudget) -> float:
        """A pass for each token of the row that drafts furthest."""
        return self._timer.seconds * max(budget.drawn, default=0)

    def begin(self, prompt: Sequence[int], between_chunks: Callable[[int], bool]) -> bool:
        self._fed = []
        return self.model.prefill(self._readable(prompt), between_chunks) is not None

    def read(self, rows: Sequence[Row], between_pieces: Callable[[], bool]) -> bool:
        """Openings, not to read them in the middle of a step; the rows before catch up on the way."""
        self._fed += [[] for _ in rows[len(self._fed) :]]
        new = [at for at, fed in enumerate(self._fed) if not fed]
        first = new[0] if new else len(rows)
        lines = [self._missing(at, row, row.own) for at, row in enumerate(rows[:first])]
        own = [row.own for row in rows]
        read = read_behind(self.model, lines, [self._readable(each) for each in own[first:]], between_pieces)
        if read is not None:
            self._fed = own
        return read is not None

    def reserve(self, rows: int, slots: int, prompt: int) -> None:
        self.model.reserve(rows, slots, prompt, last_only=True)

    def release(self) -> None:
        self._fed = []
        self.model.release()

    def keep(self, rows: Sequence[int]) -> None:
        self.model.keep(rows)
        # Rows that joined after the last proposal hold nothing yet.
        self._fed = [self._fed[index] if index < len(self._fed) else [] for index in rows]

    @torch.inference_mode()
    def propose(self, rows: Sequence[Row], budget: DraftBudget) -> Proposals:
        with self._timer.measuring(max(budget.drawn, default=0)):
            return self._draft(rows, budget.drawn)

    def _draft(self, rows: Sequence[Row], counts: Sequence[int]) -> Proposals:
        """``counts[b]`` tokens of row b, one pass after the other."""
        self._fed += [[] for _ in rows[len(self._fed) :]]
        drafts: list[list[int]] = [[] for _ in rows]
        q_steps: list[tuple[list[int], Distributions]] = []
        while active := [index for index, count in enumerate(counts) if len(drafts[index]) < count]:
            logits = self._advance(rows, drafts, active)
            q = distributions(logits, [rows[i].place(drafts[i]) for i in active])
            counter = counter_of([rows[i] for i in active], [len(drafts[i]) for i in active], logits.device)
            for index, token in zip(active, self.rule.draw_draft(q, counter).tolist(), strict=True):
                drafts[index].append(token)
            q_steps.append((active, q))
        return Proposals(drafts, _in_line_order(q_steps, drafts) if q_steps else None)

    def _advance(self, rows: Sequence[Row], drafts: list[list[int]], active: list[int]) -> Tensor:
        """Logits ``[len(active), V]`` after each active row's last draft; catches up whatever its slab lacks.

        The forward pass works on the first rows of the cache, so rows between active ones are fed along: their last
        token again, in the same slot, which changes nothing.
        """
        count = active[-1] + 1
        lines, starts = [], []
        for index in range(count):
            wanted = rows[index].own + drafts[index]
            line = self._missing(index, rows[index], wanted)
            lines.append(line.tokens)
            starts.append(line.start)
            self._fed[index] = wanted
        logits = self.model.forward(lines, starts, last_only=True).logits
        return logits if len(active) == count else logits[active]

    def _missing(self, index: int, row: Row, wanted: list[int]) -> Line:
        """What the slab of row ``index`` lacks of ``wanted``, behind the shared prompt; the last token at least."""
        known = min(_common_length(self._fed[index], wanted), len(wanted) - 1)
        return Line(self._readable(wanted[known:]), row.shared_length + known)

    def _readable(self, tokens: Sequence[int]) -> list[int]:
        """The tokens with those that the draft has no embedding for (a smaller vocabulary) as id 0.

        What the draft then guesses is worse; what is accepted is judged by the target anyway.
        """
        size = self.model.module.get_input_embeddings().num_embeddings
        return [token if token < size else 0 for token in tokens]


def _common_length(a: list[int], b: list[int]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _in_line_order(q_steps: list[tuple[list[int], Distributions]], drafts: list[list[int]]) -> Distributions:
    """Drafting goes token by token over rows; the verify line goes row by row over tokens."""
    width = max(q.ids.shape[1] for _, q in q_steps)
    starts = [0]
    for row in drafts:
        starts.append(starts[-1] + len(row))
    like = q_steps[0][1]
    ids = like.ids.new_zeros(starts[-1], width)
    log_probs = like.log_probs.new_full(ids.shape, float("-inf"))
    for depth, (active, q) in enumerate(q_steps):
        at = to_device(torch.tensor([starts[index] + depth for index in active]), ids.device)
        ids[at, : q.ids.shape[1]] = q.ids
        log_probs[at, : q.ids.shape[1]] = q.log_probs
    return Distributions(ids, log_probs)


def drafter_over(model: RaggedModel, rule: AcceptanceRule) -> DraftModelDrafter:
    """The fastest one that ``model``'s device has."""
    if isinstance(model, DeviceModel) and model.has_kernels:
        from engine.sampler.drafters.draft_loop import LoopedDraftDrafter  # needs triton

        return LoopedDraftDrafter(model, rule)
    return DraftModelDrafter(model, rule)


def open_draft_model(pair: LoadedPair, request: Request, rule: AcceptanceRule) -> DraftModelDrafter:
    if pair.ragged_draft is None:
        raise BadRequest("No draft model is loaded; name one with --draft, or choose the suffix drafter.")
    return drafter_over(pair.ragged_draft, rule)
