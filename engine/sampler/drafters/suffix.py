"""Drafts from what was said before: the prompt, the candidate itself, and its siblings.

Candidates of one prompt resemble each other. Where a candidate's last tokens occurred before, in any of them, what
followed there is a good guess. It needs no second model, and copying from siblings leaves the candidates independent
samples: a guess is accepted only where the target says so.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.sampler.acceptance import Proposals
from engine.sampler.drafters.confidence import LONGEST, Agreement, Confidence, Kind
from engine.sampler.drafters.ngrams import Habit, Ngrams
from engine.sampler.stopping import Row

SHORTEST = 2  # tokens that must match
WITNESSES = 32  # latest occurrences that vote on what follows
JUDGED = 4  # tokens guessed in any case: those that are not verified are judged against what comes, for nothing

HOPELESS = 0.05  # chance of being reached below which no more is guessed in any case

Place = tuple[list[int], int]  # a text, and the index of the token that follows there
Option = tuple[int, Kind | Habit]  # a token, and how good a guess it is


@dataclass(frozen=True)
class Guess:
    """What was guessed for a candidate when it had ``start`` tokens, and how good each guess looked."""

    start: int
    tokens: list[int]
    kinds: list[Kind | Habit]


class SuffixDrafter:
    """An index of every run of ``SHORTEST`` to ``LONGEST`` tokens to the places right after it."""

    name = "suffix"
    is_free = True

    def __init__(self, ngrams: Ngrams | None = None):
        """``ngrams``: what to guess where nothing repeats, or None."""
        self._ngrams = ngrams
        self.least_chance: Callable[[int], float] = lambda rows: 0.0  # of guesses that anybody will want, by rows
        self._prompt: list[int] = []
        self._places: defaultdict[tuple[int, ...], list[Place]] = defaultdict(list)

    def begin(self, prompt: Sequence[int], between_chunks: Callable[[int], bool]) -> bool:
        """A prompt that goes on from the last one, or is that one again, keeps what its candidates said."""
        if self._prompt != list(prompt[: len(self._prompt)]):
            self._places.clear()
        self._prompt = list(prompt)
        self._text_of: dict[int, list[int]] = {}  # by candidate; finished ones stay and go on being copied from
        self._guesses: dict[int, Guess] = {}
        self._confidence = Confidence()
        text: list[int] = []
        for token in prompt:
            self._append(text, token)
        return True

    def propose(self, rows: Sequence[Row], counts: Sequence[int]) -> Proposals:
        texts = [self._catch_up(row) for row in rows]
        least = max(HOPELESS, self.least_chance(len(rows)))
        tokens: list[list[int]] = []
        survival: list[list[float] | None] = []
        for row, text, count in zip(rows, texts, counts, strict=True):
            guess = self._guesses[row.candidate] = self._follow(text, len(row.tokens), max(count, JUDGED), least)
            tokens.append(guess.tokens[: max(count, 0)])
            survival.append(self._survival(guess.kinds[: max(count, 0)]))
        return Proposals(tokens, survival=survival)

    def keep(self, rows: Sequence[int]) -> None:
        """The index goes by candidate, not by row: nothing moves."""

    def _catch_up(self, row: Row) -> list[int]:
        """Judge the last guess by what was committed since, index that, and return the row's text so far."""
        if guess := self._guesses.get(row.candidate):
            for token, truth, kind in zip(guess.tokens, row.tokens[guess.start :], guess.kinds, strict=False):
                self._confidence.learn(kind, token == truth)
                if token != truth:
                    break
        beginning = self._prompt[-LONGEST:]  # so that matches cross over from the prompt
        text = self._text_of.get(row.candidate)
        if text is None:
            text = self._text_of[row.candidate] = list(beginning)
        for token in row.tokens[len(text) - len(beginning) :]:
            self._append(text, token)
        return text

    def _append(self, text: list[int], token: int) -> None:
        text.append(token)
        for length in range(SHORTEST, min(LONGEST, len(text)) + 1):
            self._places[tuple(text[-length:])].append((text, len(text)))

    def _follow(self, text: list[int], start: int, count: int, least: float) -> Guess:
        """The likeliest tokens to follow, one after the other: at most ``count``, to the first below ``least``.

        One is made in any case: what it would have been worth is how a run learns that drafts pay again.
        """
        line = text[-LONGEST:]
        match, places = self._longest_match(line)
        guess, chance = Guess(start, [], []), 1.0
        while len(guess.tokens) < count and (chance > least or not guess.tokens):
            options = [option for option in (_vote(places, match), self._habit(line)) if option]
            if not options:
                break
            token, kind = max(options, key=lambda option: self._confidence.of(option[1]))
            chance *= self._confidence.of(kind)
            guess.tokens.append(token)
            guess.kinds.append(kind)
            line.append(token)
            places = [(other, at + 1) for other, at in places if at < len(other) and other[at] == token]
            match, places = (match + 1, places) if places else self._longest_match(line)
        return guess

    def _habit(self, line: list[int]) -> Option | None:
        return self._ngrams.next(line) if self._ngrams else None

    def _longest_match(self, text: list[int]) -> tuple[int, list[Place]]:
        """Length of the longest earlier run of the text's last tokens, and the places after it, latest last."""
        for length in range(min(LONGEST, len(text)), SHORTEST - 1, -1):
            places = self._places.get(tuple(text[-length:]), ())
            # The text's own end is among them and is followed by nothing yet.
            followed = [(other, at) for other, at in places[-WITNESSES - 1 :] if at < len(other)]
            if followed:
                return length, followed
        return 0, []

    def _survival(self, kinds: Sequence[Kind | Habit]) -> list[float]:
        """Chance that each guess is reached and right: the product of those up to it."""
        chances, chance = [], 1.0
        for kind in kinds:
            chance *= self._confidence.of(kind)
            chances.append(chance)
        return chances


def _vote(places: list[Place], match: int) -> Option | None:
    """What followed at most of the places."""
    votes = Counter(other[at] for other, at in places if at < len(other))
    if not votes:
        return None
    (token, most), voters = votes.most_common(1)[0], votes.total()
    agreement = Agreement.DIVIDED if most < voters else Agreement.SINGLE if most == 1 else Agreement.UNANIMOUS
    return token, Kind(min(match, LONGEST), agreement)
