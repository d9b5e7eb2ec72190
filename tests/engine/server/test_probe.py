"""What is found out about a server: only what was seen to work counts."""

from collections.abc import Callable

import pytest

from engine.contract import LoadFailed, Ready, Sampling
from engine.server.dialect import LARGEST, NEUTRAL
from engine.server.faults import NotThere, Unreachable
from engine.server.probe import ServerProbe, probe
from engine.session.servers import Server, add
from tests.engine.server.fake import Exchange, FakeServer, Polite
from tests.engine.server.playing import HASTY, PROMPT, Playing, request

ALL = {"n", "seed", "logprobs", "usage", "temperature", "top_k", "min_p"}


def look(server: FakeServer, answer: Polite | None = None, model: str = "") -> ServerProbe:
    server.answer = answer or Polite()
    return probe(Server("", server.address), model, timeouts=HASTY)


def test_a_server_that_heeds_everything(server: FakeServer) -> None:
    found = look(server)
    assert (found.n, found.seed, found.logprobs, found.chat) == (True, True, True, True)
    assert found.models == ("small", "large")
    assert (found.model, found.context) == ("small", 4096)
    assert 0 < found.latency_s < 5
    assert found.first_token_s is not None
    assert found.lacks == ()
    assert dict(found.dialect.extras) == NEUTRAL


@pytest.mark.parametrize(
    ("without", "sentence"),
    [
        ("n", "It writes one candidate a request, so each is asked for by itself."),
        ("seed", "It ignores the seed: the same seed gives different candidates each time."),
        ("logprobs", "It gives no log-probabilities, so they do not help to rank candidates."),
    ],
)
def test_what_is_ignored_without_a_word_is_seen(server: FakeServer, without: str, sentence: str) -> None:
    found = look(server, Polite(heeds=ALL - {without}))
    assert sentence in found.lacks
    assert (found.n, found.seed, found.logprobs) == tuple(name != without for name in ("n", "seed", "logprobs"))


def test_choices_that_are_twins_do_not_count_as_n(server: FakeServer) -> None:
    found = look(server, Polite(twins=True))
    assert not found.n
    assert found.seed


def test_answers_that_are_all_alike_show_nothing_about_the_seed(server: FakeServer) -> None:
    found = look(server, Polite(heeds=ALL - {"temperature"}))
    assert found.seed is None
    assert any("temperature" in sentence for sentence in found.lacks)


@pytest.mark.parametrize("field", ["stream_options", "logprobs", "n", "seed", "top_k", "min_p", "repeat_penalty"])
def test_what_is_refused_is_left_out_and_nothing_else(server: FakeServer, field: str) -> None:
    found = look(server, Polite(refuses={field: None}))
    sent = server.asked[-1].body
    assert field not in sent
    assert (found.n, found.seed, found.logprobs) == (field != "n", field != "seed", field != "logprobs")
    assert {name for name, _ in found.dialect.extras} == set(NEUTRAL) - {field}


def test_another_word_for_no_limit_is_tried(server: FakeServer) -> None:
    found = look(server, Polite(refuses={"top_k": -1}))
    assert dict(found.dialect.extras) == NEUTRAL | {"top_k": 0}


def test_a_server_that_refuses_without_saying_what(server: FakeServer) -> None:
    polite = Polite()

    def answer(exchange: Exchange) -> None:
        if set(exchange.body) & {*NEUTRAL, "stream_options", "logprobs", "n", "seed"}:
            exchange.refuse(400, "bad request")
        else:
            polite(exchange)

    server.answer = answer
    found = probe(Server("", server.address), timeouts=HASTY)
    assert (found.n, found.seed, found.logprobs) == (False, False, False)
    assert not found.dialect.usage


def test_the_smallest_dialect_is_reached_in_a_few_steps() -> None:
    dialect, steps = LARGEST, 0
    while (smaller := dialect.without("no")) is not None:
        dialect, steps = smaller, steps + 1
    assert steps == 6


def test_a_model_that_only_completes_texts(server: FakeServer) -> None:
    polite = Polite()

    def answer(exchange: Exchange) -> None:
        if "messages" in exchange.body:
            exchange.refuse(400, {"error": {"message": "This model has no chat template."}})
        else:
            polite(exchange)

    server.answer = answer
    found = probe(Server("", server.address), timeouts=HASTY)
    assert not found.chat
    assert found.lacks[0] == "It only completes texts; choose completion mode."


def test_a_model_by_name(server: FakeServer) -> None:
    assert look(server, model="large").model == "large"
    assert server.asked[-1].body["model"] == "large"


def test_a_server_without_a_model(server: FakeServer) -> None:
    server.models = {"data": []}
    with pytest.raises(NotThere, match="lists no model; load one there"):
        look(server)


LISTS = {
    "OpenAI's": {"object": "list", "data": [{"id": "small"}, {"id": "large"}]},
    "bare": [{"id": "small"}, {"id": "large"}],
    "names": ["small", "large"],
    "models": {"models": [{"name": "small"}, {"model": "large"}]},
    "models beside data": {"data": [{"id": "small"}, {"id": "large"}], "models": [{"name": "x"}]},
    "by name": {"data": {"small": {"max_model_len": 7}, "large": {}}},
    "entries that are none": {"data": [None, {"id": "small"}, {"id": 7}, {}, 5, {"id": "large"}]},
}


@pytest.mark.parametrize("models", LISTS.values(), ids=LISTS.keys())
def test_lists_of_models_in_other_forms(server: FakeServer, models: object) -> None:
    server.models = models
    assert look(server).models == ("small", "large")


def test_a_list_with_a_byte_order_mark(server: FakeServer) -> None:
    server.models = '\ufeff{"data": [{"id": "small"}]}'
    assert look(server).models == ("small",)


@pytest.mark.parametrize("models", [{"data": None}, {"data": []}, []])
def test_a_server_that_lists_nothing_is_asked_for_a_named_model(server: FakeServer, models: object) -> None:
    server.models = models
    found = look(server, model="mine")
    assert (found.model, found.models) == ("mine", ())
    with pytest.raises(NotThere, match="lists no model; load one there, or name it with --model"):
        look(server)


def test_a_server_without_a_list_is_asked_for_a_named_model(server: FakeServer) -> None:
    server.lists = False
    found = look(server, model="mine")
    assert (found.model, found.models, found.context) == ("mine", (), 0)
    assert server.asked[-1].body["model"] == "mine"
    with pytest.raises(NotThere, match=r"\(404\)[^;]*; look at the address, or name the model with --model\."):
        look(server)


@pytest.mark.parametrize(
    ("base", "typed"),
    [
        ("/v1", ""),
        ("/v1", "/"),
        ("/v1", "/v1/"),
        ("/v1", "//v1//"),
        ("/v1", "/v1/v1"),
        ("/v1", "/v1/chat/completions"),
        ("/v1", "/v1/completions/"),
        ("/v1", "/v1/models"),
        ("/v1", "/chat/completions"),
        ("/v1", "/api/chat"),
        ("/v1", "/api/generate"),
        ("/v1", "/some/page"),
        ("/lab/v1", "/lab"),
        ("/api", "/"),
        ("/api/v1", "/api"),
    ],
)
def test_the_address_is_found_from_what_people_paste(server: FakeServer, play: Playing, base: str, typed: str) -> None:
    server.base, server.models = base, {"data": [{"id": "small"}]}
    ready = play.load(server.address.removesuffix("/v1") + typed)
    assert isinstance(ready, Ready)
    assert play.play(request()).outcome == "finished"
    assert server.asked[-1].path == f"{base}/chat/completions"


def hot_only(exchange: Exchange, allowed: Callable[[float], bool], said: str, polite: Polite) -> None:
    if allowed(exchange.body.get("temperature", 1)):
        polite(exchange)
    else:
        exchange.refuse(400, {"error": {"message": said}})


@pytest.mark.parametrize(
    ("allowed", "said"),
    [
        (lambda t: t == 1, "invalid temperature: only 1 is allowed for this model"),
        (lambda t: t <= 1, "temperature must be between 0 and 1"),
        (lambda t: t <= 1, "bad request"),
    ],
)
def test_a_server_that_takes_few_temperatures(
    server: FakeServer, play: Playing, allowed: Callable[[float], bool], said: str
) -> None:
    polite = Polite()
    server.answer = lambda exchange: hot_only(exchange, allowed, said, polite)
    assert isinstance(play.load(server.address), Ready)
    assert play.play(request(2, sampling=Sampling(temperature=1.0))).outcome == "finished"
    assert {exchange.body["temperature"] for exchange in server.asked_for(PROMPT)} == {1.0}
    if said != "bad request":
        assert server.asked[-1].body["n"] == 2  # nothing but the temperature was given up


def test_a_temperature_that_the_server_refuses_is_told_in_its_words(server: FakeServer, play: Playing) -> None:
    polite = Polite()
    server.answer = lambda exchange: hot_only(exchange, lambda t: t == 1, "only 1 is allowed", polite)
    play.load(server.address)
    outcome = play.play(request(sampling=Sampling(temperature=0.5)))
    assert outcome.outcome == "failed"
    assert outcome.reason.endswith(" refused the request (400): only 1 is allowed.")


@pytest.mark.parametrize("name", ["temperature", "top_p"])
def test_what_the_server_takes_only_as_it_is_goes_unsaid(server: FakeServer, play: Playing, name: str) -> None:
    server.answer = Polite(refuses={name: None})
    ready = play.load(server.address)
    assert isinstance(ready, Ready)
    words = name.replace("_", "-")
    assert f"It takes no {words} but 1." in ready.note
    assert play.play(request(sampling=Sampling(temperature=1.0, top_p=1.0))).outcome == "finished"
    assert name not in server.asked_for(PROMPT)[0].body
    refused = play.play(request(sampling=Sampling(**{"temperature": 1.0, "top_p": 1.0, name: 0.5})))
    assert (refused.outcome, refused.reason) == ("refused", f"This server takes no {words} but 1; set it to 1.")


def test_the_other_name_for_the_most_tokens(server: FakeServer, play: Playing) -> None:
    polite = Polite(limit="max_completion_tokens")

    def answer(exchange: Exchange) -> None:
        if "max_tokens" in exchange.body:
            said = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            exchange.refuse(400, {"error": {"message": said, "param": "max_tokens"}})
        else:
            polite(exchange)

    server.answer = answer
    assert isinstance(play.load(server.address), Ready)
    assert play.play(request(2, max_tokens=9)).outcome == "finished"
    assert server.asked_for(PROMPT)[0].body["max_completion_tokens"] == 9
    assert server.asked[-1].body["n"] == 2


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(Unreachable, match="Nothing answers at"):
        probe(Server("", "http://127.0.0.1:1"), timeouts=HASTY)


def test_ready_tells_model_context_and_what_is_lacking(server: FakeServer, play: Playing) -> None:
    server.answer = Polite(heeds=ALL - {"seed"})
    ready = play.load(server.address)
    assert isinstance(ready, Ready)
    assert (ready.model, ready.context, ready.precision) == ("small", 4096, "as served")
    assert ready.device == server.address.removeprefix("http://").removesuffix("/v1")
    lacks = "It ignores the seed: the same seed gives different candidates each time."
    assert ready.note == f"{lacks} How it guesses ahead is its own matter."


def test_a_named_server_brings_its_model(server: FakeServer, play: Playing) -> None:
    add(Server("lab", server.address, model="large"))
    ready = play.load("lab")
    assert isinstance(ready, Ready)
    assert ready.model == "large"


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ({"draft": "x"}, "A server brings its own draft model; name it where you start the server."),
        ({"precision": "int8"}, "Precision and device are the server's own matter; leave both on auto."),
        ({"device": "cuda"}, "Precision and device are the server's own matter; leave both on auto."),
    ],
)
def test_what_is_the_servers_own_is_refused(
    server: FakeServer, play: Playing, choice: dict[str, str], sentence: str
) -> None:
    assert play.load(server.address, **choice) == LoadFailed(sentence)
    assert server.seen == []


def test_offline_means_no_server_but_one_on_this_machine(server: FakeServer, play: Playing) -> None:
    assert isinstance(play.load(server.address, offline=True), Ready)
    assert play.load("http://gpu.example:8000", offline=True) == LoadFailed(
        "gpu.example:8000 is elsewhere, and you asked to stay offline; drop one of the two."
    )


# Options beyond OpenAI's own: sent as they are, and never ignored in silence.

OPTIONS = {
    "top_k": (Sampling(top_k=40), "top-k"),
    "min_p": (Sampling(min_p=0.1), "min-p"),
    "repetition_penalty": (Sampling(repetition_penalty=1.2), "repetition penalty"),
    "presence_penalty": (Sampling(presence_penalty=0.5), "presence penalty"),
    "frequency_penalty": (Sampling(frequency_penalty=0.5), "frequency penalty"),
}


@pytest.mark.parametrize(("option", "sampling"), [(name, sampling) for name, (sampling, _) in OPTIONS.items()])
def test_an_option_that_is_heeded_is_sent(server: FakeServer, play: Playing, option: str, sampling: Sampling) -> None:
    server.answer = Polite(heeds=ALL | {option})
    play.load(server.address)
    assert play.play(request(sampling=sampling)).outcome == "finished"
    assert server.asked_for(PROMPT)[0].body[option] == getattr(sampling, option)


@pytest.mark.parametrize(("option", "sampling", "words"), [(name, *both) for name, both in OPTIONS.items()])
@pytest.mark.parametrize("how", ["ignored", "refused"])
def test_an_option_that_is_not_heeded_is_refused(
    server: FakeServer, play: Playing, option: str, sampling: Sampling, words: str, how: str
) -> None:
    refused = {"repetition_penalty": None, "repeat_penalty": None} if option == "repetition_penalty" else {option: None}
    server.answer = Polite(heeds=ALL - {option}, refuses=refused if how == "refused" else {})
    play.load(server.address)
    outcome = play.play(request(sampling=sampling))
    assert (outcome.outcome, outcome.metrics) == ("refused", None)
    assert outcome.reason == f"This server ignores the {words}; switch it off, or choose another server."
    assert server.asked_for(PROMPT) == []


def test_an_option_of_one_candidate_is_looked_at_too(server: FakeServer, play: Playing) -> None:
    server.answer = Polite(heeds=ALL - {"min_p"})
    play.load(server.address)
    assert play.play(request(2, overrides={2: Sampling(min_p=0.2)})).outcome == "refused"


def test_an_option_is_looked_at_once(server: FakeServer, play: Playing) -> None:
    play.load(server.address)
    play.play(request(sampling=Sampling(top_k=5)))
    asked = len(server.asked)
    play.play(request(sampling=Sampling(top_k=6)))
    assert len(server.asked) == asked + 1


def test_a_gap_is_filled_where_the_server_reads_both_sides(server: FakeServer, play: Playing) -> None:
    server.answer = Polite(heeds=ALL | {"suffix"})
    play.load(server.address)
    outcome = play.play(request(mode="fill-in-the-middle", suffix="\nreturn x"))
    assert outcome.outcome == "finished"
    asked = server.asked_for(PROMPT)[0]
    assert (asked.path, asked.body["suffix"]) == ("/v1/completions", "\nreturn x")


@pytest.mark.parametrize(
    "answer", [Polite(), Polite(refuses={"suffix": None}), Polite(heeds=(ALL | {"suffix"}) - {"usage"})]
)
def test_a_gap_is_refused_where_it_was_not_seen_to_work(server: FakeServer, play: Playing, answer: Polite) -> None:
    server.answer = answer
    play.load(server.address)
    outcome = play.play(request(mode="fill-in-the-middle", suffix="\nreturn x"))
    assert outcome.outcome == "refused"
    assert "does not fill gaps" in outcome.reason
