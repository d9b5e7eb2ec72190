"""What a person asks for, and the messages that carry it to an engine."""

import math
import re
from dataclasses import dataclass, field

from engine.contract.errors import BadRequest

DRAFTERS = ("auto", "suffix", "draft-model", "none")
ACCEPTANCE_RULES = ("coupled", "rejection")
PRECISIONS = ("auto", "int8", "float32", "bfloat16", "float16")
MODES = ("chat", "completion")
MAX_CANDIDATES = 128
MAX_SEED = 2**63 - 1
# What a chat model is told before the prompt. Prose around the code costs as many tokens as the code itself, and every
# candidate finishes later by them.
CODE_ONLY = "Answer with one code block and nothing else."


def _require(fact: bool, sentence: str) -> None:
    if not fact:
        raise BadRequest(sentence)


@dataclass(frozen=True)
class ModelChoice:
    """Which models to load, and how. Empty ``draft`` means: no draft model."""

    model: str = "default"
    draft: str = ""
    precision: str = "auto"
    device: str = "auto"
    offline: bool = False

    def __post_init__(self) -> None:
        _require(bool(self.model), "No model was named; choose one with --model or in the model box.")
        _require(
            self.precision in PRECISIONS,
            f"Precision {self.precision!r} is not known; choose one of {', '.join(PRECISIONS)}.",
        )


@dataclass(frozen=True)
class Sampling:
    """The distribution each token is drawn from. ``temperature`` 0 is greedy; ``top_k`` 0 is no limit."""

    temperature: float = 0.8
    top_p: float = 0.95
    top_k: int = 0
    max_tokens: int = 512
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require(
            math.isfinite(self.temperature) and 0.0 <= self.temperature <= 10.0,
            f"Temperature must be between 0 and 10, not {self.temperature}.",
        )
        _require(0.0 < self.top_p <= 1.0, f"top-p must be above 0 and at most 1, not {self.top_p}.")
        _require(self.top_k >= 0, f"top-k must be 0 (no limit) or a positive number, not {self.top_k}.")
        _require(self.max_tokens >= 1, f"Max tokens must be at least 1, not {self.max_tokens}.")
        _require(all(self.stop), "A stop string is empty; remove it.")


@dataclass(frozen=True)
class Speculation:
    """How tokens are guessed ahead. None of it changes the distribution of the text."""

    drafter: str = "auto"
    policy: str = "auto"
    acceptance: str = "coupled"

    def __post_init__(self) -> None:
        _require(
            self.drafter in DRAFTERS,
            f"Drafter {self.drafter!r} is not known; choose one of {', '.join(DRAFTERS)}.",
        )
        _require(
            self.policy in ("auto", "goodput", "bass") or re.fullmatch(r"fixed:\d{1,2}", self.policy) is not None,
            f"Policy {self.policy!r} is not known; choose goodput, bass or fixed:N with N from 0 to 99.",
        )
        _require(
            self.acceptance in ACCEPTANCE_RULES,
            f"Acceptance {self.acceptance!r} is not known; choose coupled or rejection.",
        )


@dataclass(frozen=True)
class Request:
    """One run: n candidates of one prompt. Candidates are numbered from 1.

    ``seed`` and a candidate's number determine its text (coupled acceptance, float32), whatever runs beside it.
    ``time_budget_s`` counts from the start of the run; unfinished candidates are then *cut*. ``system`` is what a chat
    model is told before the prompt; empty for its own default.
    """

    prompt: str
    seed: int
    candidates: int = 8
    mode: str = "chat"
    system: str = CODE_ONLY
    sampling: Sampling = field(default_factory=Sampling)
    speculation: Speculation = field(default_factory=Speculation)
    time_budget_s: float | None = None

    def __post_init__(self) -> None:
        _require(bool(self.prompt.strip()), "The prompt is empty; type what the code should do.")
        _require(
            1 <= self.candidates <= MAX_CANDIDATES,
            f"The number of candidates must be between 1 and {MAX_CANDIDATES}, not {self.candidates}.",
        )
        _require(0 <= self.seed <= MAX_SEED, f"The seed must be between 0 and {MAX_SEED}, not {self.seed}.")
        _require(self.mode in MODES, f"Mode {self.mode!r} is not known; choose chat or completion.")
        _require(
            self.time_budget_s is None or (math.isfinite(self.time_budget_s) and self.time_budget_s > 0),
            f"The time budget must be a positive number of seconds, not {self.time_budget_s}.",
        )


@dataclass(frozen=True)
class Load:
    """Make these models ready; answered by Loading ... then Ready or LoadFailed."""

    choice: ModelChoice


@dataclass(frozen=True)
class Generate:
    """Start a run; answered by RunStarted ... and always, last, by one RunFinished. ``run`` names it."""

    run: str
    request: Request


@dataclass(frozen=True)
class Cancel:
    """Stop one candidate, the whole run (``candidate`` None), or a load (``run`` empty)."""

    run: str = ""
    candidate: int | None = None


@dataclass(frozen=True)
class Add:
    """Generate more: ``count`` further candidates of a run that is going on."""

    run: str
    count: int


@dataclass(frozen=True)
class Close:
    """Stop everything and leave ``Engine.run``; answered by Closed."""


Message = Load | Generate | Cancel | Add | Close
