"""Keys and values of the run before, in case the next prompt goes on from it: a follow-up reads only what is new."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

BUDGET = 256 * 2**20  # bytes of answers that are kept; reading one again takes a second, so it is no loss to stop here

Segment = list[tuple[Tensor, Tensor]]  # per layer: keys and values [1, heads, tokens, dim]


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """Tokens that both begin with."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@dataclass(frozen=True)
class PrefixMatch:
    """How much of a prompt is known: tokens of the earlier prompt, then of an answer to it."""

    prompt: int
    answer: int = 0
    segment: Segment | None = None


class PrefixReuse:
    """The last prompt by its ids (its keys and values are the cache's prefix) and the answers that were given to it."""

    def __init__(self, prompt: Sequence[int] = ()) -> None:
        """``prompt``: what the cache's prefix is now."""
        self._prompt = list(prompt)
        self._answers: list[tuple[list[int], Segment]] = []
        self._bytes = self._earlier = 0  # the first so many answers are of earlier runs: they make room for new ones

    def keep(self, answer: Sequence[int], segment: Segment) -> None:
        """An answer to the prompt, while the budget lasts; ``segment`` may be without its last token."""
        size = _bytes_of(segment)
        while self._earlier and self._bytes + size > BUDGET:
            self._bytes -= _bytes_of(self._answers.pop(0)[1])
            self._earlier -= 1
        if self._bytes + size <= BUDGET:
            self._answers.append((list(answer), segment))
            self._bytes += size

    def match(self, prompt: Sequence[int]) -> PrefixMatch:
        """The longest known beginning of ``prompt``, its last token aside: that one must be read to go on from."""
        known = min(common_length(self._prompt, prompt), len(prompt) - 1)
        return PrefixMatch(known) if known < len(self._prompt) else self.behind_prompt(prompt[known:])

    def behind_prompt(self, tokens: Sequence[int]) -> PrefixMatch:
        """The longest known beginning of ``tokens`` behind the whole prompt, their last one aside."""
        best, rest = PrefixMatch(len(self._prompt)), tokens[:-1]
        for answer, segment in self._answers:
            length = min(common_length(answer, rest), segment[0][0].shape[2])
            if length > best.answer:
                best = PrefixMatch(len(self._prompt), length, segment)
        return best

    def going_on_with(self, prompt: Sequence[int]) -> "PrefixReuse":
        """What is known once ``prompt`` is the prompt: with the answers so far, where it is the same."""
        if self._prompt != list(prompt):
            return PrefixReuse(prompt)
        self._earlier = len(self._answers)
        return self


def _bytes_of(segment: Segment) -> int:
    return sum(part.numel() * part.element_size() for layer in segment for part in layer)
