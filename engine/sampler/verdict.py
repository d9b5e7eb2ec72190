"""What becomes of a verify line: accepted counts, next tokens and log-probabilities, brought to the host in one piece.

On a GPU the kernels of ``kernels.acceptance.triton`` do it all, under either rule and whatever the drafts were drawn
from; one small copy follows, and nothing in between makes the host wait: ``DeviceVerifier``. Elsewhere, and where those
kernels do not work (``device_path``), the sampler's own arithmetic does: ``HostVerifier``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from engine.contract import Sampling
from engine.sampler.acceptance import AcceptanceRule, Coupled, VerifyLine
from engine.sampler.penalties import has_penalty, penalised
from engine.sampler.sampling import Distributions, SamplingPoint, distributions
from engine.sampler.streams import HostCopy, to_device
from kernels.logit_stats import logit_stats

if TYPE_CHECKING:
    from kernels.acceptance.triton import Drawn


class PendingVerdict(Protocol):
    """A verdict that may still be on its way."""

    def wait(self) -> "Verdict": ...


@dataclass(frozen=True)
class Verdict:
    """Per row: accepted drafts and the next token. Per position: the raw log-probability of what is committed there.

    Positions are those of the verify line; beyond a row's next token they mean nothing.
    """

    accepted: list[int]
    tokens: list[int]
    scores: list[float]

    def wait(self) -> "Verdict":
        return self


@dataclass(frozen=True)
class DeviceVerdict:
    """A verdict that a GPU is at work on: int32 ``[2 B + T]`` as ``kernels.acceptance.triton.accept`` leaves it."""

    result: HostCopy
    rows: int

    def wait(self) -> Verdict:
        from kernels.acceptance.triton import unpack

        accepted, tokens, scores = unpack(self.result.wait(), self.rows)
        return Verdict(accepted.tolist(), tokens.tolist(), scores.tolist())


class Verifier(Protocol):
    """Reaches verdicts over the target's logits; which one, the model says (``RaggedModel.verifier``)."""

    def verify(
        self, logits: Tensor, line: VerifyLine, rows: int, q: Distributions | None, rule: AcceptanceRule
    ) -> PendingVerdict:
        """``logits`` ``[T, V]``: of every position of the line; ``q``: what drafts were drawn from, if any was."""


class HostVerifier(Verifier):
    """The sampler's own arithmetic, wherever the logits are."""

    def verify(
        self, logits: Tensor, line: VerifyLine, rows: int, q: Distributions | None, rule: AcceptanceRule
    ) -> PendingVerdict:
        p = distributions(logits, line.places)
        accepted, tokens = rule.accept(p, line, q)
        scores = raw_log_probs(logits, line, accepted, tokens, p.totals)
        return Verdict(accepted.tolist(), tokens.tolist(), scores.tolist())


def raw_log_probs(
    logits: Tensor, line: VerifyLine, accepted: Tensor, next_tokens: Tensor, totals: Tensor | None
) -> Tensor:
    """The target's log-softmax, before temperature and cuts, of what is committed at each position of the line.

    ``totals`` ``[T]``: log sum exp of the logits, where it is known.
    """
    ends = (line.drafts < 0).nonzero()[:, 0]  # every row's last position
    starts = torch.cat([ends.new_zeros(1), ends[:-1] + 1])
    committed = line.drafts.clamp(min=0).scatter(0, starts + accepted, next_tokens)
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if totals is None:
        totals = logit_stats(wide, wide.new_ones(len(wide))).total
    return wide.gather(1, committed[:, None])[:, 0] - totals


class DeviceVerifier(Verifier):
    """The device's kernels; the host goes on before they are through. A rule that has none is left to the host."""

    def verify(
        self, logits: Tensor, line: VerifyLine, rows: int, q: Distributions | None, rule: AcceptanceRule
    ) -> PendingVerdict:
        if not rule.kernel:
            return HostVerifier().verify(logits, line, rows, q, rule)
        from kernels.acceptance.triton import COUPLED, REJECTION, Counter, accept

        device = logits.device
        starts = torch.searchsorted(line.rows.contiguous(), torch.arange(rows + 1, device=device), out_int32=True)
        adjusted = after_penalties(logits, line.places)
        result = accept(
            adjusted,
            cuts_of_places(line.places, device),
            Counter(*(part.contiguous() for part in line.counter)),
            line.drafts.int(),
            starts,
            {"coupled": COUPLED, "rejection": REJECTION}[rule.kernel],
            q=None if q is None or not rule.needs_q else drawn_from(q, line, logits.shape[1]),
            raw=None if adjusted is logits else logits,
        )
        return DeviceVerdict(HostCopy(result), rows)


def drawn_from(q: Distributions, line: VerifyLine, vocabulary: int) -> "tuple[Drawn, Tensor] | None":
    """Sparse ``q`` of the drafts ``[D, K]`` as the kernels read it, and which of it belongs to each position: none, -1,
    where the draft was not drawn."""
    from kernels.acceptance.triton import dense

    if len(q.ids) == 0:
        return None  # nothing was drafted, so nothing is judged
    places = (line.drafts >= 0).cumsum(0) - 1
    if line.drawn is not None:
        places = torch.where(line.drawn, places, -1)
    return dense(q.ids, q.log_probs, vocabulary), places.int()


def after_penalties(logits: Tensor, places: list[SamplingPoint]) -> Tensor:
    """The logits themselves where there is nothing to penalise."""
    if not any(has_penalty(place.sampling) for place in places):
        return logits
    return penalised(logits, [(place.sampling, place.counts, place.ahead) for place in places])


def cuts_of_places(places: list[SamplingPoint], device: torch.device) -> Tensor:
    from kernels.acceptance.triton import cuts_of

    samplings = (place.sampling for place in places)
    cuts = [(s.temperature, s.top_k, s.top_p, s.min_p) for s in samplings]
    return to_device(cuts_of(cuts, torch.device("cpu")), device)


def choose(logits: Tensor, sampling: Sampling, verifier: Verifier) -> None:
    """Everything a verdict takes over ``logits`` ``[T, V]`` that answer nobody: to measure what it costs."""
    positions = torch.arange(len(logits), device=logits.device)
    places, nothing = [SamplingPoint(sampling)] * len(logits), torch.full_like(positions, -1)
    line = VerifyLine(nothing, positions, (positions, positions, positions), places)
    verifier.verify(logits, line, len(logits), None, Coupled()).wait()
