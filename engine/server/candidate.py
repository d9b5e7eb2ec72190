"""One candidate while it streams: its text up to the one cut, its tokens, and why it ended."""

from dataclasses import dataclass, field

from engine.contract import Sampling
from engine.server.stream import Piece
from engine.text_end import TextEnd

# What servers say besides "stop"; whatever else they say, the text came to its own end.
_FINISHES = {"length": "length", "max_tokens": "length", "content_filter": "error", "abort": "error", "error": "error"}
_LONGEST = 32  # characters that no text has per token


@dataclass
class Candidate:
    """``tokens`` is what the server lets us know: exact with log-probabilities, else the pieces so far.

    ``before``: the text that it goes on from, if it completes one. ``finish``: the server's last word on it;
    ``stop_reason``: ours, empty while it lives.
    """

    number: int
    sampling: Sampling
    before: str = ""
    text: str = ""
    tokens: int = 0
    heard: bool = False
    finish: str = ""
    stop_reason: str = ""
    finished_s: float = 0.0
    _log_probs: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._text_end = TextEnd(self.sampling.stop, self.sampling.code_stop, self.before)

    @property
    def mean_log_prob(self) -> float | None:
        return sum(self._log_probs) / len(self._log_probs) if self._log_probs else None

    @property
    def counted(self) -> bool:
        """``tokens`` is exact."""
        return bool(self._log_probs)

    @property
    def _is_too_long(self) -> bool:
        """The server goes on past the limit. Pieces that are not counted may be parts of tokens: then by length."""
        limit = self.sampling.max_tokens
        return self.tokens > limit if self.counted else len(self.text) > limit * _LONGEST

    def add(self, piece: Piece) -> str:
        """Take in what came; the text that can be shown now. It ends at a stop string, whoever was to look for it."""
        self.heard = True
        self.tokens += piece.tokens
        self._log_probs += piece.log_probs
        if piece.finish:
            self.finish = _FINISHES.get(piece.finish, "stop")
        text, stopped = self._text_end.feed(piece.text)
        self.text += text
        if stopped:
            self.stop_reason = "stop"
        elif self._is_too_long and not self.finish:
            text += self.end("length")
        return text

    def end(self, reason: str) -> str:
        """Nothing will follow: the text that was held back."""
        self.stop_reason = reason
        rest = self._text_end.rest()
        self.text += rest
        return rest
