"""Where the last tokens of a text occurred before, and what followed there."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from engine.sampler.drafters.confidence import LONGEST, Agreement, Kind

SHORTEST = 2  # tokens that must match
WITNESSES = 32  # latest occurrences that vote on what follows

Place = tuple[list[int], int]  # a text, and the index of the token that follows there


class Copies:
    """An index of every run of ``SHORTEST`` to ``LONGEST`` tokens to the places right after it."""

    def __init__(self) -> None:
        self._places: defaultdict[tuple[int, ...], list[Place]] = defaultdict(list)

    def append(self, text: list[int], token: int) -> None:
        """``text`` gains a token, and what it ends with from now on is found."""
        text.append(token)
        for length in range(SHORTEST, min(LONGEST, len(text)) + 1):
            self._places[tuple(text[-length:])].append((text, len(text)))

    def longest_match(self, line: Sequence[int]) -> tuple[int, list[Place]]:
        """Length of the longest earlier run of the line's last tokens, and the places after it, latest last."""
        match, found = 0, list[Place]()
        for length in range(SHORTEST, min(LONGEST, len(line)) + 1):
            places = self._places.get(tuple(line[-length:]), [])
            if not any(at < len(text) for text, at in reversed(places)):  # a text's own end is followed by nothing yet
                break
            match, found = length, places
        return match, [(text, at) for text, at in found[-WITNESSES - 1 :] if at < len(text)]


def vote(places: Sequence[Place], match: int) -> tuple[int, Kind] | None:
    """What followed at most of the places."""
    votes = Counter(text[at] for text, at in places if at < len(text))
    if not votes:
        return None
    (token, most), voters = votes.most_common(1)[0], votes.total()
    agreement = Agreement.DIVIDED if most < voters else Agreement.SINGLE if most == 1 else Agreement.UNANIMOUS
    return token, Kind(min(match, LONGEST), agreement)


def following(places: Sequence[Place], token: int) -> list[Place]:
    """The places one further on, of those where ``token`` followed."""
    return [(text, at + 1) for text, at in places if at < len(text) and text[at] == token]
