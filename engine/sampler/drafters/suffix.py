"""Drafts from what was said before: the prompt, the candidate itself, and its siblings.

Candidates of one prompt resemble each other. Where a candidate's last tokens occurred before, in any of them, what
followed there is a good guess. It needs no second model, and copying from siblings leaves the candidates independent
samples: a guess is accepted only where the target says so.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from engine.sampler.acceptance import Proposals
from engine.sampler.stopping import Row

SHORTEST, LONGEST = 2, 12  # tokens that must match
WITNESSES = 32  # latest occurrences that vote on what follows


class SuffixDrafter:
    """An index of every run of ``SHORTEST`` to ``LONGEST`` tokens to the places right after it."""

    name = "suffix"

    def begin(self, prompt: Sequence[int], between_chunks: Callable[[int], bool]) -> bool:
        self._texts: list[list[int]] = []  # the prompt, and one text per candidate, each with the prompt's end
        self._text_of: dict[int, list[int]] = {}  # by candidate; finished ones stay and go on being copied from
        self._places: defaultdict[tuple[int, ...], list[tuple[list[int], int]]] = defaultdict(list)
        self._prompt_end = list(prompt[-LONGEST:])
        text: list[int] = []
        for token in prompt:
            self._append(text, token)
        return True

    def propose(self, rows: Sequence[Row], counts: Sequence[int]) -> Proposals:
        texts = [self._catch_up(row) for row in rows]
        return Proposals([self._follow(text, count) for text, count in zip(texts, counts, strict=True)])

    def keep(self, rows: Sequence[int]) -> None:
        """The index goes by candidate, not by row: nothing moves."""

    def _catch_up(self, row: Row) -> list[int]:
        """Index what the row has committed since; its text with the prompt's end before it."""
        text = self._text_of.get(row.candidate)
        if text is None:
            text = self._text_of[row.candidate] = list(self._prompt_end)
        for token in row.tokens[len(text) - len(self._prompt_end) :]:
            self._append(text, token)
        return text

    def _append(self, text: list[int], token: int) -> None:
        text.append(token)
        for length in range(SHORTEST, min(LONGEST, len(text)) + 1):
            self._places[tuple(text[-length:])].append((text, len(text)))

    def _follow(self, text: list[int], count: int) -> list[int]:
        """What followed the longest match, by majority, for at most ``count`` tokens."""
        places = self._longest_match(text) if count > 0 else []
        draft: list[int] = []
        while len(draft) < count:
            votes = Counter(other[at] for other, at in places if at < len(other))
            if not votes:
                break
            token = votes.most_common(1)[0][0]
            draft.append(token)
            places = [(other, at + 1) for other, at in places if at < len(other) and other[at] == token]
        return draft

    def _longest_match(self, text: list[int]) -> list[tuple[list[int], int]]:
        """Places after the longest earlier run of the text's last tokens, latest last; its own end is not one."""
        for length in range(min(LONGEST, len(text)), SHORTEST - 1, -1):
            places = self._places.get(tuple(text[-length:]), ())
            followed = [(other, at) for other, at in places[-WITNESSES - 1 :] if at < len(other)]
            if followed:
                return followed
        return []
