"""A run on a polite server: who is asked for what, and what is told."""

import asyncio
import gc
import time
from dataclasses import replace

import pytest

from engine.contract import (
    Add,
    Cancel,
    CandidateFinished,
    Generate,
    RunFinished,
    RunStarted,
    Sampling,
    StepDone,
    TextAdded,
    Turn,
)
from engine.server.candidate import ServerCandidate
from engine.server.dialect import Dialect
from engine.server.feature_check import FeatureCheck, ProbeRequest
from engine.server.generation import ServerRun
from engine.server.mailbox import AsyncMailbox
from tests.engine.server.fake import Exchange, FakeServer, Polite
from tests.engine.server.playing import PROMPT, Playing, eventually, request

ALL = {"n", "seed", "logprobs", "usage", "temperature", "top_k", "min_p"}


def connect(play: Playing, server: FakeServer, without: str = "") -> None:
    server.answer = Polite(heeds=ALL - {without})
    play.load(server.address)


def words_for_ever(exchange: Exchange) -> None:
    """Of two choices, one word after another until the client leaves."""
    exchange.begin()
    for at in range(2000):
        for index in range(exchange.body.get("n", 1)):
            exchange.text(f"word{at} ", index)
        time.sleep(0.01)


def test_one_request_brings_all_candidates_where_n_is_heeded(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    outcome = play.play(request(4))
    (asked,) = server.asked_for(PROMPT)
    assert asked.body["n"] == 4
    assert play.texts == {1: "one", 2: "two", 3: "three", 4: "four"}
    assert outcome.outcome == "finished"
    assert [end.state for end in play.ends.values()] == ["done"] * 4
    assert {end.mean_logprob for end in play.ends.values()} == {-0.5}


def test_a_server_that_ignores_n_is_asked_n_times_with_seeds_of_their_own(server: FakeServer, play: Playing) -> None:
    connect(play, server, without="n")
    play.play(request(3, seed=4))
    asked = server.asked_for(PROMPT)
    assert sorted(exchange.body["seed"] for exchange in asked) == [5, 6, 7]
    assert not any("n" in exchange.body for exchange in asked)
    assert play.texts == {1: "five", 2: "six", 3: "seven"}


def test_those_requests_are_under_way_at_the_same_time(server: FakeServer, play: Playing) -> None:
    connect(play, server, without="n")
    server.answer = Polite(heeds=ALL - {"n"}, step_s=0.4)
    begun = time.monotonic()
    play.play(request(4))
    assert time.monotonic() - begun < 1.2


def test_width_says_how_many_at_a_time(server: FakeServer, play: Playing) -> None:
    connect(play, server, without="n")
    most = now = 0

    def answer(exchange: Exchange) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        time.sleep(0.05)
        now -= 1
        exchange.begin()
        exchange.text("x", finish="stop")
        exchange.done()

    server.answer = answer
    play.play(request(6, width=2))
    assert most == 2
    assert len(play.ends) == 6


def test_width_splits_one_request_where_n_is_heeded(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    play.play(request(5, width=2))
    assert [exchange.body.get("n", 1) for exchange in server.asked_for(PROMPT)] == [2, 2, 1]
    assert play.texts == {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}


@pytest.mark.parametrize("status", [400, 500])
def test_a_server_that_takes_no_n_this_time_is_asked_one_by_one(server: FakeServer, play: Playing, status: int) -> None:
    connect(play, server)
    polite = Polite()

    def answer(exchange: Exchange) -> None:
        if exchange.body.get("n", 1) > 2:
            exchange.refuse(status, {"error": {"message": "n must not be greater than the number of slots"}})
        else:
            polite(exchange)

    server.answer = answer
    assert play.play(request(3)).outcome == "finished"
    assert play.texts == {1: "one", 2: "two", 3: "three"}


def test_choices_that_never_came_are_asked_for_by_themselves(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    server.answer = Polite(heeds=ALL - {"n"})
    assert play.play(request(3)).outcome == "finished"
    assert play.texts == {1: "one", 2: "two", 3: "three"}


def test_candidates_with_a_sampling_of_their_own_come_from_requests_of_their_own(
    server: FakeServer, play: Playing
) -> None:
    connect(play, server)
    cold = Sampling(temperature=0.1, max_tokens=64)
    play.play(request(3, overrides={2: cold}))
    by_heat = {exchange.body["temperature"]: exchange.body for exchange in server.asked_for(PROMPT)}
    assert by_heat[0.8]["n"] == 2
    assert "n" not in by_heat[0.1]
    assert by_heat[0.1]["seed"] == 2
    assert set(play.texts) == {1, 2, 3}


def test_numbers_begin_where_the_request_says(server: FakeServer, play: Playing) -> None:
    connect(play, server, without="n")
    play.play(request(2, first_candidate=5))
    assert play.texts == {5: "five", 6: "six"}


def test_turns_and_system_are_said_before_the_prompt(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    play.play(request(turns=(Turn("user", "a"), Turn("assistant", "b")), system="be brief"))
    (asked,) = server.asked_for(PROMPT)
    assert asked.path == "/v1/chat/completions"
    roles = [(message["role"], message["content"]) for message in asked.body["messages"]]
    assert roles == [("system", "be brief"), ("user", "a"), ("assistant", "b"), ("user", PROMPT)]


def test_repairs_are_asked_what_was_said_behind_the_prompt(server: FakeServer, play: Playing) -> None:
    """One request for each conversation, also of repairs that join a run that goes on."""
    connect(play, server)
    first, second = ((Turn("assistant", answer), Turn("user", "fix it")) for answer in ("a", "b"))
    play.play(request(4, openings={2: first, 3: second, 4: first}))
    said = {m["content"]: asked.body for asked in server.asked_for("fix it") for m in asked.body["messages"][-2:-1]}
    assert {answer: body.get("n", 1) for answer, body in said.items()} == {"a": 2, "b": 1}
    assert all(body["messages"][-3]["content"] == PROMPT for body in said.values())
    assert sorted(play.texts) == [1, 2, 3, 4]


def test_a_repair_joins_a_run_that_goes_on(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    server.answer = Polite(step_s=0.2, texts=("a b c d", "e"))
    play.start(request(1))
    play.until(lambda event: isinstance(event, TextAdded))
    play.submit(Add("run", 1, (Turn("assistant", "a"), Turn("user", "fix it"))))
    assert play.finish().outcome == "finished"
    (asked,) = server.asked_for("fix it")
    assert [m["content"] for m in asked.body["messages"][-3:]] == [PROMPT, "a", "fix it"]
    assert sorted(play.texts) == [1, 2]


def test_completion_mode_sends_the_bare_prompt(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    play.play(request(2, mode="completion"))
    (asked,) = server.asked_for(PROMPT)
    assert asked.path == "/v1/completions"
    assert asked.body["prompt"] == PROMPT
    assert play.texts == {1: "one", 2: "two"}
    assert {end.mean_logprob for end in play.ends.values()} == {-0.5}


def test_events_come_in_the_order_of_the_contract(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    server.answer = Polite(texts=("a few words here",))
    play.said.clear()
    outcome = play.play(request(1, seed=9))
    assert play.said[0] == RunStarted("run", 0, (1,), 9)
    assert isinstance(play.said[-1], RunFinished)
    assert sum(isinstance(event, CandidateFinished) for event in play.said) == 1
    assert [event.tokens for event in play.said if isinstance(event, TextAdded)] == [1, 2, 3, 4]
    assert [event for event in play.said if isinstance(event, StepDone)][-1].tokens == 4
    metrics = outcome.metrics
    assert metrics is not None
    assert metrics.time_to_first_token_s is not None
    assert metrics.acceptance_rate is None
    assert metrics.width == 1


def test_a_text_that_reached_its_limit_is_cut(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    server.answer = Polite(texts=("one two three four",))
    play.play(request(max_tokens=2))
    assert play.ends[1].state == "cut"
    assert play.ends[1].stop_reason == "length"
    assert play.ends[1].tokens == 2


@pytest.mark.parametrize("counted", [True, False])
def test_a_server_that_ignores_the_limit_is_cut_off(server: FakeServer, play: Playing, counted: bool) -> None:
    connect(play, server)

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        more = {"logprobs": {"content": [{"logprob": -1.0}]}} if counted else {}
        for _ in range(2000):
            exchange.text("word ", **more)

    server.answer = answer
    assert play.play(request(max_tokens=10)).outcome == "finished"
    assert (play.ends[1].state, play.ends[1].stop_reason) == ("cut", "length")
    assert len(play.texts[1]) == (55 if counted else 325)


def test_tokens_are_the_servers_count_where_it_counts(server: FakeServer, play: Playing) -> None:
    connect(play, server, without="logprobs")

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text("two tokens in one piece", finish="stop")
        exchange.send({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 17}})
        exchange.done()

    server.answer = answer
    play.play(request())
    assert play.ends[1].tokens == 17


def test_a_stop_string_ends_the_text_whatever_the_server_does(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    server.answer = words_for_ever
    play.play(request(2, sampling=Sampling(stop=("ord3 ",), max_tokens=64)))
    assert play.texts == {1: "word0 word1 word2 w", 2: "word0 word1 word2 w"}
    assert {end.state for end in play.ends.values()} == {"done"}


def test_code_ends_at_its_block_if_asked_to(server: FakeServer, play: Playing) -> None:
    connect(play, server)

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for piece in ("```python\n", "x = 1\n", "``", "`\n", "And now a long explanation"):
            exchange.text(piece)
        exchange.wait_until_gone()

    server.answer = answer
    play.play(request(sampling=Sampling(code_stop="block", max_tokens=64)))
    assert play.texts[1].startswith("```python\nx = 1\n```")
    assert "explanation" not in play.texts[1]


@pytest.mark.parametrize("without", ["", "n"])
def test_stop_closes_every_connection_at_once(server: FakeServer, play: Playing, without: str) -> None:
    connect(play, server, without)
    server.answer = words_for_ever
    play.start(request(3))
    play.until(lambda event: isinstance(event, TextAdded) and event.candidate == 1)
    stopped = time.monotonic()
    play.submit(Cancel("run"))
    assert play.finish().outcome == "stopped"
    assert time.monotonic() - stopped < 1
    assert {end.state for end in play.ends.values()} == {"stopped"}
    assert play.texts[1].startswith("word0 ")
    assert eventually(lambda: all(exchange.gone for exchange in server.asked_for(PROMPT)))


def test_stop_before_the_first_byte(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    server.answer = Exchange.wait_until_gone
    play.start(request(2))
    play.until(lambda event: isinstance(event, RunStarted))
    while not server.asked_for(PROMPT):
        time.sleep(0.01)
    play.submit(Cancel("run"))
    assert play.finish().outcome == "stopped"
    assert play.texts == {1: "", 2: ""}


def test_one_candidate_stopped_closes_its_connection_and_no_other(server: FakeServer, play: Playing) -> None:
    connect(play, server, without="n")
    server.answer = words_for_ever
    play.start(request(2))
    play.until(lambda event: isinstance(event, TextAdded) and event.candidate == 2)
    play.submit(Cancel("run", 2))
    play.until(lambda event: isinstance(event, CandidateFinished))
    first, second = sorted(server.asked_for(PROMPT), key=lambda exchange: exchange.body["seed"])
    assert eventually(lambda: second.gone)
    assert not first.gone
    play.submit(Cancel("run"))
    play.finish()
    assert play.ends[2].stop_reason == "cancelled"


def test_a_candidate_that_says_nothing_more_is_hung_up_on_at_once(server: FakeServer, play: Playing) -> None:
    connect(play, server, without="n")

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text("word ")
        exchange.wait_until_gone()

    server.answer = answer
    play.start(request(2))
    play.until(lambda event: isinstance(event, TextAdded) and event.candidate == 2)
    play.submit(Cancel("run", 2))
    first, second = sorted(server.asked_for(PROMPT), key=lambda exchange: exchange.body["seed"])
    assert eventually(lambda: second.gone)
    assert not first.gone


def test_a_shared_connection_is_closed_with_its_last_candidate(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    server.answer = words_for_ever
    play.start(request(2))
    play.until(lambda event: isinstance(event, TextAdded))
    play.submit(Cancel("run", 1))
    play.until(lambda event: isinstance(event, CandidateFinished))
    play.until(lambda event: isinstance(event, TextAdded) and event.candidate == 2)
    (asked,) = server.asked_for(PROMPT)
    assert not asked.gone
    play.submit(Cancel("run", 2))
    assert play.finish().outcome == "finished"
    assert eventually(lambda: asked.gone)


def test_generate_more_adds_to_a_run_that_is_going_on(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    server.answer = Polite(step_s=0.2, texts=("a b c d", "e f g h", "i", "j"))
    play.start(request(2))
    play.until(lambda event: isinstance(event, TextAdded))
    play.submit(Add("run", 2))
    assert play.finish().outcome == "finished"
    assert play.texts == {1: "a b c d", 2: "e f g h", 3: "i", 4: "j"}


def test_what_is_added_while_the_server_is_still_looked_at_is_written_too(server: FakeServer, play: Playing) -> None:
    """And what is added afterwards gets the numbers behind it."""
    connect(play, server)
    server.answer = Polite(heeds=ALL, step_s=0.1, texts=("a b", "c d", "e", "f"))
    play.start(request(2, sampling=Sampling(temperature=0.0, top_k=5, max_tokens=64)))  # which it is tried out for
    play.submit(Add("run", 1))
    play.until(lambda event: isinstance(event, RunStarted))
    assert not play.ends
    play.submit(Add("run", 1))
    assert play.finish().outcome == "finished"
    assert sorted(play.ends) == [1, 2, 3, 4]
    assert {end.state for end in play.ends.values()} == {"done"}


def test_what_is_added_when_the_last_candidate_has_just_ended_never_was(recwarn: pytest.WarningsRecorder) -> None:
    """Whoever asked for it sees that it never began, and may ask once more."""

    async def just_ended() -> set[int]:
        question = ProbeRequest(None, "m", "chat", Dialect())  # type: ignore[arg-type]
        run = ServerRun(Generate("run", request(2)), question, FeatureCheck(question), AsyncMailbox(), print)
        async with asyncio.TaskGroup() as run._group:
            run._candidates = {number: ServerCandidate(number, Sampling()) for number in (1, 2)}
            await asyncio.sleep(0)
        run._take_message(Add("run", 3), asyncio.get_running_loop().create_future())
        return set(run._candidates)

    assert asyncio.run(just_ended()) == {1, 2}
    gc.collect()
    assert not recwarn.list


def test_the_time_budget_cuts_what_is_not_finished(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    server.answer = words_for_ever
    outcome = play.play(request(2, time_budget_s=0.4))
    assert outcome.outcome == "budget"
    assert {(end.state, end.stop_reason) for end in play.ends.values()} == {("cut", "budget")}
    assert play.texts[1].startswith("word0 ")


def test_the_same_engine_plays_one_run_after_another(server: FakeServer, play: Playing) -> None:
    connect(play, server)
    first = play.play(request(2))
    play.said.clear()
    second = play.play(replace(request(2), seed=2))
    assert (first.outcome, second.outcome) == ("finished", "finished")
    assert play.texts == {1: "three", 2: "four"}


def test_nothing_is_generated_without_a_server(play: Playing) -> None:
    outcome = play.play(request())
    assert outcome.outcome == "refused"
    assert outcome.reason == "No server is connected; choose one first."
