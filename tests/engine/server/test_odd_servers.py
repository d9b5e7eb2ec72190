"""Odd streams, and everything that goes wrong: the text so far is kept, and one sentence says what happened."""

import gzip
import json
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from engine.contract import (
    Cancel,
    CandidateFinished,
    Load,
    LoadFailed,
    Loading,
    ModelChoice,
    RunFinished,
    RunStarted,
    Sampling,
    TextAdded,
)
from engine.server.client import Patience
from tests.engine.server.fake import Answer, Exchange, FakeServer, Polite
from tests.engine.server.playing import HASTY, PROMPT, Playing, eventually, playing, request


def run_with(play: Playing, server: FakeServer, answer: Answer, candidates: int = 1) -> RunFinished:
    play.load(server.address)
    server.answer = answer
    return play.play(request(candidates))


def streamed(*pieces: Any, done: bool = True) -> Answer:
    """``pieces``: text, raw bytes of a stream, or chunks."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for piece in pieces:
            exchange.send(piece) if isinstance(piece, dict) else exchange.raw(piece)
        if done:
            exchange.done()

    return answer


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish} | more]}


END = chunk({}, "stop")
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
    "a reason that is an object": streamed(chunk({"content": "ab"}), chunk({}, {"type": "stop"})),  # type: ignore[arg-type]
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


def dropped(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text("half a")
    exchange.handler.wfile.flush()
    exchange.handler.connection.shutdown(socket.SHUT_RDWR)


def reset_in_a_chunk(exchange: Exchange) -> None:
    exchange.handler.send_response(200)
    exchange.handler.send_header("Content-Type", "text/event-stream")
    exchange.handler.send_header("Content-Length", "100000")
    exchange.handler.end_headers()
    exchange.text("half a")
    exchange.handler.connection.shutdown(socket.SHUT_RDWR)


def silent(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text("half a")
    exchange.wait_until_gone()


HOST = "127.0.0.1:PORT"
FAULTS: dict[str, tuple[Answer, str]] = {
    "dropped": (dropped, f"{HOST} ended the answer early; the text so far is kept."),
    "reset": (reset_in_a_chunk, f"The connection to {HOST} broke off; the text so far is kept."),
    "silent": (silent, f"{HOST} said nothing for 1 s; the text so far is kept."),
    "interrupted": (
        streamed(chunk({"content": "half a"})),
        f"{HOST} interrupted the answer; if it serves one at a time, set the width to 1.",
    ),
    "an error in the stream": (
        streamed(chunk({"content": "half a"}), {"error": {"message": "CUDA out of memory.", "code": 500}}),
        f"{HOST} stopped with an error: CUDA out of memory.",
    ),
    "an error that is a text": (
        streamed(chunk({"content": "half a"}), {"error": "worker died"}),
        f"{HOST} stopped with an error: worker died.",
    ),
    "no JSON": (
        streamed(chunk({"content": "half a"}), "data: {half\n\n"),
        f"{HOST} sent a damaged piece of an answer; try again.",
    ),
    "an error in vLLM's form": (
        streamed(chunk({"content": "half a"}), {"object": "error", "message": "too long", "type": "x", "code": 400}),
        f"{HOST} stopped with an error: too long.",
    ),
    "an error of a kind of its own": (
        streamed(chunk({"content": "half a"}), 'event: error\ndata: {"message": "engine died"}\n\n'),
        f"{HOST} stopped with an error: engine died.",
    ),
    "an error in a field of its own": (
        streamed(chunk({"content": "half a"}), 'error: {"code": 500, "message": "context size exceeded"}\n\n'),
        f"{HOST} stopped with an error: context size exceeded.",
    ),
    "an error as a bare line": (
        streamed(chunk({"content": "half a"}), '{"error": {"message": "worker died"}}\n'),
        f"{HOST} stopped with an error: worker died.",
    ),
    "an error in words": (
        streamed(chunk({"content": "half a"}), "data: Internal Server Error\n\n"),
        f"{HOST} stopped with an error: Internal Server Error.",
    ),
    "an error inside of a choice": (
        streamed(chunk({"content": "half a"}), chunk({}, "error", error={"code": 502, "message": "upstream died"})),
        f"{HOST} stopped with an error: upstream died.",
    ),
    "an error without words": (
        streamed(chunk({"content": "half a"}), {"error": {"code": 500}}),
        f"{HOST} stopped with an error: it did not say which.",
    ),
    "a filter": (
        streamed(chunk({"content": "half a"}), chunk({}, "content_filter")),
        f"{HOST} gave up in the middle of a text (content_filter).",
    ),
}


@pytest.mark.parametrize(("answer", "sentence"), FAULTS.values(), ids=FAULTS.keys())
def test_text_stays_when_the_answer_breaks_off(server: FakeServer, answer: Answer, sentence: str) -> None:
    with playing(Patience(connect_s=1, silence_s=1, busy_s=1)) as play:
        outcome = run_with(play, server, answer)
    assert outcome.outcome == "failed"
    assert outcome.reason == sentence.replace("PORT", server.address.rpartition(":")[2].removesuffix("/v1"))
    assert play.texts == {1: "half a"}
    assert (play.ends[1].state, play.ends[1].stop_reason) == ("failed", "error")


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "a status in base_resp": (
        {"id": "", "choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
        "insufficient balance",
    ),
    "a code and a msg": ({"code": 1261, "msg": "Prompt too long", "success": False}, "Prompt too long"),
    "an error_code": ({"error_code": 17, "error_msg": "Open api daily limit reached"}, "Open api daily limit reached"),
    "a detail": ({"detail": "model is loading"}, "model is loading"),
    "errors": ({"errors": [{"message": "no such account"}], "success": False}, "no such account"),
    "a type": ({"type": "error", "error": {"type": "x", "message": "overloaded"}}, "overloaded"),
    "an object": ({"object": "error", "message": "bad request", "code": 400}, "bad request"),
}


@pytest.mark.parametrize(("body", "words"), REFUSALS.values(), ids=REFUSALS.keys())
@pytest.mark.parametrize("as_event", [False, True])
def test_an_error_behind_a_good_status_is_told_in_the_servers_words(
    server: FakeServer, play: Playing, body: dict[str, Any], words: str, as_event: bool
) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin("text/event-stream" if as_event else "application/json")
        exchange.send(body) if as_event else exchange.raw(json.dumps(body))

    outcome = run_with(play, server, answer)
    assert outcome.outcome == "failed"
    assert outcome.reason.endswith(f" stopped with an error: {words}.")


def test_a_web_page_in_place_of_an_answer(server: FakeServer, play: Playing) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin("text/html")
        exchange.raw("<!DOCTYPE html>\n<html><body>Sign in</body></html>")

    outcome = run_with(play, server, answer)
    assert outcome.reason.endswith(" does not answer as an OpenAI-compatible server does; look at the address.")


@pytest.mark.parametrize("candidates", [1, 2])
def test_what_was_finished_stays_finished_when_the_rest_breaks_off(
    server: FakeServer, play: Playing, candidates: int
) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.handler.send_response(200)
        exchange.handler.send_header("Content-Type", "text/event-stream")
        exchange.handler.send_header("Content-Length", "100000")
        exchange.handler.end_headers()
        for index in range(candidates):
            exchange.text("ab", index, "stop")
        exchange.handler.connection.shutdown(socket.SHUT_RDWR)

    outcome = run_with(play, server, answer, candidates)
    assert (outcome.outcome, outcome.reason) == ("finished", "")
    assert {end.state for end in play.ends.values()} == {"done"}
    assert set(play.texts.values()) == {"ab"}


def test_candidates_that_finished_stay_when_others_break_off(server: FakeServer, play: Playing) -> None:
    whole = [{"choices": [{"index": 0, "delta": {"content": "ab"}, "finish_reason": "stop"}]}]
    half = [{"choices": [{"index": 1, "delta": {"content": "c"}}]}]
    outcome = run_with(play, server, streamed(*whole, *half, done=False), 2)
    assert outcome.outcome == "finished"
    assert outcome.reason.startswith("Candidate 2: ")
    assert {number: end.state for number, end in play.ends.items()} == {1: "done", 2: "failed"}
    assert play.texts == {1: "ab", 2: "c"}


STATUSES: dict[str, tuple[int, Any, str]] = {
    "OpenAI's form": (400, {"error": {"message": "too long", "type": "x"}}, "refused the request (400): too long."),
    "FastAPI's form": (
        422,
        {"detail": [{"loc": ["body", "n"], "msg": "bad"}]},
        "refused the request (422): body.n: bad.",
    ),
    "FastAPI's short form": (400, {"detail": "no chat template"}, "refused the request (400): no chat template."),
    "a bare message": (400, {"message": "no\nway"}, "refused the request (400): no way."),
    "plain text": (400, "plain words.", "refused the request (400): plain words."),
    "a web page": (502, "<html><body>Bad Gateway</body></html>", "failed (502); its own log says more."),
    "nothing": (500, "", "failed (500); its own log says more."),
    "no token": (
        401,
        {"error": "bad key"},
        "wants a valid token (401); give it one under Servers, or by 'servers add'.",
    ),
    "wrong token": (403, "", "wants a valid token (403); give it one under Servers, or by 'servers add'."),
    "not found": (404, {"error": {"message": "no such model"}}, "knows no such model or address (404): no such model."),
    "wrong token, in words": (
        403,
        {"error": {"message": "not in your region"}},
        "does not allow this (403): not in your region; if it wants a token, give it one under Servers, "
        "or by 'servers add'.",
    ),
    "several errors": (400, {"errors": [{"message": "a"}, {"message": "b"}]}, "refused the request (400): a; b."),
    "an error in an error": (400, {"error": {"error": {"message": "deep"}}}, "refused the request (400): deep."),
    "an error without words": (400, {"error": {"message": None, "code": 7}}, "refused the request (400)."),
    "not payed": (402, {"error": {"message": "no credit"}}, "refused the request (402): no credit."),
    "not allowed there": (405, "", "knows no such model or address (405)."),
    "moved": (308, "", "says that it has moved (308); write the address where it is now."),
}


@pytest.mark.parametrize(("status", "said", "sentence"), STATUSES.values(), ids=STATUSES.keys())
def test_a_status_is_one_sentence(server: FakeServer, play: Playing, status: int, said: Any, sentence: str) -> None:
    outcome = run_with(play, server, lambda exchange: exchange.refuse(status, said))
    assert outcome.outcome == "failed"
    assert outcome.reason.partition(" ")[2] == sentence
    assert play.texts == {1: ""}


def busy_once(status: int, retry_after: Callable[[], str] | None) -> Answer:
    polite, calls = Polite(), iter((True,))

    def answer(exchange: Exchange) -> None:
        if next(calls, False):
            exchange.refuse(status, "slow down", **({"Retry_After": retry_after()} if retry_after else {}))
        else:
            polite(exchange)

    return answer


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("form", ["seconds", "date", "none"])
def test_a_busy_server_is_asked_again_when_it_said(server: FakeServer, play: Playing, status: int, form: str) -> None:
    def date() -> str:
        return format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)

    times = {"seconds": lambda: "1", "date": date, "none": None}
    begun = time.monotonic()
    outcome = run_with(play, server, busy_once(status, times[form]))
    assert outcome.outcome == "finished"
    assert play.texts == {1: "one"}
    assert time.monotonic() - begun >= 0.9
    assert len(server.asked_for(PROMPT)) == 2


def test_waiting_for_a_busy_server_can_be_stopped(server: FakeServer, play: Playing) -> None:
    play.load(server.address)
    server.answer = lambda exchange: exchange.refuse(429, "", Retry_After="4")
    play.start(request(2))
    assert eventually(lambda: bool(server.asked_for(PROMPT)))
    stopped = time.monotonic()
    play.submit(Cancel("run"))
    assert play.finish().outcome == "stopped"
    assert time.monotonic() - stopped < 1


def test_nobody_waits_longer_than_a_person_would(server: FakeServer, play: Playing) -> None:
    outcome = run_with(play, server, lambda exchange: exchange.refuse(429, "quota used up", Retry_After="3600"))
    assert outcome.outcome == "failed"
    assert "has too much to do (429): quota used up; try again later" in outcome.reason


def test_a_quota_that_is_used_up_is_not_waited_for(server: FakeServer, play: Playing) -> None:
    said = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    outcome = run_with(play, server, lambda exchange: exchange.refuse(429, said))
    assert "You exceeded your current quota" in outcome.reason
    assert len(server.asked_for(PROMPT)) == 1


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("Unsupported parameter: 'stop' is not supported with this model.", "stop"),
        ("stream_options is not allowed", "stream_options"),
        ("System role not supported", "system"),
    ],
)
def test_what_a_request_can_do_without_is_left_out(server: FakeServer, play: Playing, said: str, field: str) -> None:
    polite = Polite()

    def answer(exchange: Exchange) -> None:
        asked = field in exchange.body or (field == "system" and exchange.body["messages"][0]["role"] == "system")
        exchange.refuse(400, {"error": {"message": said}}) if asked else polite(exchange)

    play.load(server.address)
    server.answer = answer
    outcome = play.play(request(3, sampling=Sampling(stop=("END",), max_tokens=64)))
    assert (outcome.outcome, outcome.reason) == ("finished", "")
    assert play.texts == {1: "one", 2: "two", 3: "three"}
    if field == "system":
        (only,) = server.asked_for(exchange_prompt := server.asked[-1].prompt)[-1].body["messages"]
        assert only["role"] == "user"
        assert exchange_prompt.endswith(f"\n\n{PROMPT}")


def test_a_slow_first_byte_is_waited_for(server: FakeServer) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for _ in range(6):
            time.sleep(0.3)
            exchange.raw(": still reading the prompt\n\n")
        exchange.send(chunk({"content": "ab"}, "stop"))
        exchange.done()

    with playing(Patience(connect_s=1, silence_s=1, busy_s=1)) as play:
        assert run_with(play, server, answer).outcome == "finished"
    assert play.texts == {1: "ab"}


def test_nothing_listens_there(play: Playing) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    failed = play.load(f"http://127.0.0.1:{port}")
    assert isinstance(failed, LoadFailed)
    assert failed.reason == f"Nothing answers at 127.0.0.1:{port}; start the server, or look at the port."


def test_no_host_of_that_name(play: Playing) -> None:
    failed = play.load("http://no-such-host.invalid:8000")
    assert isinstance(failed, LoadFailed)
    assert failed.reason == "No computer is called no-such-host.invalid:8000; look at the address."


def test_a_host_that_never_answers(play: Playing) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf, playing(Patience(1, 0.5, 1)) as play:
        failed = play.load(f"http://127.0.0.1:{deaf.getsockname()[1]}")
    assert isinstance(failed, LoadFailed)
    assert "said nothing for 0.5 s" in failed.reason


def test_a_load_can_be_stopped(server: FakeServer, play: Playing) -> None:
    server.answer = Exchange.wait_until_gone
    play.submit(Load(ModelChoice(server=server.address)))
    play.until(lambda event: isinstance(event, Loading) and event.stage == "check")
    assert eventually(lambda: bool(server.asked))
    play.submit(Cancel())
    failed = play.until(lambda event: isinstance(event, LoadFailed))
    assert isinstance(failed, LoadFailed)
    assert failed.cancelled
    assert eventually(lambda: server.asked[0].gone)


def test_a_page_that_is_no_such_server(server: FakeServer, play: Playing) -> None:
    server.models = "<html>Welcome</html>"
    failed = play.load(server.address)
    assert isinstance(failed, LoadFailed)
    assert "does not list any models" in failed.reason


def test_closing_in_the_middle_of_a_run(server: FakeServer) -> None:
    with playing(HASTY) as play:
        play.load(server.address)
        server.answer = silent
        play.start(request(2))
        play.until(lambda event: isinstance(event, TextAdded | RunStarted))
    ends = []
    while not play._inbox.empty():
        ends.append(play._inbox.get())
    assert any(isinstance(event, RunFinished) and event.outcome == "stopped" for event in ends)
    assert any(isinstance(event, CandidateFinished) for event in ends)
