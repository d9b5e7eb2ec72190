"""The events that an engine emits. Times are seconds since the run started, on the engine's clock."""

from dataclasses import dataclass

from engine.contract.states import CandidateState, RunOutcome, StopReason


@dataclass(frozen=True)
class Loading:
    """A stage of a load: download (or stalled), convert, weights, check, kernels (on a GPU) or warm-up.

    ``total`` 0: length unknown.
    """

    stage: str
    done: int = 0
    total: int = 0
    unit: str = "bytes"


@dataclass(frozen=True)
class Ready:
    """The models are loaded. ``context`` is in tokens, 0 when a server does not say; ``note``: a sentence, or empty."""

    model: str
    device: str
    precision: str
    context: int
    draft: str = ""
    note: str = ""


@dataclass(frozen=True)
class LoadFailed:
    """``reason`` is one sentence; ``details`` is for a report. ``cancelled``: the user asked for it.

    ``kind``: empty, out-of-memory or disk-full, for whoever can offer a way out.
    """

    reason: str
    details: str = ""
    cancelled: bool = False
    kind: str = ""


@dataclass(frozen=True)
class RunStarted:
    """The prompt was accepted: its length in tokens (0: not known), and the numbers of the candidates."""

    run: str
    prompt_tokens: int
    candidates: tuple[int, ...]
    seed: int


@dataclass(frozen=True)
class PromptProgress:
    """Prefill: ``done`` of ``total`` prompt tokens read."""

    run: str
    done: int
    total: int


@dataclass(frozen=True)
class TextAdded:
    """More text of one candidate, and its tokens so far. All ``text`` together is the candidate's text."""

    run: str
    candidate: int
    text: str
    tokens: int
    at_s: float


@dataclass(frozen=True)
class StepDone:
    """Totals after one decode step, over all candidates of the run.

    ``active``: candidates in the batch now; ``drafted``: tokens guessed ahead in this very step, over all of them.
    """

    run: str
    steps: int
    tokens: int
    proposed: int
    accepted: int
    active: int
    at_s: float
    drafted: int = 0


@dataclass(frozen=True)
class CandidateFinished:
    """A candidate's last word.

    ``proposed`` and ``accepted`` count draft tokens up to the cut; ``mean_logprob`` is the target's own, raw.
    """

    run: str
    candidate: int
    state: CandidateState
    stop_reason: StopReason
    text: str
    tokens: int
    proposed: int
    accepted: int
    mean_logprob: float | None
    at_s: float


@dataclass(frozen=True)
class Metrics:
    """One run in numbers. ms per token: of the first and last candidate to finish, and the mean (BASS, table 1).

    ``plain_step_share``: share of steps without any draft; ``mean_draft_length``: drafts per candidate and step.
    ``speedup``: tokens per second against regular decoding, as the measured cost of a step puts it. ``width``: most
    candidates that were decoded at a time. ``tokens_read``: of the prompt and of candidates' openings, without what was
    known from earlier.
    """

    time_to_first_token_s: float | None
    time_to_first_finished_s: float | None
    total_s: float
    tokens_per_second: float | None
    ms_per_token_first: float | None
    ms_per_token_last: float | None
    ms_per_token_mean: float | None
    acceptance_rate: float | None
    steps: int
    device: str
    precision: str
    drafter: str
    policy: str
    acceptance: str
    plain_step_share: float | None = None
    mean_draft_length: float | None = None
    speedup: float | None = None
    width: int = 0
    tokens_read: int | None = None


@dataclass(frozen=True)
class RunFinished:
    """The one last event of every run, also of one that was refused.

    A run that was refused or failed carries a sentence in ``reason``.
    ``kind``: empty, or out-of-memory, for whoever can offer a way out.
    """

    run: str
    outcome: RunOutcome
    metrics: Metrics | None = None
    reason: str = ""
    details: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Closed:
    """The engine has left; nothing follows."""


Event = (
    Loading
    | Ready
    | LoadFailed
    | RunStarted
    | PromptProgress
    | TextAdded
    | StepDone
    | CandidateFinished
    | RunFinished
    | Closed
)
