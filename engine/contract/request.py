"""What a user asks for, and the messages that carry it to an engine."""

import math
import re
from dataclasses import dataclass, field, replace

from engine.contract.errors import BadRequest

NAME = r"[a-z][a-z0-9-]*(:[a-z0-9.]+)?"  # of a drafter, a policy or a rule: which of them there are, an engine knows
PRECISIONS = ("auto", "int8", "int4", "float32", "bfloat16", "float16")
MODES = ("chat", "completion", "fill-in-the-middle")
CODE_STOPS = ("", "block", "function")
GOALS = ("all", "first")
ROLES = ("user", "assistant")
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
    """Which models to load, and how. Empty ``draft`` means: no draft model.

    ``server``: the address of an OpenAI-compatible server that does the work; ``model`` is then its name for one.
    ``ignore_fit``: load even if the memory plan says that it will not fit.
    """

    model: str = "default"
    draft: str = ""
    precision: str = "auto"
    device: str = "auto"
    offline: bool = False
    server: str = ""
    ignore_fit: bool = False

    def __post_init__(self) -> None:
        _require(bool(self.model), "No model was named; choose one with --model or in the model box.")
        _require(
            self.precision in PRECISIONS,
            f"Precision {self.precision!r} is not known; choose one of {', '.join(PRECISIONS)}.",
        )


@dataclass(frozen=True)
class Sampling:
    """The distribution each token is drawn from, and what ends the text.

    ``temperature`` 0 is greedy; ``top_k`` 0 and ``min_p`` 0 are no limit. The penalties look at the candidate's own
    tokens so far: ``repetition_penalty`` divides positive logits (multiplies negative ones) of tokens seen in prompt or
    answer, 1 is none; ``presence_penalty`` and ``frequency_penalty`` are taken off per token of the answer, once and
    per occurrence. ``code_stop``: end at the close of the first fenced ``block``, or where the first top-level
    ``function`` of a completion is over.
    """

    temperature: float = 0.8
    top_p: float = 0.95
    top_k: int = 0
    max_tokens: int = 512
    stop: tuple[str, ...] = ()
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    code_stop: str = ""

    def __post_init__(self) -> None:
        _require(
            math.isfinite(self.temperature) and 0.0 <= self.temperature <= 10.0,
            f"Temperature must be between 0 and 10, not {self.temperature}.",
        )
        _require(0.0 < self.top_p <= 1.0, f"top-p must be above 0 and at most 1, not {self.top_p}.")
        _require(self.top_k >= 0, f"top-k must be 0 (no limit) or a positive number, not {self.top_k}.")
        _require(self.max_tokens >= 1, f"Max tokens must be at least 1, not {self.max_tokens}.")
        _require(all(self.stop), "A stop string is empty; remove it.")
        _require(0.0 <= self.min_p <= 1.0, f"min-p must be between 0 and 1, not {self.min_p}.")
        _require(
            0.0 < self.repetition_penalty <= 10.0,
            f"The repetition penalty must be above 0 and at most 10 (1 is none), not {self.repetition_penalty}.",
        )
        for name, value in (("presence", self.presence_penalty), ("frequency", self.frequency_penalty)):
            _require(-2.0 <= value <= 2.0, f"The {name} penalty must be between -2 and 2, not {value}.")
        _require(
            self.code_stop in CODE_STOPS,
            f"Code stop {self.code_stop!r} is not known; choose block, function, or nothing.",
        )


@dataclass(frozen=True)
class Speculation:
    """How tokens are guessed ahead, by names that the engine knows. None of it changes the distribution of the text."""

    drafter: str = "auto"
    policy: str = "auto"
    acceptance: str = "coupled"

    def __post_init__(self) -> None:
        for kind, name in (("A drafter", self.drafter), ("A policy", self.policy), ("A rule", self.acceptance)):
            _require(
                re.fullmatch(NAME, name) is not None,
                f"{kind} cannot be called {name!r}; write its name in small letters, as in goodput or fixed:4.",
            )


@dataclass(frozen=True)
class Turn:
    """An earlier turn of the conversation that the prompt goes on from."""

    role: str
    text: str

    def __post_init__(self) -> None:
        _require(self.role in ROLES, f"A turn is by the user or the assistant, not by {self.role!r}.")


@dataclass(frozen=True)
class Request:
    """One run: n candidates of one prompt, numbered from ``first_candidate`` on.

    ``seed`` and a candidate's number determine its text (coupled acceptance, float32), whatever runs beside it.
    ``time_budget_s`` counts from the start of the run; unfinished candidates are then *cut*. ``system`` is what a chat
    model is told before the prompt; empty for its own default. ``turns``: what was said before the prompt, in order.
    ``suffix``: in fill-in-the-middle mode, the text after the gap. ``overrides``: candidates with a sampling of their
    own, by number; ``openings``: candidates that go on from further turns behind the prompt, an answer and what is said
    to it, by number. ``goal``: be done with *all* soonest, or with the *first*; it chooses how many candidates are
    decoded at a time (``width`` 0), which ``width`` fixes instead. No text depends on either.
    """

    prompt: str
    seed: int
    candidates: int = 8
    mode: str = "chat"
    system: str = CODE_ONLY
    sampling: Sampling = field(default_factory=Sampling)
    speculation: Speculation = field(default_factory=Speculation)
    time_budget_s: float | None = None
    turns: tuple[Turn, ...] = ()
    suffix: str = ""
    overrides: dict[int, Sampling] = field(default_factory=dict)
    first_candidate: int = 1
    goal: str = "all"
    width: int = 0
    openings: dict[int, tuple[Turn, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(bool(self.prompt.strip()), "The prompt is empty; type what the code should do.")
        _require(
            1 <= self.candidates <= MAX_CANDIDATES,
            f"The number of candidates must be between 1 and {MAX_CANDIDATES}, not {self.candidates}.",
        )
        _require(0 <= self.seed <= MAX_SEED, f"The seed must be between 0 and {MAX_SEED}, not {self.seed}.")
        _require(self.mode in MODES, f"Mode {self.mode!r} is not known; choose one of {', '.join(MODES)}.")
        _require(
            self.time_budget_s is None or (math.isfinite(self.time_budget_s) and self.time_budget_s > 0),
            f"The time budget must be a positive number of seconds, not {self.time_budget_s}.",
        )
        _require(not self.turns or self.mode == "chat", "Earlier turns belong to chat mode; choose it, or drop them.")
        _check_openings(self.mode, *self.openings.values())
        _require(
            not self.suffix or self.mode == "fill-in-the-middle",
            "Text after the gap belongs to fill-in-the-middle mode; choose it, or drop the text.",
        )
        _require(
            self.mode == "completion"
            or all(sampling.code_stop != "function" for sampling in (self.sampling, *self.overrides.values())),
            "Stopping after the first function belongs to completion mode; choose it, or stop after the first block.",
        )
        _require(self.first_candidate >= 1, f"Candidates are numbered from 1, not from {self.first_candidate}.")
        _require(self.goal in GOALS, f"Goal {self.goal!r} is not known; choose all or first.")
        _require(0 <= self.width <= MAX_CANDIDATES, f"The width must be 0 (automatic) to {MAX_CANDIDATES}.")

    @property
    def numbers(self) -> range:
        """The candidates' numbers."""
        return range(self.first_candidate, self.first_candidate + self.candidates)

    def sampling_of(self, candidate: int) -> Sampling:
        return self.overrides.get(candidate, self.sampling)

    def asked_of(self, candidate: int) -> "Request":
        """What one candidate is asked, as a request without openings: in a run of that, it says the same."""
        if not self.openings:
            return self
        *further, last = Turn("user", self.prompt), *self.openings.get(candidate, ())
        return replace(self, prompt=last.text, turns=(*self.turns, *further), openings={})


def _check_openings(mode: str, *openings: tuple[Turn, ...]) -> None:
    _require(not openings or mode == "chat", "Turns behind the prompt belong to chat mode; choose it, or drop them.")
    for opening in openings:
        _require(
            bool(opening) and opening[-1].role == "user" and bool(opening[-1].text.strip()),
            "Turns behind the prompt must end with something that the user says.",
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
    """Generate more: ``count`` further candidates of a run that goes on, behind an ``opening`` as in ``Request``."""

    run: str
    count: int
    opening: tuple[Turn, ...] = ()

    def __post_init__(self) -> None:
        if self.opening:
            _check_openings("chat", self.opening)


@dataclass(frozen=True)
class Close:
    """Stop everything and leave ``Engine.run``; answered by Closed."""


Message = Load | Generate | Cancel | Add | Close
