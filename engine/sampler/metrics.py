"""The metrics of a run: what each step did, and the totals."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.contract import Metrics
from engine.sampler.decoder import Decoder, StepRecord
from engine.sampler.row import Row


@dataclass
class StepLog:
    """Sums over the steps of a run. Seconds are those of drafting and verifying; events and waiting are not in them."""

    steps: int = 0
    plain: int = 0
    drafted: int = 0
    row_steps: int = 0
    widest: int = 0
    seconds: float = 0.0
    regular_seconds: float = 0.0  # what the same tokens would have taken, one per row and step

    def add(self, record: StepRecord) -> None:
        self.steps += 1
        self.plain += record.drafted == 0
        self.drafted += record.drafted
        self.row_steps += record.rows
        self.widest = max(self.widest, record.rows)
        self.seconds += record.seconds
        self.regular_seconds += record.committed / record.rows * record.regular_seconds

    @property
    def speedup(self) -> float | None:
        """Against regular decoding of the same rows. Without any draft it is 1 by definition, not by measurement."""
        if self.plain == self.steps or not self.regular_seconds:
            return None
        return self.regular_seconds / self.seconds


@dataclass(frozen=True)
class Times:
    """Seconds since the run started; ``finished`` by candidate, in the order in which they finished."""

    decoding: float
    first_token: float | None
    finished: Mapping[int, float]
    total: float


def run_metrics(
    log: StepLog, times: Times, rows: Mapping[int, Row], decoder: Decoder, device: str, precision: str, tokens_read: int
) -> Metrics:
    ended = [rows[number] for number in times.finished]
    tokens, proposed = sum(len(row.tokens) for row in ended), sum(row.proposed for row in ended)
    per_token = [
        1e3 * (times.finished[row.candidate] - times.decoding) / len(row.tokens) for row in ended if row.tokens
    ]
    return Metrics(
        time_to_first_token_s=times.first_token,
        time_to_first_finished_s=min(times.finished.values(), default=None),
        total_s=times.total,
        tokens_per_second=tokens / (times.total - times.decoding) if tokens else None,
        ms_per_token_first=per_token[0] if per_token else None,
        ms_per_token_last=per_token[-1] if per_token else None,
        ms_per_token_mean=sum(per_token) / len(per_token) if per_token else None,
        acceptance_rate=sum(row.accepted for row in ended) / proposed if proposed else None,
        steps=log.steps,
        device=device,
        precision=precision,
        drafter=decoder.drafter.name,
        policy=decoder.policy.name,
        acceptance=decoder.rule.name,
        plain_step_share=log.plain / log.steps if log.steps else None,
        mean_draft_length=log.drafted / log.row_steps if log.row_steps else None,
        speedup=log.speedup,
        width=log.widest,
        tokens_read=tokens_read,
    )
