"""One candidate while it streams: its text up to the one cut, its tokens, and why it ended."""

import re
from dataclasses import dataclass, field, replace

from engine.contract import Sampling, StopReason
from engine.server.stream import Piece, well_formed
from engine.text_end import TextEnd

# What servers say besides "stop", by a part of the word: each has words of its own, such as model_length, MAX_TOKENS or
# insufficient_system_resource. Whatever else they say, the text came to its own end.
_CUT = re.compile("length|max|limit|exceed|trunc|budget")
_BROKEN = re.compile(
    "filter|safety|sensitive|prohibit|block|recitation|spii|abort|cancel|error|fail|insufficient|overload|refus|timeout"
    "|malformed|interrupt"
)
_TOOLS = re.compile("tool|function")
_LONGEST = 32  # characters that no text has per token


@dataclass
class ServerCandidate:
    """``tokens`` is what the server lets us know: exact with log-probabilities, else the pieces so far.

    ``before``: the text that it goes on from, if it completes one. ``finish``: the server's last word on it;
    ``finish_reason``: in its own word. ``goes_on``: text came behind it. ``stop_reason``: ours.
    """

    number: int
    sampling: Sampling
    before: str = ""
    text: str = ""
    tokens: int = 0
    has_begun: bool = False
    finish: StopReason = StopReason.NONE
    finish_reason: str = ""
    goes_on: bool = False
    stop_reason: StopReason = StopReason.NONE
    finished_s: float = 0.0
    _log_probs: list[float] = field(default_factory=list)
    _half: str = ""  # of a character whose other half comes in the next piece

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
        self.has_begun = True
        if piece.whole and self._text_end.length:
            piece = replace(piece, text="", tokens=0, log_probs=())  # said before, piece by piece
        self.tokens += piece.tokens
        self._log_probs += piece.log_probs
        self.goes_on = self.goes_on or bool(self.finish and piece.text)
        text, stopped = self._text_end.feed(self._whole_characters(piece.text))
        self.text += text
        if piece.finish:
            self.finish_reason, self.finish = piece.finish, self._finish(piece.finish, bool(piece.text))
        if stopped:
            self.stop_reason = StopReason.STOP
        elif self._is_too_long and (not self.finish or self.goes_on):
            text += self.end(StopReason.LENGTH)
        return text

    @property
    def why_it_failed(self) -> str:
        """What the server did instead of ending the text, as it follows the server's name."""
        if _TOOLS.search(self.finish_reason):
            return "called a tool instead of writing an answer"
        return f"gave up in the middle of a text ({self.finish_reason})"

    def _whole_characters(self, text: str) -> str:
        """Some servers cut their texts between the two halves of a character; half of one cannot be kept or shown."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return well_formed(text)

    def _finish(self, given: str, more: bool) -> StopReason:
        if _BROKEN.search(given) or (_TOOLS.search(given) and not (self._text_end.length or more)):
            return StopReason.ERROR  # a call of a tool that nobody offered is no answer
        return StopReason.LENGTH if _CUT.search(given) else StopReason.STOP

    def end(self, reason: StopReason) -> str:
        """Nothing will follow: the text that was held back."""
        self.stop_reason = reason
        rest = self._text_end.rest()
        self.text += rest
        return rest
