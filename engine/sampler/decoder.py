"""One round of batched speculative sampling, as the papers write it: plan, draft, verify, accept, commit.

BASS: Batched Attention-optimized Speculative Sampling (arXiv 2404.15778), over one shared copy of the prompt's
keys and values (Bifurcated attention, arXiv 2403.08845).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

import torch
from torch import Tensor

from engine.sampler.acceptance import AcceptanceRule, Proposals, VerifyLine
from engine.sampler.cost_table import CostTable
from engine.sampler.drafters import Drafter
from engine.sampler.policies import Outcome, Policy, StepTimes
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.stopping import Row
from engine.sampler.streams import Stopwatch
from engine.sampler.verdict import Judged, Verdict, judge


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
class Flight:
    """A step that was launched and not yet committed: which rows, what was guessed, and the verdict to come."""

    rows: list[Row]
    proposals: Proposals
    verdict: Judged
    hidden: Tensor | None
    draft_seconds: float
    verifying: Stopwatch


class Decoder:
    """The rows of one run. Rows come and go between steps; what a row says depends on no other row.

    A step that was launched before they do is forgotten and launched anew: it has changed nothing that lasts.
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
        self._flight: Flight | None = None

    def join(self, rows: Sequence[Row], prompt_logits: Tensor) -> None:
        """New rows start behind the prompt; each draws its first token from the prompt's last logits ``[1, V]``.

        A row that was taken out by ``release`` goes on where it was.
        """
        self._flight = None
        back, new = [row for row in rows if row.tokens], [row for row in rows if not row.tokens]
        if back:
            self._read_again(back)
        if new:
            nothing = Proposals([[] for _ in new])
            verdict = self._judge(new, prompt_logits.expand(len(new), -1), nothing).wait()
            hidden = self.target.prompt_hidden
            self._commit(new, nothing, verdict)
            self._show(new, nothing, verdict, None if hidden is None else hidden.expand(len(new), -1))
        self.rows += back + new

    def _read_again(self, rows: Sequence[Row]) -> None:
        """Fill the slabs behind the present rows: row by row, and of a long one a piece at a time, as of a prompt.

        This comes after a lack of memory. All rows before are fed their last token along, as the next step will.
        """
        before = list(self.rows)
        for row in rows:
            lines, starts = [[other.tokens[-1]] for other in before], [other.position - 1 for other in before]
            for start in range(0, len(row.tokens), self.target.chunk):
                piece = row.tokens[start : start + self.target.chunk]
                self.target.forward([*lines, piece], [*starts, row.prompt_length + start], last_only=True)
            before.append(row)

    def reserve(self, rows: int, slots: int, prompt: int) -> None:
        """Room for what is to come, made once: ``rows`` at a time of at most ``slots`` tokens behind ``prompt`` tokens.

        A lack of memory is raised.
        """
        self.target.reserve(rows, slots, prompt)
        self.drafter.reserve(rows, slots, prompt)

    def release(self) -> list[Row]:
        """Take every row out and let its memory go, and the drafter's."""
        rows, self.rows, self._flight = self.rows, [], None
        self.target.release()
        self.drafter.release()
        return rows

    def leave(self) -> list[Row]:
        """Take the ended rows out of the batch, and give them back."""
        ended = [row for row in self.rows if row.stop_reason]
        if ended:
            self._flight = None
            staying = [index for index, row in enumerate(self.rows) if not row.stop_reason]
            for index, row in enumerate(self.rows):
                if row.stop_reason and row.tokens:
                    self.target.remember(index, row.tokens)
            self.target.keep(staying)
            self.drafter.keep(staying)
            self.rows = [self.rows[index] for index in staying]
        return ended

    @torch.inference_mode()
    def launch(self) -> None:
        """Plan, draft and verify. A GPU may still be at it afterwards; whoever has other work can do it meanwhile."""
        rows, start = list(self.rows), time.perf_counter()
        self.costs.context = sum(row.position for row in rows) // len(rows)
        # No draft beyond the last token that may be committed; the target's own token needs one place.
        counts = [min(count, row.room - 1) for count, row in zip(self.policy.plan(rows), rows, strict=True)]
        proposals = self.policy.choose(self._known(self.drafter.propose(rows, counts)))
        drafted = time.perf_counter()
        verifying = Stopwatch(self.target.device)
        logits = self.target.forward(
            [[row.tokens[-1], *drafts] for row, drafts in zip(rows, proposals.tokens, strict=True)],
            [row.position - 1 for row in rows],
        )
        verdict = self._judge(rows, logits, proposals)
        verifying.stop()
        self._flight = Flight(rows, proposals, verdict, self.target.hidden, drafted - start, verifying)

    @torch.inference_mode()
    def step(self) -> StepRecord:
        """Every row gains at least one token; those that end stay until ``leave``."""
        if self._flight is None:
            self.launch()
        flight, self._flight = self._flight, None
        assert flight is not None
        rows, tokens = flight.rows, flight.proposals.tokens
        before = sum(len(row.tokens) for row in rows)
        verdict = flight.verdict.wait()
        arrived = time.perf_counter()
        outcomes = self._commit(rows, flight.proposals, verdict)
        self._show(rows, flight.proposals, verdict, flight.hidden)
        verify = flight.verifying.seconds + time.perf_counter() - arrived
        times = StepTimes(draft=flight.draft_seconds, verify=verify)
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

    def _judge(self, rows: Sequence[Row], logits: Tensor, proposals: Proposals) -> Judged:
        """Which drafts stay, and what follows them. ``logits`` ``[T, V]``, row by row."""
        line = VerifyLine.of(rows, proposals, logits.device)
        return judge(logits, line, len(rows), proposals.q, self.rule, has_kernels=self.target.has_kernels)

    def _commit(self, rows: Sequence[Row], proposals: Proposals, verdict: Verdict) -> list[Outcome]:
        """Give each row the drafts that stay and the target's next token."""
        outcomes, start = [], 0
        for index, (row, drafts, count, token) in enumerate(
            zip(rows, proposals.tokens, verdict.accepted, verdict.tokens, strict=True)
        ):
            row.commit([*drafts[:count], token], verdict.scores[start : start + count + 1], proposed=len(drafts))
            outcomes.append(Outcome(row.candidate, len(drafts), count, drawn=proposals.drawn(index)))
            start += len(drafts) + 1
        return outcomes

    def _show(self, rows: Sequence[Row], proposals: Proposals, verdict: Verdict, hidden: Tensor | None) -> None:
        """Let the drafter see in which states the last tokens were drawn; ``hidden`` ``[T, size]``, if it is kept."""
        if hidden is None:
            return
        starts = accumulate((len(drafts) + 1 for drafts in proposals.tokens), initial=0)
        self.drafter.observe(
            rows, hidden[[start + count for start, count in zip(starts, verdict.accepted, strict=False)]]
        )
