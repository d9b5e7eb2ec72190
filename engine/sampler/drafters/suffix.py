"""Drafts that cost no pass: copies of earlier text, and where nothing repeats, n-grams or the target's hidden states.

Candidates of one prompt resemble each other. Where a candidate's last tokens occurred before, in the prompt, in itself
or in a sibling, what followed there is a good guess (``copies``). It needs no second model, and copying from siblings
leaves the candidates independent samples: a guess is accepted only where the target says so. Elsewhere guesses come
from a table of n-grams (``ngrams``) or from the target's own hidden states (``speculator``), whichever looks likelier.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.contract import BadRequest, Request
from engine.sampler.acceptance import AcceptanceRule, Proposals
from engine.sampler.budget import DraftBudget
from engine.sampler.drafters import Drafter
from engine.sampler.drafters.confidence import LONGEST, Confidence, GuessKind
from engine.sampler.drafters.copies import Copies, History, Place, following, vote
from engine.sampler.drafters.ngrams import Ngrams
from engine.sampler.drafters.speculator import Speculator
from engine.sampler.drafters.timing import DraftTimer
from engine.sampler.forward_pass import Features
from engine.sampler.pair import LoadedPair
from engine.sampler.row import Row

ALWAYS_GUESSED = 4  # tokens guessed in any case: those that are not verified are judged against what comes, for nothing
SURE = 0.9  # from this probability on, no other drafter is asked
HOPELESS = 0.05  # chance of being reached below which no more is guessed in any case

Option = tuple[int, GuessKind]  # a token, and how good a guess it is


@dataclass
class Guess:
    """What is guessed for a candidate that had ``start`` tokens: at most ``count`` tokens, and how good each looks.

    ``line``: the last tokens said, then those guessed; ``places``: where as many as ``match`` of them occurred before.
    """

    start: int
    count: int
    line: list[int]
    match: int
    places: list[Place]
    tokens: list[int] = field(default_factory=list)
    kinds: list[GuessKind] = field(default_factory=list)
    survival: list[float] = field(default_factory=list)  # chance that each guess, and all before it, are right

    @property
    def chance(self) -> float:
        """That all guesses so far are right."""
        return self.survival[-1] if self.survival else 1.0

    def goes_on(self, least: float) -> bool:
        """One guess is made in any case: what it would have been worth is how a run learns that drafts pay again."""
        return len(self.tokens) < self.count and (not self.tokens or self.chance > least)


class SuffixDrafter(Drafter):
    """Guesses, token by token, what of all that is known of the text looks likeliest to be right.

    All that is known goes by candidate, not by row, and its index is small beside a model: nothing moves when
    rows leave, and when memory is short, what was said is still worth copying.
    """

    def __init__(
        self, ngrams: Ngrams | None = None, speculator: Speculator | None = None, history: History | None = None
    ):
        """``ngrams``: what to guess where nothing repeats; ``speculator``: what follows from hidden states.

        ``history``: what was said in earlier runs.
        """
        self.name = "suffix" if speculator is None else "speculator"
        self._ngrams, self.speculator, self._history = ngrams, speculator, history or History()
        self._timer = DraftTimer()

    @property
    def needs(self) -> Features:
        return Features(hidden=self.speculator is not None)

    def cost(self, rows: int, budget: DraftBudget) -> float:
        """Of a call, lately: a run's rows and guesses change slowly."""
        return self._timer.seconds

    @property
    def _copies(self) -> Copies:
        return self._history.copies

    def begin(self, prompt: Sequence[int], between_chunks: Callable[[int], bool]) -> bool:
        """A prompt that goes on from the last one, or is that one again, keeps what its candidates said."""
        self._history.begin(prompt)
        self._read: set[tuple[int, ...]] = set()  # openings that are indexed
        self._text_of: dict[int, list[int]] = {}  # by candidate; finished ones stay and go on being copied from
        self._guesses: dict[int, Guess] = {}
        self._states: dict[int, Tensor] = {}  # of the speculator, where each candidate's last token was drawn
        self._confidence = Confidence()
        return True

    def forget(self) -> None:
        """Nothing that was said before is copied from."""
        self._history.forget()

    def observe(self, rows: Sequence[Row], hidden: Tensor) -> None:
        """``hidden`` ``[B, size]``: what the target's output layer read where each row's last token was drawn."""
        if self.speculator is not None:
            states = self.speculator.begin(hidden)
            self._states.update((row.candidate, state) for row, state in zip(rows, states, strict=True))

    def propose(self, rows: Sequence[Row], budget: DraftBudget) -> Proposals:
        with self._timer.measuring():
            return self._propose(rows, budget.guesses, max(HOPELESS, budget.least_chance))

    def _propose(self, rows: Sequence[Row], counts: Sequence[int], least: float) -> Proposals:
        texts = [self._catch_up(row) for row in rows]  # of all rows first: they copy from each other
        guesses = [
            self._begin(text, len(row.tokens), max(count, ALWAYS_GUESSED))
            for text, row, count in zip(texts, rows, counts, strict=True)
        ]
        states = {index: self._states[row.candidate] for index, row in enumerate(rows) if row.candidate in self._states}
        self._follow(guesses, states, least)
        self._guesses.update((row.candidate, guess) for row, guess in zip(rows, guesses, strict=True))
        wanted = [max(count, 0) for count in counts]
        return Proposals(
            [guess.tokens[:count] for guess, count in zip(guesses, wanted, strict=True)],
            survival=[guess.survival[:count] for guess, count in zip(guesses, wanted, strict=True)],
        )

    def _begin(self, text: list[int], start: int, count: int) -> Guess:
        line = text[-LONGEST:]
        return Guess(start, count, line, *self._copies.longest_match(line))

    def _catch_up(self, row: Row) -> list[int]:
        """Judge the last guess by what was committed since, index that, and return the row's text so far."""
        if guess := self._guesses.get(row.candidate):
            for token, truth, kind in zip(guess.tokens, row.tokens[guess.start :], guess.kinds, strict=False):
                self._confidence.learn(kind, token == truth)
                if token != truth:
                    break
        beginning = row.prompt[-LONGEST:]  # so that matches cross over from the prompt
        text = self._text_of.get(row.candidate)
        if text is None:
            text = self._text_of[row.candidate] = list(beginning)
            self._read_opening(row)
        for token in row.tokens[len(text) - len(beginning) :]:
            self._copies.append(text, token)
        return text

    def _read_opening(self, row: Row) -> None:
        """It is copied from like the prompt; what several rows begin with counts once."""
        opening = tuple(row.opening)
        if opening and opening not in self._read:
            self._read.add(opening)
            text = list(row.prompt[: row.shared_length][-LONGEST:])
            for token in opening:
                self._copies.append(text, token)

    def _follow(self, guesses: list[Guess], states: dict[int, Tensor], least: float) -> None:
        """Guess token after token, for all rows side by side, to each row's first that is too unlikely.

        ``states``: of a speculator, by the guess's index, where it is known.
        """
        for depth in range(max((guess.count for guess in guesses), default=0)):
            going = [index for index, guess in enumerate(guesses) if guess.goes_on(least)]
            if not going:
                break
            seen = {index: self._repeats(guesses[index]) for index in going}
            unsure = [index for index, option in seen.items() if option is None or self._chance(option) < SURE]
            # A speculator's answer costs about as much as one more token in the line does.
            is_worth_it = sum(guesses[index].chance for index in unsure) > 2 * least
            predicted, states = self._predict(guesses, states, unsure, depth) if is_worth_it else ({}, {})
            for index, option in seen.items():
                self._extend(guesses[index], [option, predicted.get(index)])

    def _predict(
        self, guesses: list[Guess], states: dict[int, Tensor], unsure: list[int], depth: int
    ) -> tuple[dict[int, Option], dict[int, Tensor]]:
        """What a speculator says follows these guesses, and its states behind their last tokens."""
        asked = [index for index in unsure if index in states]
        if self.speculator is None or not asked:
            return {}, {}
        before = torch.stack([states[index] for index in asked])
        after, options = self.speculator.next(before, [guesses[index].line[-1] for index in asked], depth)
        return dict(zip(asked, options, strict=True)), dict(zip(asked, after, strict=True))

    def _repeats(self, guess: Guess) -> Option | None:
        """The likelier of what copies and n-grams say."""
        frequent = self._ngrams.next(guess.line) if self._ngrams else None
        options = [option for option in (vote(guess.places, guess.match), frequent) if option]
        return max(options, key=self._chance, default=None)

    def _chance(self, option: Option) -> float:
        return self._confidence.of(option[1])

    def _extend(self, guess: Guess, options: Sequence[Option | None]) -> None:
        """By the likeliest; a guess that nothing is known of ends here."""
        known = [option for option in options if option]
        if not known:
            guess.count = len(guess.tokens)
            return
        token, kind = max(known, key=self._chance)
        guess.survival.append(self._confidence.of(kind) * guess.chance)
        guess.tokens.append(token)
        guess.kinds.append(kind)
        guess.line.append(token)
        places = following(guess.places, token)
        found = (guess.match + 1, places) if places else self._copies.longest_match(guess.line)
        guess.match, guess.places = found


def open_suffix(pair: LoadedPair, request: Request, rule: AcceptanceRule) -> SuffixDrafter:
    """Copies and n-grams."""
    return SuffixDrafter(pair.ngrams, history=pair.history)


def open_speculator(pair: LoadedPair, request: Request, rule: AcceptanceRule) -> SuffixDrafter:
    """Copies, n-grams and the target's hidden states."""
    if pair.speculator is None:
        raise BadRequest("There is no speculator for this model here; choose the suffix drafter.")
    return SuffixDrafter(pair.ngrams, pair.speculator, pair.history)
