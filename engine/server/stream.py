"""One chunk of a streamed answer, whatever shape the server gave it."""

import math
from dataclasses import dataclass
from typing import Any

from engine.server.faults import NoSuchSpeech


@dataclass(frozen=True)
class Piece:
    """What a chunk adds to one choice.

    ``tokens`` is exact where the server gives ``log_probs``, of each token; else 1 for a chunk that brought anything.
    ``thought``: reasoning, which is no part of the answer. ``finish``: the server's reason for the end, or empty.
    """

    index: int
    text: str = ""
    thought: str = ""
    tokens: int = 0
    log_probs: tuple[float, ...] = ()
    finish: str = ""


@dataclass(frozen=True)
class Chunk:
    """``prompt_tokens`` and ``tokens`` (of all choices together) are None until the server counts. ``last``: [DONE]."""

    pieces: tuple[Piece, ...] = ()
    prompt_tokens: int | None = None
    tokens: int | None = None
    last: bool = False


def read_chunk(data: Any) -> Chunk:
    """A streamed chunk, or a whole answer of a server that does not stream. Raises NoSuchSpeech.

    Chunks without choices, deltas without content, nulls where texts belong: all of that is sent, and means nothing.
    """
    if not isinstance(data, dict):
        raise NoSuchSpeech("The server sent something that is no part of an answer; look at the address.")
    usage, choices = data.get("usage"), data.get("choices")
    if not isinstance(usage, dict):
        usage = {}
    return Chunk(
        tuple(_piece(c) for c in choices if isinstance(c, dict)) if isinstance(choices, list) else (),
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
    )


def _piece(choice: dict[str, Any]) -> Piece:
    delta = choice.get("delta") or choice.get("message") or {}
    text = _text(delta.get("content")) or _text(choice.get("text"))
    thought = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
    log_probs = _log_probs(choice.get("logprobs"))
    return Piece(
        index=_count(choice.get("index")) or 0,
        text=text,
        thought=thought,
        tokens=len(log_probs) or int(bool(text or thought)),
        log_probs=log_probs,
        finish=_text(choice.get("finish_reason")),
    )


def _log_probs(logprobs: Any) -> tuple[float, ...]:
    """Of each token: chat gives objects, completions a list of numbers."""
    if not isinstance(logprobs, dict):
        return ()
    tokens = logprobs.get("content") or logprobs.get("token_logprobs") or []
    values = (token.get("logprob") if isinstance(token, dict) else token for token in tokens)
    return tuple(float(value) for value in values if isinstance(value, int | float) and math.isfinite(value))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
