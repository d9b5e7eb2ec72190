"""The one place that ends a candidate: the earliest of an end token, a stop string and the length limit."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.contract import Request, Sampling
from engine.sampler.detokenizer import Decode, Detokenizer
from engine.sampler.penalties import Said
from engine.sampler.sampling import Place
from engine.text_end import StopStrings


@dataclass(frozen=True)
class Limits:
    """What ends a candidate. ``eos_ids``: every id that ends a turn; ``max_tokens``: the end token counts as one."""

    eos_ids: frozenset[int]
    max_tokens: int
    stop: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: Request, candidate: int, eos_ids: frozenset[int], room: int) -> "Limits":
        """Of one candidate of a request; ``room``: tokens that the context leaves."""
        sampling = request.sampling_of(candidate)
        return cls(eos_ids, min(sampling.max_tokens, room), sampling.stop)


@dataclass
class Row:
    """One candidate while it is decoded: its tokens, its text and its counts, all cut at the same place.

    ``prompt``: the ids it goes on from. ``position`` is that of the token to come, absolute. Nothing after the cut is
    kept, so nothing after it can be shown, counted or ranked.
    """

    candidate: int
    seed: int
    prompt: Sequence[int]
    limits: Limits
    decode: Decode
    sampling: Sampling = field(default_factory=Sampling)
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    log_prob: float = 0.0  # sum over the tokens, of the target's own raw log-softmax
    proposed: int = 0
    accepted: int = 0
    stop_reason: str = ""  # empty while the row lives

    def __post_init__(self) -> None:
        self._detokenizer = Detokenizer(self.decode)
        self._stop_strings = StopStrings(self.limits.stop)
        self._said = Said(self.prompt, self.tokens)

    @property
    def prompt_length(self) -> int:
        return len(self.prompt)

    @property
    def position(self) -> int:
        return self.prompt_length + len(self.tokens)

    @property
    def room(self) -> int:
        """Tokens that may still follow."""
        return self.limits.max_tokens - len(self.tokens)

    def place(self, ahead: Sequence[int] = ()) -> Place:
        """What the distribution of the token behind ``ahead``, drafts that follow the row, depends on."""
        return Place(self.sampling, self._said, ahead)

    @property
    def mean_log_prob(self) -> float | None:
        return self.log_prob / len(self.tokens) if self.tokens else None

    def commit(self, tokens: list[int], log_probs: list[float], proposed: int = 0) -> None:
        """Append the accepted drafts and the target's own token, up to the cut; all but the last were drafts."""
        before = len(self.tokens)
        for token, log_prob in zip(tokens, log_probs, strict=True):
            self.tokens.append(token)
            self.log_prob += log_prob
            if token in self.limits.eos_ids:
                self.end("stop")
            elif self._show(self._detokenizer.add(token)):
                self.stop_reason = "stop"
            elif self.room == 0:
                self.end("length")
            if self.stop_reason:
                break
        kept = len(self.tokens) - before
        self.proposed += min(proposed, kept) if self.stop_reason else proposed
        self.accepted += min(len(tokens) - 1, kept)

    def end(self, reason: str) -> None:
        """No token will follow: release the text that was held back."""
        self.stop_reason = reason
        if not self._show(self._detokenizer.flush()):
            self.text += self._stop_strings.rest()

    def abandon(self, reason: str) -> None:
        """No token will follow, and nothing more is decoded: the text stays as it was shown."""
        self.stop_reason = reason

    def _show(self, piece: str) -> bool:
        """Add what is certain to be shown; True if a stop string ended the text."""
        text, stopped = self._stop_strings.feed(piece)
        self.text += text
        return stopped
