"""Events are read from text that comes in any pieces, and in more forms than the standard has."""

import json
from typing import Any

import pytest

from engine.server.events import MOST, DamagedStream, Event, EventReader, StreamDone, StreamFailed

A, B = {"choices": [{"delta": {"content": "a"}}]}, {"choices": [{"delta": {"content": "é\u2028🎷"}}]}
JA, JB = json.dumps(A), json.dumps(B, ensure_ascii=False)


def read(*pieces: str | bytes) -> list[Any]:
    reader, events = EventReader(), list[Event]()
    for piece in pieces:
        events += reader.feed(piece.encode() if isinstance(piece, str) else piece)
    events += reader.end()
    return [
        "done" if isinstance(e, StreamDone) else ("failed", e.data) if isinstance(e, StreamFailed) else e
        for e in events
    ]


FORMS = {
    "the standard": f"data: {JA}\n\ndata: {JB}\n\ndata: [DONE]\n\n",
    "no blank": f"data:{JA}\n\ndata:{JB}\n\ndata:[DONE]\n\n",
    "windows line ends": f"data: {JA}\r\n\r\ndata: {JB}\r\n\r\ndata: [DONE]\r\n\r\n",
    "old line ends": f"data: {JA}\r\rdata: {JB}\r\rdata: [DONE]\r\r",
    "a byte order mark": f"\ufeffdata: {JA}\n\ndata: {JB}\n\ndata: [DONE]\n\n",
    "a blank line first": f"\n\ndata: {JA}\n\ndata: {JB}\n\ndata: [DONE]\n\n",
    "single line ends": f"data: {JA}\ndata: {JB}\ndata: [DONE]\n",
    "nothing behind the last": f"data: {JA}\n\ndata: {JB}\n\ndata: [DONE]",
    "comments": f": hello\n\ndata: {JA}\n: ping\n\n: PROCESSING\n\ndata: {JB}\n\ndata: [DONE]\n\n",
    "other fields": f"event: message\nid: 7\nretry: 10\ndata: {JA}\n\nid\n\ndata: {JB}\n\n"
    "event: done\ndata: [DONE]\n\n",
    "keep-alives that are events": f"event: ping\ndata: 12:30\n\ndata: {JA}\n\ndata: ping\n\ndata:\n\n"
    f"data: {JB}\n\ndata: [DONE]\n\n",
    "data over several lines": "".join(
        "".join(f"data: {line}\n" for line in json.dumps(event, indent=1, ensure_ascii=False).split("\n")) + "\n"
        for event in (A, B)
    )
    + "data: [DONE]\n\n",
    "data over several lines of which one is marked": "".join(
        f"data: {json.dumps(event, indent=2, ensure_ascii=False)}\n\n" for event in (A, B)
    )
    + "data: [DONE]\n\n",
    "JSON line by line": f"{JA}\n{JB}\n[DONE]\n",
    "JSON line by line with blank lines": f"{JA}\n\n{JB}\n\n[DONE]\n\n",
    "a word in quotes at the end": f'data: {JA}\n\ndata: {JB}\n\ndata: "[DONE]"\n\n',
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
def test_the_same_events_in_every_form_and_in_any_pieces(text: str, size: int) -> None:
    data = text.encode()
    assert read(*(data[at : at + size] for at in range(0, len(data), size))) == [A, B, "done"]


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
@pytest.mark.parametrize(
    "form", [json.dumps([A, B]), json.dumps([A, B], indent=2), f"  {json.dumps([A, B], indent=1)}\n"]
)
def test_a_list_of_chunks(form: str, size: int) -> None:
    data = form.encode()
    assert read(*(data[at : at + size] for at in range(0, len(data), size))) == [A, B]


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_an_answer_that_is_not_streamed(indent: int | None) -> None:
    reader = EventReader()
    events = [*reader.feed(json.dumps(A | {"a list": [1, {"b": []}]}, indent=indent).encode()), *reader.end()]
    assert events == [A | {"a list": [1, {"b": []}]}]
    assert reader.is_json


def test_events_are_given_as_they_come() -> None:
    reader = EventReader()
    assert list(reader.feed(f"data: {JA}\n".encode())) == []
    assert list(reader.feed(b"\n")) == [A]
    assert list(reader.feed(f"data: {JB}\ndata: {JA}\n".encode())) == [B]  # nothing divides the two
    assert list(reader.end()) == [A]


def test_what_the_end_cuts_off_is_left_out() -> None:
    assert read(f"data: {JA}\n\n", f"data: {JB}"[:-3]) == [A]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('event: error\ndata: {"message": "died"}\n\n', {"message": "died"}),
        ("event: error\ndata: it died\n\n", "it died"),
        ('error: {"code": 500, "message": "died"}\n\n', {"code": 500, "message": "died"}),
        ("error: it died\n\n", "it died"),
    ],
)
def test_errors_that_are_no_data(text: str, said: object) -> None:
    assert read(f"data: {JA}\n\n{text}") == [A, ("failed", said)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data: {half\n\n", ""),
        ("data: Error: context too long\n\n", "Error: context too long"),
        ("<html><body>Welcome</body></html>", ""),
        ("\n <!DOCTYPE html>\n", ""),
        ("data: 7\n\n", "7"),
        ('{"half": ', ""),
    ],
)
def test_what_is_no_event(text: str, words: str) -> None:
    with pytest.raises(DamagedStream) as raised:
        read(text)
    assert raised.value.text == words


def test_an_event_has_a_largest_size() -> None:
    with pytest.raises(DamagedStream):
        read(*[b"data: " + b"x" * (1 << 20)] * (MOST // (1 << 20) + 2))


def test_a_long_answer_has_no_largest_size() -> None:
    reader, count = EventReader(), 0
    piece = (f"data: {json.dumps({'x': 'y' * 100_000})}\n\n" * 10).encode()
    for _ in range(MOST // len(piece) + 3):
        count += len(list(reader.feed(piece)))
    assert count == 10 * (MOST // len(piece) + 3)
