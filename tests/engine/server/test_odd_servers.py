"""Everything that goes wrong: the text so far is kept, and one sentence says what happened."""

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
from engine.server.client import Timeouts
from tests.engine.server.fake import Answer, Exchange, FakeServer, Polite
from tests.engine.server.playing import HASTY, PROMPT, Playing, eventually, playing, request
from tests.engine.server.streams import chunk, run_with, streamed


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
    "silent": (silent, f"{HOST} sent nothing for 1 s; the text so far is kept."),
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
    with playing(Timeouts(connect_s=1, silence_s=1, busy_s=1)) as play:
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


OTHERS = {
    "messages of Anthropic": (
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ab"}},
        {"type": "message_stop"},
    ),
    "OpenAI's responses": ({"type": "response.output_text.delta", "delta": "ab"}, {"type": "response.completed"}),
    "Ollama's own": ('{"message": {"role": "assistant", "content": "ab"}, "done": true}\n',),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_events_of_another_interface_are_told_from_an_answer(server: FakeServer, play: Playing, name: str) -> None:
    outcome = run_with(play, server, streamed(*OTHERS[name], done=False))
    assert outcome.outcome == "failed"
    assert outcome.reason.endswith(" does not answer as an OpenAI-compatible server does; look at the address.")


@pytest.mark.parametrize("status", [200, 400])
def test_json_that_is_nested_without_end_is_a_fault_of_the_server(
    server: FakeServer, play: Playing, status: int
) -> None:
    outcome = run_with(play, server, lambda exchange: exchange.refuse(status, "[" * 100_000 + "]" * 100_000))
    assert outcome.outcome == "failed"
    assert "worth a report" not in outcome.reason
    assert outcome.reason.startswith("127.0.0.1:")


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
    "not paid": (402, {"error": {"message": "no credit"}}, "refused the request (402): no credit."),
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

    with playing(Timeouts(connect_s=1, silence_s=1, busy_s=1)) as play:
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
    with socket.create_server(("127.0.0.1", 0)) as deaf, playing(Timeouts(1, 0.5, 1)) as play:
        failed = play.load(f"http://127.0.0.1:{deaf.getsockname()[1]}")
    assert isinstance(failed, LoadFailed)
    assert "sent nothing for 0.5 s" in failed.reason


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
