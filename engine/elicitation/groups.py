"""Which candidates behave alike, on one input and on all of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from engine.elicitation.outcomes import Outcome

_DOUBTED = 0.25


@dataclass(frozen=True)
class Observed:
    """One candidate's outcomes, in the order of the inputs, and the mean log-probability of its tokens, if known.

    ``doubt``: how many examples of the prompt speak against it.
    """

    outcomes: tuple[Outcome, ...]
    mean_logprob: float | None = None
    doubt: int = 0


@dataclass(frozen=True)
class Reply:
    """Candidates with like outcomes on one input. ``outcome``: that of the first; ``weight``: their share of all."""

    outcome: Outcome
    members: tuple[int, ...]
    weight: float


Candidates = Mapping[int, Observed]


def weights(candidates: Candidates) -> dict[int, float]:
    """A candidate counts as the geometric mean of its tokens' probabilities; all of them together 1.

    Every example of the prompt that it contradicts takes most of that away.
    """
    known = [c.mean_logprob for c in candidates.values() if c.mean_logprob is not None]
    middle = sum(known) / len(known) if known else 0.0
    raw = {
        n: math.exp(middle if c.mean_logprob is None else c.mean_logprob) * _DOUBTED**c.doubt
        for n, c in candidates.items()
    }
    total = sum(raw.values())
    return {number: weight / total for number, weight in raw.items()}


def replies(candidates: Candidates, at: int) -> list[Reply]:
    """What the candidates did on input ``at``, the heaviest group first. What is like nothing stands alone."""
    share = weights(candidates)
    found: list[list[int]] = []
    for number, candidate in candidates.items():
        for members in found:
            if candidate.outcomes[at].like(candidates[members[0]].outcomes[at]):
                members.append(number)
                break
        else:
            found.append([number])
    groups = [
        Reply(candidates[members[0]].outcomes[at], tuple(members), sum(share[number] for number in members))
        for members in found
    ]
    return sorted(groups, key=lambda reply: (-len(reply.members), -reply.weight, reply.members))


def behaviours(candidates: Candidates) -> list[tuple[int, ...]]:
    """Candidates that are alike on every input on which both could be seen; the largest group first, then the heaviest.

    Candidates that were seen on nothing are alone.
    """
    share = weights(candidates)
    found: list[list[int]] = []
    for number, candidate in candidates.items():
        for members in found:
            if all(alike(candidate, candidates[other]) for other in members):
                members.append(number)
                break
        else:
            found.append([number])
    return sorted(map(tuple, found), key=lambda members: (-len(members), -sum(share[n] for n in members), members))


def alike(one: Observed, other: Observed) -> bool:
    """Whether no input tells them apart, and some input could have."""
    pairs = [(a, b) for a, b in zip(one.outcomes, other.outcomes, strict=True) if a.decides and b.decides]
    if not pairs or not all(a.like(b) for a, b in pairs):
        return False
    return all(a.like(b) or _unseen(a) or _unseen(b) for a, b in zip(one.outcomes, other.outcomes, strict=True))


def _unseen(outcome: Outcome) -> bool:
    """It says nothing about the candidate: there was no time, or it cannot be compared."""
    return outcome.kind == "skipped" or bool(outcome.subject and not outcome.decides)


def agreement(candidates: Candidates) -> dict[int, float]:
    """For each candidate, the mean share of the others that do the same, over all inputs: 0 to 1."""
    count = len(next(iter(candidates.values())).outcomes) if candidates else 0
    sums = dict.fromkeys(candidates, 0.0)
    for at in range(count):
        for reply in replies(candidates, at):
            for number in reply.members:
                sums[number] += reply.weight if reply.outcome.decides and not reply.outcome.mishap else 0.0
    return {number: total / count if count else 0.0 for number, total in sums.items()}
