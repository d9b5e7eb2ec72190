"""Reads one chunk of a streamed answer, in whatever form the server sent it."""

import math
from dataclasses import dataclass
from typing import Any

_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
_ANSWER_PARTS = ("text", "output_text")
_DETAIL_KEYS = ("message", "msg", "detail", "error_msg", "status_msg", "errors")  # of errors, by different servers
_NO_CODE = (0, "0", 200, "200", None, "", "ok", "success")


@dataclass(frozen=True)
class Piece:
    """What a chunk adds to one choice.

    ``tokens`` is exact where the server gives ``log_probs``, of each token; else 1 for a chunk that brought anything.
    ``thought``: reasoning, which is no part of the answer. ``finish``: the server's reason for the end in small
    letters, or empty. ``whole``: ``text`` is all of the answer, not what follows.
    """

    index: int
    text: str = ""
    thought: str = ""
    tokens: int = 0
    log_probs: tuple[float, ...] = ()
    finish: str = ""
    whole: bool = False


@dataclass(frozen=True)
class Chunk:
    """``prompt_tokens`` and ``tokens`` (of all choices together) are None until the server counts. ``last``: [DONE]."""

    pieces: tuple[Piece, ...] = ()
    prompt_tokens: int | None = None
    tokens: int | None = None
    last: bool = False


def read_chunk(data: dict[str, Any]) -> Chunk:
    """A streamed chunk, or a whole answer of a server that does not stream.

    Chunks without choices, deltas without content, nulls where texts belong: all of that is sent, and means nothing.
    """
    usage, choices = data.get("usage"), data.get("choices")
    if not isinstance(usage, dict):
        usage = {}
    return Chunk(
        tuple(_piece(c) for c in choices if isinstance(c, dict)) if isinstance(choices, list) else (),
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
    )


def error_in(data: dict[str, Any]) -> Any:
    """What ``data`` says of an error, in any server's form: an object or a text; None where it is none."""
    if _is_error(error := data.get("error")):
        return error
    vendor = data.get("base_resp")
    if isinstance(vendor, dict) and vendor.get("status_code") not in _NO_CODE:
        return vendor.get("status_msg") or vendor
    if isinstance(choices := data.get("choices"), list) and choices:
        return next((c["error"] for c in choices if isinstance(c, dict) and _is_error(c.get("error"))), None)
    detail = next((data[key] for key in _DETAIL_KEYS if isinstance(data.get(key), str | list) and data[key]), None)
    failed = "error" in (data.get("object"), data.get("type"), data.get("status")) or data.get("success") is False
    code = data.get("code", data.get("error_code", data.get("status")))
    if failed or (detail is not None and "usage" not in data and ("code" not in data or code not in _NO_CODE)):
        return detail or data
    return None


def well_formed(text: str) -> str:
    """``text`` as it can be written: halves of characters that JSON allows become whole ones, or U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_error(value: Any) -> bool:
    """Some servers send the field with every chunk, and nothing in it."""
    if isinstance(value, dict):
        detail = str(value.get("message") or "").lower()
        return bool(value) and not (value.get("code") in _NO_CODE and detail in ("", "ok", "success"))
    return bool(value)


def _piece(choice: dict[str, Any]) -> Piece:
    delta, message = choice.get("delta"), choice.get("message")
    if not isinstance(delta, dict):
        delta = {"content": delta} if isinstance(delta, str) else {}
    text = _text(delta.get("content")) or _text(delta.get("refusal")) or _text(choice.get("text"))
    thought = _thought(delta)
    whole = not text and not thought and isinstance(message, dict)
    if whole:
        assert isinstance(message, dict)
        text, thought = _text(message.get("content")) or _text(message.get("refusal")), _thought(message)
    log_probs = _log_probs(choice.get("logprobs"))
    return Piece(
        index=_count(choice.get("index")) or 0,
        text=text,
        thought=thought,
        tokens=len(log_probs) or int(bool(text or thought)),
        log_probs=log_probs,
        finish=_finish(choice.get("finish_reason")),
        whole=whole,
    )


def _log_probs(logprobs: Any) -> tuple[float, ...]:
    """Of each token: chat gives objects, completions a list of numbers."""
    if not isinstance(logprobs, dict):
        return ()
    tokens = logprobs.get("content") or logprobs.get("token_logprobs") or []
    if not isinstance(tokens, list):
        return ()
    values = (token.get("logprob") if isinstance(token, dict) else token for token in tokens)
    return tuple(float(value) for value in values if isinstance(value, int | float) and math.isfinite(value))


def _text(value: Any) -> str:
    """A text, or those of its parts that are answer: some servers send a list of typed parts."""
    if isinstance(value, list):
        parts = ({"text": part} if isinstance(part, str) else part for part in value)
        parts = (part for part in parts if isinstance(part, dict) and part.get("type", "text") in _ANSWER_PARTS)
        return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return value if isinstance(value, str) else ""


def _thought(delta: dict[str, Any]) -> str:
    """The first field that holds one: gateways send the same thought under two names."""
    return next((text for name in _THOUGHTS if (text := _text(delta.get(name)))), "")


def _finish(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("type")
    reason = value.strip().lower() if isinstance(value, str) else ""
    return "" if reason in ("null", "none", "unspecified", "finish_reason_unspecified") else reason


def _count(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
