"""One round of batched speculative sampling, as the papers write it: plan, draft, verify, accept, commit.

BASS: Batched Attention-optimized Speculative Sampling (arXiv 2404.15778), over one shared copy of the prompt's
keys and values (Bifurcated attention, arXiv 2403.08845).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

import torch

from engine.sampler.acceptance import AcceptanceRule, Proposals, VerifyLine
from engine.sampler.cost_table import CostTable
from engine.sampler.drafters import Drafter
from engine.sampler.forward_pass import Pass
from engine.sampler.openings import Line, read_behind
from engine.sampler.policies import DraftOutcome, Policy, StepTimes
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.row import Row
from engine.sampler.streams import Stopwatch
from engine.sampler.verdict import PendingVerdict, Verdict


@dataclass(frozen=True)
class StepRecord:
    """What one step did: ``drafted`` and ``committed`` tokens over all ``rows``.

    ``seconds`` it took; ``regular_seconds`` a step without drafts takes with so many rows, as the cost table knows it.
    """

    rows: int
    drafted: int
    committed: int
    seconds: float
    regular_seconds: float


@dataclass(frozen=True)
class InFlightStep:
    """A step that was launched and not yet committed: which rows, what was guessed, and the verdict to come."""

    rows: list[Row]
    proposals: Proposals
    verdict: PendingVerdict
    verified: Pass
    draft_seconds: float
    verifying: Stopwatch


class Decoder:
    """The rows of one run. Rows come and go between steps; what a row says depends on no other row.

    A step that was launched before they do is forgotten and launched again: it has changed nothing that lasts.
    """

    def __init__(
        self,
        target: RaggedModel,
        drafter: Drafter,
        policy: Policy,
        rule: AcceptanceRule,
        costs: CostTable,
    ):
        self.target, self.drafter, self.policy, self.rule = target, drafter, policy, rule
        self.costs = costs  # learns from every step, whichever policy decides its size
        self.rows: list[Row] = []
        self._in_flight: InFlightStep | None = None

    def join(self, rows: Sequence[Row], prompt: Pass, between_pieces: Callable[[], bool] = lambda: True) -> bool:
        """New rows start behind the prompt; each draws its first token from the pass over the prompt's last token.

        A row that begins with an opening reads that first, and one that was taken out by ``release`` what it had said;
        False, and nobody has joined, if ``between_pieces`` said to stop meanwhile.
        """
        self._in_flight = None
        reading, new = [row for row in rows if row.own], [row for row in rows if not row.own]
        if reading:
            read = self._read_own(reading, between_pieces)
            if read is None:
                return False
            self._draw_first(reading, read)
        self._draw_first(new, prompt.repeated(len(new)))
        self.rows += reading + new
        return True

    def _read_own(self, rows: Sequence[Row], between_pieces: Callable[[], bool]) -> Pass | None:
        """Fill the slabs behind the present rows, which feed their last token along, as the next step will."""
        present = [Line(row.tokens[-1:], row.position - 1) for row in self.rows]
        own = [row.own for row in rows]
        read = read_behind(self.target, present, own, between_pieces, self.drafter.needs)
        return read if read and self.drafter.read([*self.rows, *rows], between_pieces) else None

    def _draw_first(self, rows: Sequence[Row], prompts: Pass) -> None:
        """``prompts``: the pass over the last token before each row. Rows that go on, or were ended, draw nothing."""
        drawing = [at for at, row in enumerate(rows) if not row.tokens and not row.stop_reason]
        if drawing:
            new, of_each = [rows[at] for at in drawing], prompts.of(drawing)
            nothing = Proposals([[] for _ in new])
            verdict = self._verify(new, nothing, of_each).wait()
            self._commit(new, nothing, verdict)
            self._show(new, nothing, verdict, of_each)

    def reserve(self, rows: int, slots: int, prompt: int) -> None:
        """Room for what is to come, made once: ``rows`` at a time of at most ``slots`` tokens behind ``prompt`` tokens.

        A lack of memory is raised.
        """
        self.target.reserve(rows, slots, prompt)
        self.drafter.reserve(rows, slots, prompt)

    def release(self) -> list[Row]:
        """Take every row out and let its memory go, and the drafter's."""
        rows, self.rows, self._in_flight = self.rows, [], None
        self.target.release()
        self.drafter.release()
        return rows

    def leave(self) -> list[Row]:
        """Take the ended rows out of the batch, and give them back."""
        ended = [row for row in self.rows if row.stop_reason]
        if ended:
            self._in_flight = None
            staying = [index for index, row in enumerate(self.rows) if not row.stop_reason]
            for index, row in enumerate(self.rows):
                if row.stop_reason and row.tokens:
                    self.target.remember(index, row.own)
            self.target.keep(staying)
            self.drafter.keep(staying)
            self.rows = [self.rows[index] for index in staying]
        return ended

    @torch.inference_mode()
    def launch(self) -> None:
        """Plan, draft and verify. A GPU may still be at it afterwards; whoever has other work can do it meanwhile."""
        rows, start = list(self.rows), time.perf_counter()
        self.costs.context = sum(row.position for row in rows) // len(rows)
        budget = self.policy.budget(rows).within(rows)
        proposals = self.policy.prune(self._known(self.drafter.propose(rows, budget)))
        drafted = time.perf_counter()
        verifying = Stopwatch(self.target.device)
        verified = self.target.forward(
            [[row.tokens[-1], *drafts] for row, drafts in zip(rows, proposals.tokens, strict=True)],
            [row.position - 1 for row in rows],
            features=self.drafter.needs,
        )
        verdict = self._verify(rows, proposals, verified)
        verifying.stop()
        self._in_flight = InFlightStep(rows, proposals, verdict, verified, drafted - start, verifying)

    @torch.inference_mode()
    def step(self) -> StepRecord:
        """Every row gains at least one token; those that end stay until ``leave``."""
        if self._in_flight is None:
            self.launch()
        in_flight, self._in_flight = self._in_flight, None
        assert in_flight is not None
        rows, tokens = in_flight.rows, in_flight.proposals.tokens
        before = sum(len(row.tokens) for row in rows)
        verdict = in_flight.verdict.wait()
        arrived = time.perf_counter()
        outcomes = self._commit(rows, in_flight.proposals, verdict)
        self._show(rows, in_flight.proposals, verdict, in_flight.verified)
        verify = in_flight.verifying.seconds + time.perf_counter() - arrived
        times = StepTimes(draft=in_flight.draft_seconds, verify=verify)
        self.policy.observe(
            [outcome for row, outcome in zip(rows, outcomes, strict=True) if not row.stop_reason], times
        )
        drafted = sum(map(len, tokens))
        self.costs.refine(len(rows) + drafted, times.verify)
        return StepRecord(
            rows=len(rows),
            drafted=drafted,
            committed=sum(len(row.tokens) for row in rows) - before,
            seconds=times.draft + times.verify,
            regular_seconds=self.costs.seconds(len(rows)),
        )

    def _known(self, proposals: Proposals) -> Proposals:
        """Without guesses, copied from a prompt perhaps, that the target has no logit for, and what follows them."""
        last = self.target.vocabulary - 1
        if max((max(row, default=0) for row in proposals.tokens), default=0) <= last:
            return proposals
        return proposals.cut([sum(1 for _ in takewhile(lambda id_: id_ <= last, row)) for row in proposals.tokens])

    def _verify(self, rows: Sequence[Row], proposals: Proposals, verified: Pass) -> PendingVerdict:
        """Which drafts stay, and what follows them."""
        line = VerifyLine.of(rows, proposals, verified.logits.device)
        return self.target.verifier.verify(verified.logits, line, len(rows), proposals.q, self.rule)

    def _commit(self, rows: Sequence[Row], proposals: Proposals, verdict: Verdict) -> list[DraftOutcome]:
        """Give each row the drafts that stay and the target's next token."""
        outcomes, start = [], 0
        for index, (row, drafts, count, token) in enumerate(
            zip(rows, proposals.tokens, verdict.accepted, verdict.tokens, strict=True)
        ):
            row.commit([*drafts[:count], token], verdict.scores[start : start + count + 1], proposed=len(drafts))
            outcomes.append(DraftOutcome(row.candidate, len(drafts), count, drawn=proposals.drawn(index)))
            start += len(drafts) + 1
        return outcomes

    def _show(self, rows: Sequence[Row], proposals: Proposals, verdict: Verdict, verified: Pass) -> None:
        """Let the drafter see in which states the last tokens were drawn, if the pass kept them."""
        if verified.hidden is None:
            return
        starts = accumulate((len(drafts) + 1 for drafts in proposals.tokens), initial=0)
        drawn_at = [start + count for start, count in zip(starts, verdict.accepted, strict=False)]
        self.drafter.observe(rows, verified.hidden[drawn_at])
