"""A candidate while it is decoded, and the one place that ends it: the earliest of an end token, an end in the text and
the length limit."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.contract import Sampling, StopReason
from engine.sampler.detokenizer import Decode, Detokenizer
from engine.sampler.penalties import TokenCounts
from engine.sampler.sampling import SamplingPoint
from engine.sampler.stopping import Limits
from engine.text_end import TextEnd


@dataclass(frozen=True)
class DraftSpan:
    """One commit: tokens of the row before it, drafts that were verified for it, and those of them that stayed."""

    start: int
    proposed: int
    accepted: int


@dataclass
class Row:
    """One candidate while it is decoded: its tokens, its text and its counts, all cut at the same place.

    ``prompt``: the ids it goes on from; ``opening``: the last of them, where they are not in the prompt that all rows
    share. ``position`` is that of the token to come, absolute. Nothing after the cut is
    kept, so nothing after it can be shown, counted or ranked. Where nothing that it says can end the row, tokens become
    text only when that is asked for, which need not be while a GPU waits.
    """

    candidate: int
    seed: int
    prompt: Sequence[int]
    limits: Limits
    decode: Decode
    sampling: Sampling = field(default_factory=Sampling)
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)  # of each token, the target's own raw log-softmax
    proposed: int = 0
    accepted: int = 0
    stop_reason: StopReason = StopReason.NONE  # while the row lives
    opening: Sequence[int] = ()

    def __post_init__(self) -> None:
        self._detokenizer = Detokenizer(self.decode)
        self._text_end = TextEnd(self.limits.stop, self.limits.code_stop, self.limits.before, self.limits.thinking)
        self._text = ""
        self._unread: list[int] = []  # tokens that are not text yet
        self._blocks: list[DraftSpan] = []
        self._reach: list[int] = []  # characters of text that each token and those before it make
        self._counts = TokenCounts(self.prompt, self.tokens)

    @property
    def text(self) -> str:
        """What is certain to be shown."""
        self._read()
        return self._text

    @property
    def prompt_length(self) -> int:
        return len(self.prompt)

    @property
    def own(self) -> list[int]:
        """All tokens behind the shared prompt."""
        return [*self.opening, *self.tokens]

    @property
    def shared_length(self) -> int:
        """Tokens of the shared prompt."""
        return len(self.prompt) - len(self.opening)

    @property
    def position(self) -> int:
        return self.prompt_length + len(self.tokens)

    @property
    def room(self) -> int:
        """Tokens that may still follow."""
        return self.limits.max_tokens - len(self.tokens)

    def place(self, ahead: Sequence[int] = ()) -> SamplingPoint:
        """What the distribution of the token behind ``ahead``, drafts that follow the row, depends on."""
        return SamplingPoint(self.sampling, self._counts, ahead)

    @property
    def mean_log_prob(self) -> float | None:
        return sum(self.log_probs) / len(self.tokens) if self.tokens else None

    def commit(self, tokens: list[int], log_probs: list[float], proposed: int = 0) -> None:
        """Append the accepted drafts and the target's own token, up to the cut; all but the last were drafts."""
        self._blocks.append(DraftSpan(len(self.tokens), proposed, accepted=len(tokens) - 1))
        self.proposed += proposed
        self.accepted += len(tokens) - 1
        for token, log_prob in zip(tokens, log_probs, strict=True):
            self.tokens.append(token)
            self.log_probs.append(log_prob)
            if token in self.limits.eos_ids:
                self.end(StopReason.STOP)
            elif self._says(token):
                self.stop_reason = StopReason.STOP
            elif self.room == 0:
                self.end(StopReason.LENGTH)
            self._reach.append(self._text_end.length)
            if self.stop_reason:
                self._cut()
                break

    def end(self, reason: StopReason) -> None:
        """No token will follow: release the text that was held back."""
        self.stop_reason = reason
        self._read()
        if not self._show(self._detokenizer.flush()):
            self._text += self._text_end.rest()

    def abandon(self, reason: StopReason) -> None:
        """No token will follow, and nothing more is decoded: the text stays as it was shown."""
        self.stop_reason = reason
        self._unread.clear()

    def _says(self, token: int) -> bool:
        """One more token to become text; True if that is seen to end it."""
        self._unread.append(token)
        return self._text_end.can_come and self._read()

    def _read(self) -> bool:
        """Bring the text up to the tokens; True if that is where it ends."""
        unread, self._unread, ended = self._unread, [], False
        for token in unread:
            ended = self._show(self._detokenizer.add(token))
        return ended

    def _show(self, piece: str) -> bool:
        """Add what is certain to be shown; True if that is where the text ends."""
        text, ended = self._text_end.feed(piece)
        self._text += text
        return ended

    def _cut(self) -> None:
        """Tokens of which no character is shown go, and with them whatever was counted of them."""
        if (end := self._text_end.cut) is not None:
            stay = bisect_left(self._reach, end) + 1 if end else 0
            del self.tokens[stay:], self.log_probs[stay:]
        kept = [block for block in self._blocks if block.start < len(self.tokens)]
        self.proposed = sum(block.proposed for block in kept)
        self.accepted = sum(block.accepted for block in kept)
        if kept:  # the last of them is cut itself
            left = len(self.tokens) - kept[-1].start
            self.proposed -= max(0, kept[-1].proposed - left)
            self.accepted -= max(0, kept[-1].accepted - left)
