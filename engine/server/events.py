"""The events of a streamed answer, from text that comes in any pieces and in more forms than the standard has.

Servers should send server-sent events, but content types are often wrong, so only the text itself
decides. A whole JSON answer, JSON line by line, events that no blank line divides or ends, and all kinds of line ends
are read as well.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

_LINE_END = re.compile(r"\r\n|\n|\r")  # and no other: U+2028 and its like are text
_FIELDS = ("data", "event", "id", "retry", "error", "")  # nothing before the colon: a comment
_NOISE = {"", "ping", "pong", "keep-alive", "keepalive", "heartbeat"}
MOST = 32 << 20  # characters of one event, or of an answer that is not streamed


class DamagedStream(Exception):
    """What came is no event. ``text`` is it, as far as a user might read it; empty where it is JSON cut short."""

    def __init__(self, text: str = ""):
        super().__init__(text)
        self.text = text


class StreamDone:
    """The server said that the answer is over."""


class StreamFailed:
    """The server said that it failed; ``data`` is what it said."""

    def __init__(self, data: Any):
        self.data = data


Event = StreamDone | StreamFailed | dict[str, Any]


class EventReader:
    """Bytes in, events out. Raises Damaged for what is none. ``is_page``: it was a web page; ``is_json``: it is JSON
    instead of events."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode  # UTF-8, whatever the header says
        self._pieces: list[str] = []  # of the line that is coming in
        self._held = ""  # a carriage return that may be the first half of a line's end
        self._size = 0
        self._name = ""
        self._data: list[str] = []
        self._json: list[str] = []  # lines of an answer that is JSON instead of events
        self._begun = self.is_page = self.is_json = False

    def feed(self, data: bytes) -> Iterator[Event]:
        text = self._held + self._decode(data)
        self._held = "\r" if text.endswith("\r") else ""
        yield from self._lines(text.removesuffix("\r"))

    def end(self) -> Iterator[Event]:
        """What the end of the connection completes; what it cuts off is left out."""
        yield from self._lines(self._held + self._decode(b"", True))
        left = "".join(self._pieces)
        self._pieces, self._held = [], ""
        if left.strip():
            yield from self._line(left)
        if self._json:
            text, self._json = "\n".join(self._json), []
            yield from _parsed(text)
        try:
            yield from self._dispatch()
        except DamagedStream:
            return  # the connection ended in the middle of it

    def _lines(self, text: str) -> Iterator[Event]:
        *whole, rest = _LINE_END.split(text)
        for line in whole:
            self._pieces.append(line)
            line, self._pieces = "".join(self._pieces), []
            self._size = 0 if not line else self._size
            yield from self._line(line)
        self._pieces.append(rest)
        self._size += len(text)
        if self._size > MOST:
            raise DamagedStream

    def _line(self, line: str) -> Iterator[Event]:
        stripped = line.strip()
        if not self._begun and stripped:
            self._begun = True
            self.is_page, self.is_json = stripped[0] == "<", stripped[0] in "{["
            if self.is_page:
                raise DamagedStream
        field, _, value = line.lstrip().partition(":")
        value = value.removeprefix(" ")
        if not stripped and not self._json:
            yield from self._dispatch()
        elif self._data and field not in _FIELDS and not _is_json("\n".join(self._data)):
            self._data.append(line)  # JSON over several lines, of which only the first is marked
        elif self._json or stripped[:1] in ("{", "["):
            yield from self._json_line(line)
        else:
            yield from self._field(field, value)

    def _field(self, field: str, value: str) -> Iterator[Event]:
        if field == "event":
            self._name = value.strip()
        elif field == "error":
            yield StreamFailed(_value(value))
        elif field == "data":
            if self._data and (_is_done(value) or _is_json("\n".join(self._data))):
                yield from self._dispatch()  # no blank line stood between the two
            self._data.append(value)

    def _json_line(self, line: str) -> Iterator[Event]:
        """JSON where a field should be: a line of its own, or the beginning of a longer answer."""
        if self._data:
            yield from self._dispatch()
        self._json.append(line)
        text = "\n".join(self._json) if len(self._json) < 3 or line[:1] in ("}", "]") else ""
        if text and _is_done(text):
            self._json = []
            yield StreamDone()
        elif text and _is_json(text):
            self._json, self._size = [], 0
            yield from _parsed(text)

    def _dispatch(self) -> Iterator[Event]:
        name, text = self._name, "\n".join(self._data)
        self._name, self._data, self._size = "", [], 0
        if name == "error":
            yield StreamFailed(_value(text))
        elif _is_done(text):
            yield StreamDone()
        elif text.strip().lower() in _NOISE or (name not in ("", "message") and not text.lstrip().startswith("{")):
            return
        else:
            yield from _parsed(text)


def _parsed(text: str) -> Iterator[Event]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise DamagedStream("" if text.lstrip()[:1] in ("{", "[", "<") else text) from None
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield each
        elif each is not None:
            raise DamagedStream(str(each))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_done(text: str) -> bool:
    return text.strip().strip("\"'").upper() in ("[DONE]", "DONE")
