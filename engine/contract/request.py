"""What a user asks for, and the messages that carry it to an engine."""

import re
from dataclasses import dataclass, field, replace

from engine.contract import parameters
from engine.contract.errors import BadRequest
from engine.contract.parameters import MAX_CANDIDATES as MAX_CANDIDATES
from engine.contract.parameters import MODEL, REQUEST, SAMPLING

NAME = r"[a-z][a-z0-9-]*(:[a-z0-9.]+)?"  # of a drafter, a policy or a rule: which of them there are, an engine knows
ROLES = ("user", "assistant")


def _require(fact: bool, sentence: str) -> None:
    if not fact:
        raise BadRequest(sentence)


def _check(carrier: object, part: str) -> None:
    """Every parameter of that part is a value that can be, by the one table of them."""
    for parameter in parameters.carried_by(part):
        parameter.check(getattr(carrier, parameter.name))


@dataclass(frozen=True)
class ModelChoice:
    """Which models to load, and how. Empty ``draft`` means: no draft model.

    ``server``: the address of an OpenAI-compatible server that does the work; ``model`` is then its name for one.
    ``ignore_fit``: load even if the memory plan says that it will not fit.
    """

    model: str = "default"
    draft: str = parameters.DRAFT.default
    precision: str = parameters.PRECISION.default
    device: str = "auto"
    offline: bool = False
    server: str = ""
    ignore_fit: bool = False

    def __post_init__(self) -> None:
        _require(bool(self.model), "No model was named; choose one with --model or in the model box.")
        _check(self, MODEL)


@dataclass(frozen=True)
class Sampling:
    """The distribution each token is drawn from, and what ends the text.

    ``temperature`` 0 is greedy; ``top_k`` 0 and ``min_p`` 0 are no limit. The penalties look at the candidate's own
    tokens so far: ``repetition_penalty`` divides positive logits (multiplies negative ones) of tokens seen in prompt or
    answer, 1 is none; ``presence_penalty`` and ``frequency_penalty`` are taken off per token of the answer, once and
    per occurrence. ``code_stop``: end at the close of the first fenced ``block``, or where the first top-level
    ``function`` of a completion is over.
    """

    temperature: float = parameters.TEMPERATURE.default
    top_p: float = parameters.TOP_P.default
    top_k: int = parameters.TOP_K.default
    max_tokens: int = parameters.MAX_TOKENS.default
    stop: tuple[str, ...] = parameters.STOP.default
    min_p: float = parameters.MIN_P.default
    repetition_penalty: float = parameters.REPETITION_PENALTY.default
    presence_penalty: float = parameters.PRESENCE_PENALTY.default
    frequency_penalty: float = parameters.FREQUENCY_PENALTY.default
    code_stop: str = parameters.CODE_STOP.default

    def __post_init__(self) -> None:
        _check(self, SAMPLING)
        _require(all(self.stop), "A stop string is empty; remove it.")


@dataclass(frozen=True)
class Speculation:
    """How tokens are guessed ahead, by names that the engine knows. None of it changes the distribution of the text."""

    drafter: str = parameters.DRAFTER.default
    policy: str = parameters.POLICY.default
    acceptance: str = parameters.ACCEPTANCE.default

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
    candidates: int = parameters.CANDIDATES.default
    mode: str = parameters.MODE.default
    system: str = parameters.SYSTEM.default
    sampling: Sampling = field(default_factory=Sampling)
    speculation: Speculation = field(default_factory=Speculation)
    time_budget_s: float | None = parameters.TIME_BUDGET.default
    turns: tuple[Turn, ...] = ()
    suffix: str = ""
    overrides: dict[int, Sampling] = field(default_factory=dict)
    first_candidate: int = 1
    goal: str = parameters.GOAL.default
    width: int = parameters.WIDTH.default
    openings: dict[int, tuple[Turn, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(bool(self.prompt.strip()), "The prompt is empty; type what the code should do.")
        _check(self, REQUEST)
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
