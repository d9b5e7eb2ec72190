"""What a user may choose for a run: one table for the command line, the window, the settings and the documentation.

A parameter is an entry here and a field of the class that carries it (request.py), with the entry's default.
"""

import math
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from engine.contract.errors import BadRequest

T = TypeVar("T")

MAX_CANDIDATES = 128
MAX_SEED = 2**63 - 1
# What a chat model is told before the prompt. Prose around the code costs as many tokens as the code itself, and every
# candidate finishes later by them.
CODE_ONLY = "Answer with one code block and nothing else."
SAMPLING, SPECULATION, REQUEST, MODEL = "sampling", "speculation", "request", "model"  # what carries a parameter
RUN_BAR, ADVANCED = "run bar", "advanced"  # places in the window


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` (itself not, if ``above``) to ``high``. ``step``: of the arrow keys, 1 for whole numbers.

    ``typed``: what a field in the window takes, where that is not the whole range.
    """

    low: float
    high: float = math.inf
    above: bool = False
    step: float = 1
    typed: tuple[float, float] | None = None

    def holds(self, value: float) -> bool:
        return math.isfinite(value) and value <= self.high and (self.low < value if self.above else self.low <= value)

    @property
    def whole(self) -> bool:
        return self.step == 1

    @property
    def field(self) -> tuple[float, float]:
        return self.typed or (self.low, self.high)

    def in_words(self, unit: str = "") -> str:
        """As in: must be between 0 and 10."""
        if math.isinf(self.high) and self.above and self.low == 0:
            return f"a positive number of {unit}" if unit else "a positive number"
        low, high = (str(int(end)) if end == int(end) else f"{end:g}" for end in (self.low, min(self.high, MAX_SEED)))
        if math.isinf(self.high):
            words = f"above {low}" if self.above else f"at least {low}"
        else:
            words = f"above {low} and at most {high}" if self.above else f"between {low} and {high}"
        return f"{words} {unit}".rstrip()


@dataclass(frozen=True)
class Parameter(Generic[T]):
    """``name``: a field of the class that ``part`` names; ``title``: its label; ``help``: a sentence without its end.

    ``default_words``: what the default means, where its value does not say it; ``hint``: the same in a word, in an
    empty field of the window, which then stands for the default. ``neutral``: a value that changes nothing, in words.
    ``choices``: values and their titles. ``option``: on the command line, where it is not the name; ``metavar``: what
    stands behind it there. ``place``: in the window; empty for the command line alone.
    """

    name: str
    part: str
    title: str
    help: str
    default: T
    range: Range | None = None
    unit: str = ""
    default_words: str = ""
    hint: str = ""
    neutral: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    option: str = ""
    metavar: str = ""
    place: str = ""
    subject: str = ""  # how a sentence about it begins; empty: with its title

    @property
    def flag(self) -> str:
        return self.option or "--" + self.name.replace("_", "-")

    @property
    def limits(self) -> str:
        """As in: between 0 and 10. Empty where anything goes, or its choices say it."""
        words = self.range.in_words(self.unit) if self.range is not None else ""
        return ", ".join(filter(None, (words, self.neutral)))

    @property
    def values(self) -> tuple[str, ...]:
        """Its choices, but for the empty one."""
        return tuple(value for value, _ in self.choices if value)

    def check(self, value: T) -> None:
        """Raises BadRequest, with a sentence, for a value that cannot be."""
        number: Any = value
        subject = self.subject or self.title
        if self.choices and value not in [choice for choice, _ in self.choices]:
            raise BadRequest(f"{subject} {value!r} is not known; choose {self._choices_in_words()}.")
        if self.range is not None and not (value is None and self.default is None) and not self.range.holds(number):
            neutral = f" ({self.neutral})" if self.neutral else ""
            raise BadRequest(f"{subject} must be {self.range.in_words(self.unit)}{neutral}, not {value}.")

    def _choices_in_words(self) -> str:
        if len(self.values) < len(self.choices):
            return f"{', '.join(self.values)}, or nothing"
        return " or ".join(self.values) if len(self.values) == 2 else f"one of {', '.join(self.values)}"


CANDIDATES = Parameter(
    "candidates",
    REQUEST,
    title="Number of candidates",
    help="How many answers to generate",
    default=8,
    range=Range(1, MAX_CANDIDATES),
    subject="The number of candidates",
    metavar="N",
    place=RUN_BAR,
)
TEMPERATURE = Parameter(
    "temperature",
    SAMPLING,
    title="Temperature",
    help="0 always takes the likeliest token; higher is more varied",
    default=0.8,
    range=Range(0, 10, step=0.1),
    metavar="T",
    place=RUN_BAR,
)
TOP_P = Parameter(
    "top_p",
    SAMPLING,
    title="Top-p",
    help="Keep the likeliest tokens up to this share of the probability",
    default=0.95,
    range=Range(0, 1, above=True, step=0.05, typed=(0.01, 1)),
    subject="top-p",
    metavar="P",
    place=ADVANCED,
)
TOP_K = Parameter(
    "top_k",
    SAMPLING,
    title="Top-k",
    help="Keep this many of the likeliest tokens",
    default=0,
    range=Range(0, typed=(0, 1_000_000)),
    default_words="no limit",
    hint="off",
    neutral="0 is no limit",
    subject="top-k",
    metavar="K",
    place=ADVANCED,
)
MIN_P = Parameter(
    "min_p",
    SAMPLING,
    title="Min-p",
    help="Drop tokens below this share of the likeliest one's probability",
    default=0.0,
    range=Range(0, 1, step=0.05),
    default_words="no limit",
    hint="off",
    subject="min-p",
    metavar="P",
    place=ADVANCED,
)
REPETITION_PENALTY = Parameter(
    "repetition_penalty",
    SAMPLING,
    title="Repetition penalty",
    help="Above 1 makes tokens that prompt or answer have used less likely",
    default=1.0,
    range=Range(0, 10, above=True, step=0.05, typed=(0.01, 10)),
    neutral="1 is none",
    subject="The repetition penalty",
    metavar="X",
    place=ADVANCED,
)
PRESENCE_PENALTY = Parameter(
    "presence_penalty",
    SAMPLING,
    title="Presence penalty",
    help="Taken off every token that the answer has used",
    default=0.0,
    range=Range(-2, 2, step=0.1),
    neutral="0 is none",
    subject="The presence penalty",
    metavar="X",
    place=ADVANCED,
)
FREQUENCY_PENALTY = Parameter(
    "frequency_penalty",
    SAMPLING,
    title="Frequency penalty",
    help="Taken off a token once per time that the answer has used it",
    default=0.0,
    range=Range(-2, 2, step=0.1),
    neutral="0 is none",
    subject="The frequency penalty",
    metavar="X",
    place=ADVANCED,
)
MAX_TOKENS = Parameter(
    "max_tokens",
    SAMPLING,
    title="Max tokens",
    help="A candidate is cut after this many tokens",
    default=512,
    range=Range(1, typed=(1, 131_072)),
    metavar="N",
    place=RUN_BAR,
)
STOP: Parameter[tuple[str, ...]] = Parameter(
    "stop",
    SAMPLING,
    title="Stop strings",
    help="A candidate ends before this text",
    default=(),
    default_words="none",
    metavar="TEXT",
)
CODE_STOP = Parameter(
    "code_stop",
    SAMPLING,
    title="Stop at",
    help="Where a candidate may stop before the model ends it; the first function: in completion mode only",
    default="",
    choices=(("", "the model's end"), ("block", "first code block"), ("function", "first function")),
    default_words="the model's end",
    option="--stop-at",
    subject="Code stop",
    place=ADVANCED,
)
SEED: Parameter[int | None] = Parameter(
    "seed",
    REQUEST,
    title="Seed",
    help="The same seed gives the same candidates",
    default=None,
    range=Range(0, MAX_SEED),
    default_words="a new one for every run",
    hint="auto",
    subject="The seed",
    metavar="N",
    place=RUN_BAR,
)
TIME_BUDGET: Parameter[float | None] = Parameter(
    "time_budget_s",
    REQUEST,
    title="Time budget",
    help="Candidates that are still running by then are cut off",
    default=None,
    range=Range(0, above=True, step=0.1, typed=(0.1, 86_400)),
    unit="seconds",
    default_words="no limit",
    hint="off",
    option="--time-budget",
    subject="The time budget",
    metavar="SECONDS",
    place=RUN_BAR,
)
MODE = Parameter(
    "mode",
    REQUEST,
    title="Mode",
    help="What the prompt is: a request (chat), the start of the code (completion), or the code before a gap",
    default="chat",
    choices=(("chat", "chat"), ("completion", "completion"), ("fill-in-the-middle", "fill-in-the-middle")),
)
SYSTEM = Parameter(
    "system",
    REQUEST,
    title="System prompt",
    help="Instructions to a chat model before the prompt; empty: the model's own",
    default=CODE_ONLY,
    default_words="to answer with one code block only",
    hint="the model's own",
    metavar="TEXT",
    place=ADVANCED,
)
DRAFTER = Parameter(
    "drafter",
    SPECULATION,
    title="Drafter",
    help="What drafts tokens ahead. The text stays the same; only the speed changes",
    default="auto",
    place=ADVANCED,
)
POLICY = Parameter(
    "policy",
    SPECULATION,
    title="Draft length",
    help="How many tokens to guess ahead",
    default="auto",
    place=ADVANCED,
)
ACCEPTANCE = Parameter(
    "acceptance",
    SPECULATION,
    title="Acceptance",
    help="Which drafts stay. Coupled: a seed gives the same text whatever the drafter. Rejection: the classic rule",
    default="coupled",
    place=ADVANCED,
)
GOAL = Parameter(
    "goal",
    REQUEST,
    title="Optimize for",
    help="Decides how many candidates are decoded at a time",
    default="all",
    choices=(("all", "all candidates"), ("first", "the first right one")),
    default_words="the first right one if there are tests, else all",
    hint="automatic",
    subject="Goal",
    place=ADVANCED,
)
WIDTH = Parameter(
    "width",
    REQUEST,
    title="Batch size",
    help="Candidates decoded together",
    default=0,
    range=Range(0, MAX_CANDIDATES, typed=(1, MAX_CANDIDATES)),
    default_words="chosen by measured cost",
    hint="auto",
    neutral="0 is automatic",
    subject="The width",
    metavar="N",
    place=ADVANCED,
)
DRAFT = Parameter(
    "draft",
    MODEL,
    title="Draft model",
    help="A small model with the same vocabulary that guesses ahead; name, folder, GGUF file or hub name",
    default="",
    default_words="none",
    metavar="NAME",
    place=ADVANCED,
)
PRECISION = Parameter(
    "precision",
    MODEL,
    title="Weight precision",
    help="Number format of the weights",
    default="auto",
    choices=tuple((name, name) for name in ("auto", "int8", "int4", "float32", "bfloat16", "float16")),
    subject="Precision",
    place=ADVANCED,
)
PARAMETERS: tuple[Parameter[Any], ...] = (
    CANDIDATES,
    TEMPERATURE,
    TOP_P,
    TOP_K,
    MIN_P,
    REPETITION_PENALTY,
    PRESENCE_PENALTY,
    FREQUENCY_PENALTY,
    MAX_TOKENS,
    SEED,
    STOP,
    CODE_STOP,
    TIME_BUDGET,
    MODE,
    SYSTEM,
    DRAFTER,
    POLICY,
    ACCEPTANCE,
    GOAL,
    WIDTH,
    DRAFT,
    PRECISION,
)


def carried_by(part: str) -> tuple[Parameter[Any], ...]:
    return tuple(parameter for parameter in PARAMETERS if parameter.part == part)


def advanced() -> tuple[Parameter[Any], ...]:
    return tuple(parameter for parameter in PARAMETERS if parameter.place == ADVANCED)
