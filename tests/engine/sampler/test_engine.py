"""The sampler as an engine: messages in, events out, one RunFinished whatever happens."""

import time

import pytest
import torch

from engine.contract import (
    Add,
    Cancel,
    CandidateFinished,
    Close,
    Closed,
    Generate,
    Load,
    LoadCancelled,
    LoadFailed,
    ModelChoice,
    PromptProgress,
    Ready,
    Request,
    RunFinished,
    RunStarted,
    Sampling,
    Speculation,
    StepDone,
    TextAdded,
)
from engine.sampler.engine import SamplerEngine
from tests.engine.sampler.running import letters
from tests.engine.sampler.tiny import VOCABULARY, build, noisy_copy


class TinyModel:
    """What the loader gives, around a random model; one character of the prompt is one token."""

    def __init__(self, name, module, context=200, tokenizer=None):
        self.name, self.module, self.context, self.tokenizer = name, module, context, tokenizer
        self.device, self.precision = torch.device("cpu"), "float32"
        self.vocabulary, self.eos_ids = VOCABULARY, frozenset({2})

    def encode(self, request):
        return [3 + ord(letter) % (VOCABULARY - 3) for letter in request.prompt]

    decode = staticmethod(letters)


@pytest.fixture(scope="module")
def modules():
    target = build(spread=0.4)
    return {"target": target, "draft": noisy_copy(target, 0.05)}


@pytest.fixture
def talk(modules, monkeypatch):
    """``talk(first messages, react)``: everything the engine says; ``react(event, submit)`` answers on the way."""
    monkeypatch.setattr("engine.sampler.engine.check_pair", lambda target, draft: None)

    def load(name, *, progress, cancelled, **_):
        if cancelled():
            raise LoadCancelled("Loading was stopped.")
        return TinyModel(name, modules[name])

    def run(messages, react=lambda event, submit: None):
        engine, events = SamplerEngine(load), []

        def emit(event):
            events.append(event)
            react(event, engine.submit)
            done = sum(isinstance(e, RunFinished) for e in events) == wanted
            if done or isinstance(event, LoadFailed):
                engine.submit(Close())

        wanted = sum(isinstance(m, Generate) for m in messages)
        for message in messages:
            engine.submit(message)
        engine.run(emit)
        assert isinstance(events[-1], Closed)
        return events

    return run


LOAD = Load(ModelChoice("target", draft="draft"))


def request(n=3, tokens=12, drafter="auto", policy="fixed:3", acceptance="coupled", budget=None, **sampling):
    return Request(
        "write some code",
        seed=5,
        candidates=n,
        sampling=Sampling(**{"max_tokens": tokens, "temperature": 1.0, "top_p": 1.0} | sampling),
        speculation=Speculation(drafter, policy, acceptance),
        time_budget_s=budget,
    )


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def texts(events):
    return {event.candidate: event.text for event in of(CandidateFinished, events)}


@pytest.mark.parametrize("drafter", ["none", "suffix", "draft-model", "auto"])
@pytest.mark.parametrize("acceptance", ["coupled", "rejection"])
def test_a_whole_run(talk, drafter, acceptance):
    events = talk([LOAD, Generate("r", request(drafter=drafter, acceptance=acceptance))])
    assert of(Ready, events)[0].draft == "draft"
    assert of(RunStarted, events)[0].candidates == (1, 2, 3)
    finished = of(CandidateFinished, events)
    assert sorted(event.candidate for event in finished) == [1, 2, 3]
    for event in finished:
        streamed = "".join(e.text for e in of(TextAdded, events) if e.candidate == event.candidate)
        assert streamed == event.text
        assert event.state == ("done" if event.stop_reason == "stop" else "cut")
    (end,) = of(RunFinished, events)
    assert end.outcome == "finished"
    assert end.metrics.drafter == ("draft-model" if drafter == "auto" else drafter)
    if drafter in ("draft-model", "auto"):
        assert 0.2 < end.metrics.acceptance_rate < 1
    if drafter == "none":
        assert end.metrics.acceptance_rate is None
    assert of(StepDone, events)[-1].tokens == sum(event.tokens for event in finished)


def test_the_text_depends_on_nothing_but_seed_and_number(talk):
    runs = [request(3, drafter="none"), request(3, drafter="suffix"), request(7, policy="bass"), request(3)]
    results = [texts(talk([LOAD, Generate("r", one)])) for one in runs]
    assert all({n: result[n] for n in (1, 2, 3)} == results[0] for result in results)


def test_cancel_one_of_six_at_step_three(talk):
    def react(event, submit):
        if isinstance(event, StepDone) and event.steps == 3:
            submit(Cancel("r", 2))

    quiet = texts(talk([LOAD, Generate("r", request(6))]))
    events = talk([LOAD, Generate("r", request(6))], react)
    states = {event.candidate: event.state for event in of(CandidateFinished, events)}
    assert states[2] == "stopped"
    assert {n: t for n, t in texts(events).items() if n != 2} == {n: t for n, t in quiet.items() if n != 2}
    assert quiet[2].startswith(texts(events)[2])
    assert of(RunFinished, events)[0].outcome == "finished"


@pytest.mark.parametrize("moment", [RunStarted, StepDone], ids=lambda kind: kind.__name__)
def test_cancel_all_keeps_what_is_there(talk, moment):
    def react(event, submit):
        if isinstance(event, moment):
            submit(Cancel("r"))

    events = talk([LOAD, Generate("r", request(4, tokens=150))], react)
    assert [event.outcome for event in of(RunFinished, events)] == ["stopped"]
    assert len(of(StepDone, events)) <= 1
    assert all(event.state == "stopped" for event in of(CandidateFinished, events))


def test_a_run_cancelled_while_it_waits_still_gets_its_one_answer(talk):
    events = talk([LOAD, Generate("a", request()), Generate("b", request()), Cancel("b")])
    assert [(event.run, event.outcome) for event in of(RunFinished, events)] == [("a", "finished"), ("b", "stopped")]


def test_generate_more_joins_the_run(talk):
    asked = []

    def react(event, submit):
        if isinstance(event, StepDone) and event.steps == 2 and not asked:
            asked.append(submit(Add("r", 2)))

    events = talk([LOAD, Generate("r", request(2))], react)
    want = texts(talk([LOAD, Generate("r", request(4))]))
    assert texts(events) == want


def test_messages_that_come_while_the_prompt_is_read_are_heeded(talk, monkeypatch):
    monkeypatch.setattr("engine.sampler.ragged_model.PREFILL_CHUNK", 4)

    def react(event, submit):
        if isinstance(event, PromptProgress) and event.done == 4:
            submit(Add("r", 2))
            submit(Cancel("r", 2))
            submit(Cancel("r", 4))

    events = talk([LOAD, Generate("r", request(2))], react)
    want = texts(talk([LOAD, Generate("r", request(3))]))
    assert texts(events) == {1: want[1], 2: "", 3: want[3], 4: ""}
    assert {e.candidate for e in of(CandidateFinished, events) if e.state == "stopped"} == {2, 4}


def test_the_time_budget_counts_while_the_prompt_is_read(talk, monkeypatch):
    monkeypatch.setattr("engine.sampler.ragged_model.PREFILL_CHUNK", 1)
    events = talk([LOAD, Generate("r", request(2, budget=1e-9))])
    assert len(of(PromptProgress, events)) == 1
    assert of(RunFinished, events)[0].outcome == "budget"


def test_a_tokenizer_that_fails_still_ends_the_run(talk, monkeypatch):
    calls = []

    def decode(ids):
        calls.append(ids)
        if len(calls) > 20:
            raise ValueError("no such id")
        return letters(ids)

    monkeypatch.setattr(TinyModel, "decode", staticmethod(decode))
    (end,) = of(RunFinished, talk([LOAD, Generate("r", request(3))]))
    assert end.outcome == "failed"
    assert "no such id" in end.reason


def test_a_time_budget_cuts_what_is_unfinished(talk):
    def react(event, submit):
        if isinstance(event, StepDone):
            time.sleep(0.05)

    events = talk([LOAD, Generate("r", request(4, tokens=180, budget=0.2))], react)
    assert of(RunFinished, events)[0].outcome == "budget"
    cut = of(CandidateFinished, events)
    assert {(event.state, event.stop_reason) for event in cut} == {("cut", "budget")}
    assert all(event.text for event in cut)


def test_a_prompt_that_leaves_no_room_is_refused_with_numbers(talk):
    long = Request("x" * 300, seed=1)
    events = talk([LOAD, Generate("r", long)])
    (end,) = of(RunFinished, events)
    assert (end.outcome, of(RunStarted, events)) == ("refused", [])
    assert "300" in end.reason
    assert "200" in end.reason


def test_an_answer_never_passes_the_context(talk):
    nearly = Request("x" * 190, seed=1, candidates=2, sampling=Sampling(temperature=1.0, max_tokens=500))
    events = talk([LOAD, Generate("r", nearly)])
    assert all(event.tokens <= 10 for event in of(CandidateFinished, events))


def test_a_draft_model_that_is_not_loaded_is_refused(talk):
    events = talk([Load(ModelChoice("target")), Generate("r", request(drafter="draft-model"))])
    (end,) = of(RunFinished, events)
    assert end.outcome == "refused"
    assert "--draft" in end.reason


def test_without_a_model_a_run_is_refused(talk):
    (end,) = of(RunFinished, talk([Generate("r", request())]))
    assert (end.outcome, end.metrics) == ("refused", None)


def test_a_model_that_fails_in_a_step_keeps_finished_candidates_and_the_next_run_works(talk, modules):
    broken = []

    def react(event, submit):
        if isinstance(event, StepDone) and event.steps == 2 and not broken:
            broken.append(modules["target"].lm_head.register_forward_pre_hook(fail))

    def fail(module, args):
        broken.pop().remove()
        broken.append(None)
        raise RuntimeError("[enforce fail] not enough memory: you tried to allocate 9 bytes")

    events = talk([LOAD, Generate("a", request(3, tokens=30)), Generate("b", request())], react)
    first, second = of(RunFinished, events)
    assert (first.outcome, second.outcome) == ("failed", "finished")
    assert "fewer candidates" in first.reason
    assert "enforce fail" in first.details
    failed = [event for event in of(CandidateFinished, events) if event.run == "a"]
    assert len(failed) == 3
    assert {event.state for event in failed} <= {"failed", "done"}
    assert all(event.text for event in failed)


def test_a_load_can_be_cancelled(talk):
    (failed,) = of(LoadFailed, talk([LOAD, Cancel()]))
    assert failed.cancelled


def test_loading_problems_are_told_and_the_engine_lives_on(modules):
    engine, events = SamplerEngine(lambda name, **_: 1 / 0), []

    def emit(event):
        events.append(event)
        if isinstance(event, LoadFailed):
            engine.submit(Close())

    engine.submit(LOAD)
    engine.run(emit)
    assert "ZeroDivisionError" in events[0].reason
    assert "Traceback" in events[0].details
