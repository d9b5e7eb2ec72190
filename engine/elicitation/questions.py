"""The next question: the input whose answer is expected to tell most about the candidates that are left."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from engine.elicitation import values
from engine.elicitation.groups import Candidates, Reply, replies
from engine.elicitation.inputs import EDGE, FAR, MODEL, NEAR, PROMPT, TESTS, TYPES, Input

# How much an answer on an input of this origin is worth: a made-up extreme may be nothing that anybody meant.
_TRUST = {TESTS: 1.0, PROMPT: 1.0, MODEL: 0.9, NEAR: 0.6, TYPES: 0.5, EDGE: 0.4, FAR: 0.15}
_MISHAPS = 0.5  # how much a question loses that turns wholly on candidates' mistakes
_READABLE = 80  # characters; a question twice as long is worth half
_MOST_CHOICES = 4

ERROR = "an error"
_EXITS = ("SystemExit", "KeyboardInterrupt", "GeneratorExit")  # they end a program rather than answer


@dataclass(frozen=True)
class Choice:
    """An answer to choose: ``text`` as it is shown, what its candidates did, and which they are."""

    text: str
    reply: Reply


@dataclass(frozen=True)
class Question:
    """``at``: the number of the input; ``choices``, the largest group first; ``others``: groups that are none, such as
    candidates that did not end."""

    at: int
    given: Input
    choices: tuple[Choice, ...]
    others: tuple[Reply, ...] = ()

    @property
    def sentence(self) -> str:
        """The question, in one line."""
        parts = [f"{len(choice.reply.members)} say {_shortened(choice.text)}" for choice in self.choices]
        parts += [f"{len(reply.members)} {_verb(reply)}" for reply in self.others]
        return f"{_shortened(self.given.text, 120)}: {', '.join(parts)}. Which is right?"


def next_question(candidates: Candidates, inputs: Sequence[Input], asked: Collection[int]) -> Question | None:
    """``candidates``: those that no answer speaks against. None where no input that was not asked splits them."""
    best: tuple[float, int] | None = None
    for at, given in enumerate(inputs):
        if at in asked:
            continue
        worth = _worth(replies(candidates, at), given)
        if worth > 0 and (best is None or worth > best[0] + 1e-12):
            best = worth, at
    return None if best is None else question(candidates, inputs, best[1])


def question(candidates: Candidates, inputs: Sequence[Input], at: int) -> Question:
    groups = replies(candidates, at)
    offered = [reply for reply in groups if is_answer(reply)][:_MOST_CHOICES]
    choices = tuple(Choice(_words(reply, candidates, at), reply) for reply in offered)
    return Question(at, inputs[at], choices, tuple(reply for reply in groups if reply not in offered))


def is_answer(reply: Reply) -> bool:
    """Whether somebody could say that this is right, and a test could be made of it."""
    if not reply.outcome.decides or not reply.outcome.subject or reply.outcome.error in _EXITS:
        return False
    try:
        for wire in (reply.outcome.value, *(wire for _, wire in reply.outcome.changed)):
            values.source(wire)
    except values.NoSource:
        return False
    return True


def _worth(groups: Sequence[Reply], given: Input) -> float:
    """Expected bits, less for an input that says little. Zero where there is nothing to choose between."""
    answers = [reply for reply in groups if is_answer(reply)]
    unstable = sum(reply.weight for reply in groups if reply.outcome.unstable)
    if len(groups) < 2 or not answers or unstable > 0.5:
        return 0.0
    bits = -sum(reply.weight * math.log2(reply.weight) for reply in groups if reply.weight > 0)
    mishaps = sum(reply.weight for reply in groups if reply.outcome.mishap)
    if len(answers) == 1 and answers[0].outcome.mishap:
        return 0.0
    readable = min(1.0, _READABLE / max(_length(given, answers), 1))
    return bits * _TRUST[given.origin] * (1.0 - _MISHAPS * mishaps) * (0.5 + 0.5 * readable)


def _length(given: Input, answers: Sequence[Reply]) -> int:
    return len(given.text) + max(len(reply.outcome.words) for reply in answers)


def _words(reply: Reply, candidates: Candidates, at: int) -> str:
    if reply.outcome.subject != "error":
        return reply.outcome.words
    kinds = sorted({candidates[number].outcomes[at].error for number in reply.members})
    return f"{ERROR} ({', '.join(kinds)})"


def _verb(reply: Reply) -> str:
    verb = reply.outcome.words
    if reply.outcome.unstable:
        verb = "give something else each time"
    elif reply.outcome.subject:
        verb = f"say {_shortened(verb)}"
    elif len(reply.members) > 1:
        verb = {"does not end in time": "do not end in time", "was not tried": "were not tried"}.get(verb, verb)
    return verb


def _shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
