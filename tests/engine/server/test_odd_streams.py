"""Odd streams are read to their text and to the right end."""

import gzip
import json
import time
from typing import Any

import pytest

from tests.engine.server.fake import Answer, Exchange, FakeServer, Polite
from tests.engine.server.playing import PROMPT, Playing, eventually, request
from tests.engine.server.streams import END, chunk, run_with, streamed

ODD = {
    "a chunk with usage and no choices": streamed(
        chunk({"content": "ab"}), END, {"choices": [], "usage": {"completion_tokens": 1}}
    ),
    "chunks without choices": streamed(
        {"object": "x"}, {"choices": []}, {"choices": None}, chunk({"content": "ab"}), END
    ),
    "comments that keep the connection alive": streamed(": ping\n\n", chunk({"content": "ab"}), ": ping\n\n", END),
    "no [DONE]": streamed(chunk({"content": "ab"}), END, done=False),
    "content that is null": streamed(chunk({"content": None}), chunk({"content": "ab"}), chunk(None, "stop")),
    "a delta with a role only": streamed(chunk({"role": "assistant"}), chunk({"content": "ab"}), END),
    "no index": streamed(
        {"choices": [{"delta": {"content": "ab"}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    ),
    "a choice nobody asked for": streamed(chunk({"content": "x"}, index=7), chunk({"content": "ab"}), END),
    "thoughts first": streamed(
        chunk({"reasoning_content": "hm"}), chunk({"reasoning": "so"}), chunk({"content": "ab"}), END
    ),
    "windows line ends": streamed("data: " + json.dumps(chunk({"content": "ab"})) + "\r\n\r\n", END),
    "fields of other kinds": streamed("event: message\nid: 1\nretry: 10\n\n", chunk({"content": "ab"}), END),
    "no blank after the colon": streamed("data:" + json.dumps(chunk({"content": "ab"})) + "\n\n", END),
    "text in the last chunk": streamed(chunk({"content": "a"}), chunk({"content": "b"}, "stop")),
    "log-probabilities of null": streamed(chunk({"content": "ab"}, logprobs={"content": None}), END),
    "an empty object for an error": streamed(chunk({"content": "ab"}) | {"error": None}, END),
    "an error that is none": streamed(chunk({"content": "ab"}) | {"error": {"code": 0, "message": "success"}}, END),
    "a vendor's good status": streamed(
        chunk({"content": "ab"}) | {"base_resp": {"status_code": 0, "status_msg": ""}}, END
    ),
    "a message beside the chunk": streamed(chunk({"content": "ab"}) | {"message": "fine", "code": 0}, END),
    "usage that is null": streamed(chunk({"content": "ab"}) | {"usage": None}, END | {"usage": None}),
    "a delta that is null": streamed(chunk(None), chunk({"content": "ab"}), chunk(None, "stop")),
    "a delta that is a text": streamed(chunk("ab"), END),
    "content in parts": streamed(
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
        chunk({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        END,
    ),
    "content as a list of texts": streamed(chunk({"content": ["a", "b"]}), END),
    "the whole message once more at the end": streamed(
        chunk({"content": "a"}),
        chunk({"content": "b"}),
        chunk({}, "stop", message={"role": "assistant", "content": "ab"}),
    ),
    "the whole message in one chunk": streamed(chunk(None, "stop", message={"content": "ab"})),
    "tool calls of null": streamed(chunk({"content": "ab", "tool_calls": None, "function_call": None}), END),
    "a refusal": streamed(chunk({"content": None, "refusal": "ab"}), END),
    "an index that is a text": streamed(chunk({"content": "ab"}, index="0"), chunk({}, "stop", index="0")),
    "the same thought under two names": streamed(
        chunk({"reasoning_content": "hm", "reasoning": "hm", "content": None}), chunk({"content": "ab"}), END
    ),
    "a reason in every chunk": streamed(chunk({"content": "a"}, "stop"), chunk({"content": "b"}, "stop"), END),
    "an empty reason in every chunk": streamed(chunk({"content": "a"}, ""), chunk({"content": "b"}, ""), END),
    "a reason that is the word null": streamed(chunk({"content": "a"}, "null"), chunk({"content": "b"}, "null"), END),
    "a reason that is an object": streamed(chunk({"content": "ab"}), chunk({}, {"type": "stop"})),
    "a reason of one's own": streamed(chunk({"content": "ab"}), chunk({}, "EOS_TOKEN")),
    "no line's end behind the last": streamed(
        chunk({"content": "a"}), f"data: {json.dumps(chunk({'content': 'b'}, 'stop'))}", done=False
    ),
    "no end at all but the connection's": streamed(chunk({"content": "ab"}), chunk({}, "stop"), done=False),
    "line ends inside of JSON": streamed(f"data: {json.dumps(chunk({'content': 'ab'}), indent=2)}\n\n", END),
    "keep-alives that are data": streamed(
        "data: ping\n\n", chunk({"content": "ab"}), "event: ping\ndata: now\n\n", END
    ),
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_odd_streams_are_read_to_their_text(server: FakeServer, play: Playing, answer: Answer) -> None:
    outcome = run_with(play, server, answer)
    assert (outcome.outcome, outcome.reason) == ("finished", "")
    assert play.texts == {1: "ab"}
    assert play.ends[1].state == "done"


TYPES = [
    "text/plain; charset=utf-8",
    "application/json",
    "application/octet-stream",
    "text/event-stream; charset=latin-1",
]


@pytest.mark.parametrize("content_type", [*TYPES, "application/x-ndjson", ""])
def test_events_are_read_whatever_they_are_called(server: FakeServer, play: Playing, content_type: str) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.handler.send_response(200)
        if content_type:
            exchange.handler.send_header("Content-Type", content_type)
        exchange.handler.send_header("Connection", "close")
        exchange.handler.end_headers()
        exchange.raw(f"data: {json.dumps(chunk({'content': 'naïve'}), ensure_ascii=False)}\n\n")
        exchange.send(END)
        exchange.done()

    assert run_with(play, server, answer).outcome == "finished"
    assert play.texts == {1: "naïve"}


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("ab\ud83d", "\ude00c"), "ab😀c"),
        (("ab\ud83d", "", "\ude00"), "ab😀"),
        (("a\udc80b", "c\ud83d"), "a\ufffdbc"),
        (("\ud83d", "b"), "\ufffdb"),
    ],
)
def test_halves_of_characters_become_text_that_can_be_written(
    server: FakeServer, play: Playing, pieces: tuple[str, ...], text: str
) -> None:
    run_with(play, server, streamed(*(chunk({"content": piece}) for piece in pieces), END))
    assert play.texts == {1: text}
    play.texts[1].encode()


def test_compressed_events_are_read(server: FakeServer, play: Playing) -> None:
    def answer(exchange: Exchange) -> None:
        data = gzip.compress(f"data: {json.dumps(chunk({'content': 'ab'}, 'stop'))}\n\ndata: [DONE]\n\n".encode())
        exchange.handler.send_response(200)
        for name, value in (("Content-Encoding", "gzip"), ("Content-Length", str(len(data)))):
            exchange.handler.send_header(name, value)
        exchange.handler.end_headers()
        exchange.handler.wfile.write(data)

    assert run_with(play, server, answer).outcome == "finished"
    assert play.texts == {1: "ab"}


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("stop", "done"),
        ("eos", "done"),
        ("end_turn", "done"),
        ("stop_sequence", "done"),
        ("something new", "done"),
        ("tool_calls", "done"),  # with a text
        ("length", "cut"),
        ("max_tokens", "cut"),
        ("MAX_TOKENS", "cut"),
        ("max_output_tokens", "cut"),
        ("model_length", "cut"),
        ("model_context_window_exceeded", "cut"),
        ("token_limit", "cut"),
        ("content_filter", "failed"),
        ("SAFETY", "failed"),
        ("RECITATION", "failed"),
        ("sensitive", "failed"),
        ("abort", "failed"),
        ("cancelled", "failed"),
        ("error", "failed"),
        ("network_error", "failed"),
        ("insufficient_system_resource", "failed"),
    ],
)
def test_every_servers_reason_for_an_end_is_understood(
    server: FakeServer, play: Playing, reason: str, state: str
) -> None:
    run_with(play, server, streamed(chunk({"content": "ab"}), chunk({}, reason)))
    assert play.texts == {1: "ab"}
    assert play.ends[1].state == state


def test_a_call_of_a_tool_is_no_answer(server: FakeServer, play: Playing) -> None:
    call = {"content": None, "tool_calls": [{"index": 0, "function": {"name": "run", "arguments": "{}"}}]}
    outcome = run_with(play, server, streamed(chunk(call), chunk({}, "tool_calls")))
    assert outcome.outcome == "failed"
    assert outcome.reason.endswith(" called a tool instead of writing an answer.")


def test_a_slow_server_with_a_reason_in_every_chunk_is_read_to_its_end(server: FakeServer, play: Playing) -> None:
    server.answer = Polite(every_finish="stop")
    play.load(server.address)
    server.answer = streamed_slowly(*[chunk({"content": letter}, "stop") for letter in "abc"])
    assert play.play(request(1)).outcome == "finished"
    assert play.texts == {1: "abc"}


def streamed_slowly(*pieces: Any) -> Answer:
    """With pauses after which the end of a polite server's answer would be over."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for number, piece in enumerate(pieces):
            if number == 1:
                time.sleep(2.5)
            exchange.send(piece)
        exchange.done()

    return answer


def test_shared_requests_of_a_server_with_a_reason_in_every_chunk(server: FakeServer, play: Playing) -> None:
    server.answer = Polite(texts=("one two three", "four five six"), every_finish="stop")
    play.load(server.address)
    assert play.play(request(2)).outcome == "finished"
    assert len(server.asked_for(PROMPT)) == 1
    assert play.texts == {1: "one two three", 2: "four five six"}


def test_a_character_split_over_two_packets_stays_whole(server: FakeServer, play: Playing) -> None:
    data = f"data: {json.dumps(chunk({'content': 'naïve 🎷'}), ensure_ascii=False)}\n\n".encode()

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for at in range(len(data)):
            exchange.handler.wfile.write(data[at : at + 1])
        exchange.send(END)
        exchange.done()

    run_with(play, server, answer)
    assert play.texts == {1: "naïve 🎷"}


def test_a_server_that_does_not_stream_gives_the_text_at_once(server: FakeServer, play: Playing) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin("application/json")
        choices = [
            {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for i, text in enumerate(("ab", "cd"))
        ]
        exchange.raw(json.dumps({"choices": choices, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}))

    assert run_with(play, server, answer, 2).outcome == "finished"
    assert play.texts == {1: "ab", 2: "cd"}


def test_thoughts_count_and_are_not_shown(server: FakeServer, play: Playing) -> None:
    run_with(play, server, streamed(*[chunk({"reasoning_content": "hm"})] * 3, chunk({"content": "ab"}), END))
    assert play.texts == {1: "ab"}
    assert play.ends[1].tokens == 4


def test_a_server_that_forgets_to_hang_up_does_not_hold_the_run(server: FakeServer, play: Playing) -> None:
    def answer(exchange: Exchange) -> None:
        streamed(chunk({"content": "ab"}), END, done=False)(exchange)
        exchange.wait_until_gone()

    begun = time.monotonic()
    assert run_with(play, server, answer).outcome == "finished"
    assert time.monotonic() - begun < 5
    assert eventually(lambda: server.asked_for(PROMPT)[0].gone)
