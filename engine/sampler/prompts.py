"""Which candidates of a run go on from one shared prompt, and what each of them has of its own behind it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from engine.contract import BasslineError, Request, Turn


class PromptTooLong(BasslineError):
    """The prompt leaves no room for an answer."""


@dataclass(frozen=True)
class SharedPrompt:
    """``tokens`` that are read once for all ``candidates``."""

    tokens: Sequence[int]
    candidates: list[int]


class RunPrompts:
    """What every candidate of a run is asked, as token ids.

    All share the request's own prompt, and an opening is what its candidate has behind it. Where the chat template lays
    out a longer conversation otherwise, as the ids show, that candidate goes on from a prompt of its own, later.
    """

    def __init__(self, request: Request, encode: Callable[[Request], list[int]], context: int):
        """``context``: tokens that the model reads at most. Raises BasslineError where no candidate can be asked."""
        self._request, self._encode, self._context = request, encode, context
        self.prompt = encode(replace(request, openings={}))
        self.waiting: list[int] = []  # candidates that no shared prompt was given out for
        self.refused: dict[int, BasslineError] = {}
        self._conversations: dict[int, list[int]] = {}  # of candidates with an opening
        for number in request.numbers:
            self.add([number], request.openings.get(number, ()))
        if not self.waiting:
            raise self.refused[request.first_candidate]

    def add(self, numbers: Iterable[int], opening: tuple[Turn, ...]) -> None:
        """Further candidates; those that cannot be asked are ``refused``."""
        for number in numbers:
            try:
                if opening:
                    asked = replace(self._request, openings={number: opening}).asked_of(number)
                    self._conversations[number] = self._encode(asked)
                self._check_length(len(self.tokens_of(number)))
            except BasslineError as error:
                self.refused[number] = error
            else:
                self.waiting.append(number)

    def tokens_of(self, number: int) -> Sequence[int]:
        """All that a candidate goes on from."""
        return self._conversations.get(number, self.prompt)

    def room_of(self, number: int) -> int:
        """Tokens that may follow there."""
        return self._context - len(self.tokens_of(number))

    def next(self) -> SharedPrompt | None:
        """A prompt, the request's own first, and all candidates that wait for it; they wait no longer."""
        shared = [self._shared_by(number) for number in self.waiting]
        if not shared:
            return None
        prompt = self.prompt if self.prompt in shared else shared[0]
        return SharedPrompt(prompt, self.take(prompt))

    def take(self, prompt: Sequence[int]) -> list[int]:
        """Those that wait for this prompt, and wait no longer."""
        taken = [number for number in self.waiting if self._shared_by(number) == prompt]
        self.waiting = [number for number in self.waiting if number not in taken]
        return taken

    def drop(self, number: int) -> bool:
        """Forget one that waits; False if it does not."""
        if number not in self.waiting:
            return False
        self.waiting.remove(number)
        return True

    def _shared_by(self, number: int) -> Sequence[int]:
        tokens = self.tokens_of(number)
        return self.prompt if tokens[: len(self.prompt)] == self.prompt else tokens

    def _check_length(self, length: int) -> None:
        if length >= self._context:
            raise PromptTooLong(
                f"The prompt has {length:,} tokens and the model reads at most {self._context:,}; "
                "shorten the prompt or choose a model with a longer context."
            )
