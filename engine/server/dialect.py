"""What one server supports, and how a request to it is phrased."""

import re
from dataclasses import dataclass, replace
from typing import Any

from engine.contract import Request, Sampling
from engine.server.client import CHAT, COMPLETIONS

MAX_STOPS = 4  # more are refused by some servers; the rest is looked for here, as all of them are
_SEEDS = 2**31  # several servers keep a seed in 32 bits

# Options beyond OpenAI's own, each with the value that means "do nothing". They are sent even so, because servers fill
# in what is missing with defaults of their own (top-k 40, a repetition penalty of 1.1): what the user sees is what
# is sampled from. The repetition penalty has two names, and each server takes one.
NEUTRAL: dict[str, float] = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


@dataclass(frozen=True)
class Dialect:
    """``n``: several candidates in one request, each a text of its own. ``seed``: the same seed gives the same text.

    ``extras``: the options of ``NEUTRAL`` that the server takes, with the value that means nothing to it. ``usage``:
    it counts tokens when asked to. ``log_probs``: it can be asked for them.
    ``gives_reason``: its texts come with a reason for their end, so that one without was interrupted; ``marks_end``:
    the reason comes at the end, and not in every chunk.
    ``hottest``: the temperature at which it is tried out. ``basics``: those of temperature and top-p that it takes;
    ``limit``: its name for the most tokens. ``stops``: how many stop strings may be sent. ``system``: it takes a
    system prompt, which else goes in front of the first turn.
    """

    n: bool = False
    seed: bool = False
    log_probs: bool = False
    usage: bool = False
    gives_reason: bool = False
    marks_end: bool = True
    hottest: float = 1.5
    basics: tuple[str, ...] = ("temperature", "top_p")
    limit: str = "max_tokens"
    stops: int = MAX_STOPS
    system: bool = True
    extras: tuple[tuple[str, float], ...] = ()

    def takes(self, option: str) -> bool:
        return any(name == option for name, _ in self.extras)

    def without(self, complaint: str) -> "Dialect | None":
        """The next smaller one: without what a server's ``complaint`` names, else without the least common thing.

        None when nothing is left to leave out.
        """
        extras = dict(self.extras)
        if (other := self._other_basics(complaint)) is not None:
            return other
        if extras.get("top_k") == -1 and "top_k" in complaint:  # perhaps only this way to say "no limit" is unknown
            return replace(self, extras=tuple((extras | {"top_k": 0}).items()))
        if named := [name for name in extras if name in complaint]:
            return replace(self, extras=tuple((name, value) for name, value in self.extras if name not in named))
        smaller = {
            "": replace(self, extras=()),
            "stream_options": replace(self, usage=False),
            "logprobs": replace(self, log_probs=False),
            "n": replace(self, n=False),
            "seed": replace(self, seed=False),
            "temperature": replace(self, hottest=min(self.hottest, 1.0)),
        }
        words = set(re.findall(r"\w+", complaint))
        named_first = sorted(smaller, key=lambda name: name not in words)
        return next((smaller[name] for name in named_first if smaller[name] != self), None)

    def _other_basics(self, complaint: str) -> "Dialect | None":
        """What every server takes in one form or another, when ``complaint`` says that this is not the one."""
        words = set(re.findall(r"\w+", complaint))
        if "max_completion_tokens" in words and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "top_p" in words and "top_p" in self.basics:
            return replace(self, basics=tuple(name for name in self.basics if name != "top_p"))
        if "temperature" in words and self.hottest > 1:
            return replace(self, hottest=1.0)
        if "temperature" in words and "temperature" in self.basics:
            return replace(self, basics=tuple(name for name in self.basics if name != "temperature"))
        return None

    def milder(self, complaint: str) -> "Dialect | None":
        """In the middle of the work: without what ``complaint`` names, if nothing of the request is lost by it."""
        words = set(re.findall(r"\w+", complaint.lower()))
        if self.system and "system" in words and words & {"role", "roles", "message", "messages", "prompt"}:
            return replace(self, system=False)
        if self.stops and words & {"stop", "stop_sequences"}:
            return replace(self, stops=0)  # they are looked for here as well
        if self.usage and "stream_options" in words:
            return replace(self, usage=False)
        return None


LARGEST = Dialect(n=True, seed=True, log_probs=True, usage=True, extras=tuple(NEUTRAL.items()))


def way_of(request: Request) -> str:
    """Where the request goes."""
    return CHAT if request.mode == "chat" else COMPLETIONS


def body_of(request: Request, numbers: list[int], model: str, dialect: Dialect) -> dict[str, Any]:
    """One request for the candidates ``numbers``, in this order, which share one sampling."""
    sampling = request.sampling_of(numbers[0])
    body: dict[str, Any] = {"model": model, "stream": True, **sampling_fields(sampling, dialect)}
    if request.mode == "chat":
        body["messages"] = _messages(request, dialect.system)
    else:
        body["prompt"] = request.prompt
    if request.suffix:
        body["suffix"] = request.suffix
    if dialect.seed:
        body["seed"] = seed_of(request, numbers[0])
    if len(numbers) > 1:
        body["n"] = len(numbers)
    if dialect.log_probs:
        # The likeliest token too, though nobody looks at it: some servers give none at all without a number.
        body |= {"logprobs": True, "top_logprobs": 1} if request.mode == "chat" else {"logprobs": 1}
    if dialect.usage:
        body["stream_options"] = {"include_usage": True}
    return body


def _messages(request: Request, takes_system: bool) -> list[dict[str, str]]:
    turns = [{"role": turn.role, "content": turn.text} for turn in request.turns]
    messages = [*turns, {"role": "user", "content": request.prompt}]
    if request.system and takes_system:
        return [{"role": "system", "content": request.system}, *messages]
    if request.system:
        messages[0] = messages[0] | {"content": f"{request.system}\n\n{messages[0]['content']}"}
    return messages


def seed_of(request: Request, number: int) -> int:
    """The seed of one candidate: the run's, plus its number. Servers that take ``n`` count on from the first."""
    return (request.seed + number) % _SEEDS


def sampling_fields(sampling: Sampling, dialect: Dialect) -> dict[str, Any]:
    basics = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    fields: dict[str, Any] = {
        **{name: value for name, value in basics.items() if name in dialect.basics},
        dialect.limit: sampling.max_tokens,
        **dict(dialect.extras),
        **{name: value for name, value in chosen_extras(sampling).items() if dialect.takes(name)},
    }
    if sampling.stop and dialect.stops:
        fields["stop"] = list(sampling.stop[: dialect.stops])
    return fields


def untaken_basic(sampling: Sampling, dialect: Dialect) -> str:
    """What the server takes only at 1, its default, and ``sampling`` has otherwise; empty if there is no such thing."""
    values = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    return next((name for name, value in values.items() if value != 1 and name not in dialect.basics), "")


def chosen_extras(sampling: Sampling) -> dict[str, float]:
    """The options beyond OpenAI's first ones that this sampling really uses."""
    values = {
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "repeat_penalty": sampling.repetition_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
    }
    return {name: value for name, value in values.items() if value != max(0.0, NEUTRAL[name])}
