"""The figures of one run, computed the same way for every contender."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean

from engine.contract import CandidateFinished, Event, RunFinished, StepDone


@dataclass(frozen=True)
class Steps:
    """What each decode step did: rows decoded, tokens guessed ahead over all of them, and how many of those stayed."""

    rows: list[int] = field(default_factory=list)
    drafted: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Steps":
        steps, before = cls(), None
        for event in events:
            if not isinstance(event, StepDone):
                continue
            if before is not None and event.steps > before.steps:  # else rows joined, and nothing was decoded
                steps.rows.append(before.active)
                steps.drafted.append(event.drafted)
                # A cut takes back what was counted behind it.
                steps.accepted.append(max(0, event.accepted - before.accepted))
            before = event
        return steps


@dataclass(frozen=True)
class Timing:
    """ms per token as in the BASS paper: of the first and the last candidate to finish, and the mean over all.

    A candidate's clock runs from the run's first token to the candidate's last, so that nobody's reading of the prompt
    is in it; ``first_token_s`` counts from the request. ``tokens_per_second``: all tokens until the last candidate is
    there; None if they all came at once. ``peak_mib``: most memory held meanwhile by the process that ran it.
    """

    ms_first: float
    ms_last: float
    ms_mean: float
    tokens_per_second: float | None
    first_token_s: float
    total_s: float
    tokens: int
    peak_mib: float | None = None
    acceptance: float | None = None
    draft_length: float | None = None
    plain_share: float | None = None
    steps: Steps | None = None

    @classmethod
    def of(cls, first_token_s: float, ends: Sequence[tuple[float, int]]) -> "Timing":
        """``ends``: for each candidate, seconds from the request to its last token, and its number of tokens."""
        ends = sorted(ends)
        per_token = [1e3 * (end_s - first_token_s) / tokens for end_s, tokens in ends]
        total_s, tokens = ends[-1][0], sum(tokens for _, tokens in ends)
        rate = tokens / (total_s - first_token_s) if total_s > first_token_s else None
        return cls(per_token[0], per_token[-1], mean(per_token), rate, first_token_s, total_s, tokens)

    @classmethod
    def of_run(cls, events: Sequence[Event]) -> "Timing":
        """Of a whole run of ``engine.sampler``, whose events tell the times."""
        metrics = next(event.metrics for event in events if isinstance(event, RunFinished))
        assert metrics is not None
        assert metrics.time_to_first_token_s is not None
        ends = [(event.at_s, event.tokens) for event in events if isinstance(event, CandidateFinished)]
        return replace(
            cls.of(metrics.time_to_first_token_s, ends),
            acceptance=metrics.acceptance_rate,
            draft_length=metrics.mean_draft_length,
            plain_share=metrics.plain_step_share,
            steps=Steps.of(events),
        )
