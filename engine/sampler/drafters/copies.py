"""Where the last tokens of a text occurred before, and what followed there."""

from collections import Counter
from collections.abc import Sequence

from engine.sampler.drafters.confidence import LONGEST, Agreement, CopyKind

SHORTEST = 2  # tokens that must match
WITNESSES = 32  # latest occurrences that vote on what follows
CROWD = 128  # occurrences of one run that are kept; of the candidates that are decoded at a time few stand at one place
GENERATION = 8192  # tokens; of answers, two generations are kept. A token costs about 2 kB

Place = tuple[list[int], int]  # a text, and the index of the token that follows there
Index = dict[tuple[int, ...], list[Place]]


class Copies:
    """An index of every run of ``SHORTEST`` to ``LONGEST`` tokens to the places right after it.

    The prompt is indexed as long as it is one; of what is said, the latest: when a generation is full, the one before
    it is forgotten whole. So memory has a bound, however many runs a prompt has.
    """

    def __init__(self, prompt: Sequence[int] = ()) -> None:
        self._prompt: list[int] = []
        self._of_prompt: Index = {}
        self._older: Index = {}
        self._newer: Index = {}
        self._size = 0  # tokens in the newer generation
        self.go_on(prompt)

    def go_on(self, prompt: Sequence[int]) -> None:
        """``prompt`` is the prompt now: it begins with that of before, which is known already."""
        for token in prompt[len(self._prompt) :]:
            _add(self._of_prompt, self._prompt, token)

    def append(self, text: list[int], token: int) -> None:
        """``text`` gains a token, and what it ends with from now on is found."""
        if self._size == GENERATION:
            self._older, self._newer, self._size = self._newer, {}, 0
        _add(self._newer, text, token)
        self._size += 1

    def longest_match(self, line: Sequence[int]) -> tuple[int, list[Place]]:
        """Length of the longest earlier run of the line's last tokens, and the places after it, latest last."""
        match, found = 0, list[Place]()
        for length in range(SHORTEST, min(LONGEST, len(line)) + 1):
            places = self._places(tuple(line[-length:]))
            if not any(at < len(text) for text, at in reversed(places)):  # a text's own end is followed by nothing yet
                break
            match, found = length, places
        return match, [(text, at) for text, at in found[-WITNESSES - 1 :] if at < len(text)]

    def _places(self, run: tuple[int, ...]) -> list[Place]:
        """Of all indices, oldest first."""
        found = [places for index in (self._of_prompt, self._older, self._newer) if (places := index.get(run))]
        return found[0] if len(found) == 1 else [place for places in found for place in places]


class History:
    """What was said behind one prompt, from run to run: a prompt that goes on from the last one keeps it."""

    def __init__(self) -> None:
        self.prompt: list[int] = []
        self.copies = Copies()

    def begin(self, prompt: Sequence[int]) -> None:
        if self.prompt != list(prompt[: len(self.prompt)]):
            self.forget()
        self.copies.go_on(prompt)
        self.prompt = list(prompt)

    def forget(self) -> None:
        self.prompt, self.copies = [], Copies()


def _add(index: Index, text: list[int], token: int) -> None:
    text.append(token)
    place = (text, len(text))  # one for all lengths: most of an index is its entries
    for length in range(SHORTEST, min(LONGEST, len(text)) + 1):
        places = index.setdefault(tuple(text[-length:]), [])
        places.append(place)
        if len(places) > CROWD:
            del places[: CROWD // 2]


def vote(places: Sequence[Place], match: int) -> tuple[int, CopyKind] | None:
    """What followed at most of the places."""
    votes = Counter(text[at] for text, at in places if at < len(text))
    if not votes:
        return None
    (token, most), voters = votes.most_common(1)[0], votes.total()
    agreement = Agreement.DIVIDED if most < voters else Agreement.SINGLE if most == 1 else Agreement.UNANIMOUS
    return token, CopyKind(min(match, LONGEST), agreement)


def following(places: Sequence[Place], token: int) -> list[Place]:
    """The places one further on, of those where ``token`` followed."""
    return [(text, at + 1) for text, at in places if at < len(text) and text[at] == token]
