"""One round of batched speculative sampling, as the papers write it: plan, draft, verify, accept, commit.

BASS: Batched Attention-optimized Speculative Sampling (arXiv 2404.15778), over one shared copy of the prompt's
keys and values (Bifurcated attention, arXiv 2403.08845).
"""

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.sampler.acceptance import AcceptanceRule, Proposals, VerifyLine
from engine.sampler.cost_table import CostTable
from engine.sampler.drafters import Drafter
from engine.sampler.policies import Outcome, Policy, StepTimes
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.sampling import distributions
from engine.sampler.stopping import Row


class Decoder:
    """The rows of one run. Rows come and go between steps; what a row says depends on no other row."""

    def __init__(
        self,
        target: RaggedModel,
        drafter: Drafter,
        policy: Policy,
        rule: AcceptanceRule,
        costs: CostTable | None = None,
    ):
        self.target, self.drafter, self.policy, self.rule = target, drafter, policy, rule
        self.costs = costs  # learns what steps cost, whichever policy decides their size
        self.rows: list[Row] = []

    def join(self, rows: Sequence[Row], prompt_logits: Tensor) -> None:
        """New rows start behind the prompt; each draws its first token from the prompt's last logits ``[1, V]``."""
        nothing = Proposals([[] for _ in rows])
        self._accept(rows, prompt_logits.expand(len(rows), -1), nothing)
        self.rows += rows

    def leave(self) -> list[Row]:
        """Take the ended rows out of the batch, and give them back."""
        ended = [row for row in self.rows if row.stop_reason]
        if ended:
            staying = [index for index, row in enumerate(self.rows) if not row.stop_reason]
            self.target.keep(staying)
            self.drafter.keep(staying)
            self.rows = [self.rows[index] for index in staying]
        return ended

    @torch.inference_mode()
    def step(self) -> None:
        """Every row gains at least one token; those that end stay until ``leave``."""
        rows, start = self.rows, time.perf_counter()
        # No draft beyond the last token that may be committed; the target's own token needs one place.
        counts = [min(count, row.room - 1) for count, row in zip(self.policy.plan(rows), rows, strict=True)]
        proposals = self.policy.choose(self.drafter.propose(rows, counts))
        drafted = time.perf_counter()
        logits = self.target.forward(
            [[row.tokens[-1], *drafts] for row, drafts in zip(rows, proposals.tokens, strict=True)],
            [row.position - 1 for row in rows],
        )
        outcomes = self._accept(rows, logits, proposals)
        times = StepTimes(draft=drafted - start, verify=time.perf_counter() - drafted)
        self.policy.observe(
            [outcome for row, outcome in zip(rows, outcomes, strict=True) if not row.stop_reason], times
        )
        if self.costs is not None:
            self.costs.refine(len(logits), times.verify)

    def _accept(self, rows: Sequence[Row], logits: Tensor, proposals: Proposals) -> list[Outcome]:
        """Commit to each row the drafts that stay and the target's next token. ``logits`` ``[T, V]``, row by row."""
        line = VerifyLine.of(rows, proposals, logits.device)
        p = distributions(logits, line.places)
        accepted, next_tokens = self.rule.accept(p, line, proposals.q)
        # A candidate's score is raw: before temperature and truncation.
        scores = raw_log_probs(logits, line, accepted, next_tokens).tolist()
        outcomes, start = [], 0
        for row, drafts, count, token in zip(
            rows, proposals.tokens, accepted.tolist(), next_tokens.tolist(), strict=True
        ):
            row.commit([*drafts[:count], token], scores[start : start + count + 1], proposed=len(drafts))
            outcomes.append(Outcome(row.candidate, proposed=len(drafts), accepted=count))
            start += len(drafts) + 1
        return outcomes


def raw_log_probs(logits: Tensor, line: VerifyLine, accepted: Tensor, next_tokens: Tensor) -> Tensor:
    """The target's log-softmax of what is committed at each position of the line ``[T]``."""
    ends = (line.drafts < 0).nonzero()[:, 0]  # every row's last position
    starts = torch.cat([ends.new_zeros(1), ends[:-1] + 1])
    committed = line.drafts.clamp(min=0).scatter(0, starts + accepted, next_tokens)
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return wide.gather(1, committed[:, None])[:, 0] - wide.logsumexp(-1)
