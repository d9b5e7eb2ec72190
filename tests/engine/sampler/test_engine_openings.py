"""Repairs of different answers and fresh candidates in one run of the engine: the texts of runs of their own."""

import queue
import time
from dataclasses import replace

import pytest
import torch

from engine.contract import (
    Add,
    Cancel,
    CandidateFinished,
    Generate,
    Mailbox,
    Request,
    RunFinished,
    RunStarted,
    Sampling,
    Speculation,
    TextAdded,
    Turn,
)
from engine.sampler.decoder import Decoder
from engine.sampler.engine import SamplerEngine
from tests.engine.sampler.test_engine import (  # noqa: F401
    LOAD,
    TinyModel,
    modules,
    of,
    request,
    talk,
    texts,
)
from tests.recorded_runs.playing import SMALL_MODEL, WAIT_S, loaded

FIRST = (Turn("assistant", "def f(): return 1"), Turn("user", "assert f() == 2"))
SECOND = (Turn("assistant", "def f(): return 17"), Turn("user", "assert f() == 2, and more"))
OPENINGS = {2: FIRST, 3: SECOND, 5: FIRST}
KNOWN = {}


@pytest.fixture(autouse=True)
def conversations(monkeypatch):
    """Turns are read one after the other, as a chat template would lay them out."""
    plain = TinyModel.encode

    def encode(self, asked):
        said = "".join(f"<{turn.role}>{turn.text}" for turn in asked.turns)
        return plain(self, replace(asked, prompt=f"{said}<user>{asked.prompt}<assistant>", turns=()))

    monkeypatch.setattr(TinyModel, "encode", encode)


def separate(talk, asked):  # noqa: F811
    """Each candidate in a run of its own, by number; looked up where it was asked for before."""
    alone = [replace(asked.asked_of(number), candidates=1, first_candidate=number) for number in asked.numbers]
    key = (TinyModel.encode.__name__, repr(alone))
    if key not in KNOWN:
        KNOWN[key] = texts(talk([LOAD, *(Generate("r", each) for each in alone)]))
    return KNOWN[key]


@pytest.mark.parametrize("width", [0, 2])
@pytest.mark.parametrize("drafter", ["suffix", "draft-model", "hybrid"])
def test_one_batch_says_what_runs_of_their_own_say(talk, drafter, width):  # noqa: F811
    asked = replace(request(n=5, drafter=drafter), openings=OPENINGS, width=width)
    events = talk([LOAD, Generate("r", asked)])
    assert texts(events) == separate(talk, asked)
    (started,), (end,) = of(RunStarted, events), of(RunFinished, events)
    assert started.candidates == (1, 2, 3, 4, 5)
    shared = started.prompt_tokens
    whole = [len(TinyModel("", None).encode(asked.asked_of(n))) for n in (2, 3)]
    assert end.metrics.tokens_read <= shared + sum(whole) - 2 * shared + (len(OPENINGS) if width else 0) * max(whole)
    if not width:
        assert end.metrics.tokens_read == sum(whole) - shared  # equal openings once, the prompt once


def test_a_template_that_rewrites_earlier_turns_costs_a_prompt_of_its_own_and_no_text(talk, monkeypatch):  # noqa: F811
    straight = TinyModel.encode

    def rewriting(self, asked):
        return [3] * len(asked.turns) + straight(self, asked)

    monkeypatch.setattr(TinyModel, "encode", rewriting)
    asked = replace(request(n=5), openings=OPENINGS)
    events = talk([LOAD, Generate("r", asked)])
    assert texts(events) == separate(talk, asked)
    ended = [event.candidate for event in of(CandidateFinished, events)]
    assert set(ended[:2]) == {1, 4}  # the prompt's own come first
    assert len(ended) == 5


@pytest.fixture
def two_prompts(monkeypatch):
    """Repairs are read behind a prompt of their own, after the others."""
    straight = TinyModel.encode
    monkeypatch.setattr(TinyModel, "encode", lambda self, asked: [3] * len(asked.turns) + straight(self, asked))
    return replace(request(n=8, drafter="none"), openings=dict.fromkeys(range(5, 9), FIRST), width=4)


@pytest.fixture
def memory_for(monkeypatch):
    """``memory_for(most)``: a step of more rows than ``most(prompt length)`` lacks memory. Gives the lacks."""
    lacks, step = [], Decoder.step

    def limit(most):
        def short(self):
            if len(self.rows) > most(self.rows[0].prompt_length):
                lacks.append(len(self.rows))
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return step(self)

        monkeypatch.setattr(Decoder, "step", short)
        return lacks

    return limit


def test_what_the_memory_does_not_hold_it_holds_no_better_behind_the_next_prompt(talk, two_prompts, memory_for):  # noqa: F811
    want = texts(talk([LOAD, Generate("r", two_prompts)]))
    lacks = memory_for(lambda prompt: 2)
    events = talk([LOAD, Generate("r", two_prompts)])
    assert of(RunFinished, events)[0].outcome == "finished"
    assert texts(events) == want
    assert lacks == [4]


def test_a_longer_prompt_may_lack_memory_once_more(talk, two_prompts, memory_for):  # noqa: F811
    want = texts(talk([LOAD, Generate("r", two_prompts)]))
    shortest = len(TinyModel("", None).encode(two_prompts.asked_of(1)))
    lacks = memory_for(lambda prompt: 2 if prompt <= shortest else 1)
    events = talk([LOAD, Generate("r", two_prompts)])
    assert of(RunFinished, events)[0].outcome == "finished"
    assert texts(events) == want
    assert lacks == [4, 2]


def test_a_repair_joins_a_run_that_goes_on(talk):  # noqa: F811
    asked = request(n=2, tokens=30)

    def react(event, submit):
        if isinstance(event, TextAdded) and not added:
            added.append(event)
            submit(Add("r", 2, FIRST))
            submit(Add("r", 1))

    added = []
    events = talk([LOAD, Generate("r", asked)], react)
    want = separate(talk, replace(asked, candidates=5, openings={3: FIRST, 4: FIRST}))
    assert texts(events) == want


def test_a_repair_without_room_fails_alone(talk):  # noqa: F811
    long = (Turn("assistant", "x" * 300), Turn("user", "no"))
    asked = replace(request(n=3), openings={2: long})
    events = talk([LOAD, Generate("r", asked)])
    states = {event.candidate: event.state for event in of(CandidateFinished, events)}
    assert states[2] == "failed"
    assert {states[1], states[3]} <= {"done", "cut"}
    (end,) = of(RunFinished, events)
    assert end.outcome == "finished"
    assert end.reason.startswith("Candidate 2: The prompt has ")  # the user is told, too
    assert "shorten the prompt" in end.reason
    refused = talk([LOAD, Generate("r", replace(asked, candidates=1, openings={1: long}))])
    assert of(RunFinished, refused)[0].outcome == "refused"
    assert "shorten" in of(RunFinished, refused)[0].reason


@pytest.mark.parametrize("message", [Cancel("r"), Cancel("r", 1), Cancel("r", 3), Cancel("r", 4)])
@pytest.mark.parametrize("at", [1, 3, 5, 8])
def test_a_stop_between_any_two_pieces(talk, monkeypatch, at, message):  # noqa: F811
    """Of the run, of one that is written, of one that reads, and of one that waits."""
    monkeypatch.setattr("engine.sampler.ragged_model.PREFILL_CHUNK", 5)
    asked = request(n=1, tokens=40)
    want = separate(talk, replace(asked, candidates=4, openings={2: FIRST, 3: SECOND, 4: SECOND}))
    looks = []
    monkeypatch.setattr("engine.sampler.engine.Mailbox", lambda: Watched(looks, at, message))

    def react(event, submit):
        if isinstance(event, TextAdded) and not looks:
            looks.append("begin")
            submit(Add("r", 1, FIRST))
            submit(Add("r", 2, SECOND))

    events = talk([LOAD, Generate("r", asked)], react)
    assert len(looks) > at  # the message was found
    got = texts(events)
    (end,) = of(RunFinished, events)
    if message.candidate is None:
        assert end.outcome == "stopped"
        assert all(want[n].startswith(text) for n, text in got.items())
        return
    assert end.outcome == "finished"
    assert {n: text for n, text in got.items() if n != message.candidate} == {
        n: text for n, text in want.items() if n != message.candidate
    }
    assert want[message.candidate].startswith(got[message.candidate])


@pytest.mark.parametrize("at", [9, 11, 14])
def test_a_budget_that_ends_while_nobody_writes_cuts_those_that_read(talk, monkeypatch, at):  # noqa: F811
    monkeypatch.setattr("engine.sampler.ragged_model.PREFILL_CHUNK", 5)
    looks = ["begin"]
    monkeypatch.setattr("engine.sampler.engine.Mailbox", lambda: Watched(looks, at, None))
    asked = replace(request(n=2, budget=2.0, drafter="suffix"), openings={1: FIRST, 2: SECOND})
    events = talk([LOAD, Generate("r", asked)])
    assert of(RunFinished, events)[0].outcome == "budget"
    assert [(event.state, event.stop_reason, event.tokens) for event in of(CandidateFinished, events)] == [
        ("cut", "budget", 0)
    ] * 2


def Watched(looks, at, message):  # noqa: N802
    """A mailbox that finds ``message`` at the ``at``-th look after repairs were asked for; without one, time passes."""

    class Box(Mailbox):
        def during(self, run):
            found = list(super().during(run))
            if looks and run:
                looks.append(run)
                if len(looks) == at + 1 and message is None:
                    time.sleep(2.1)
                elif len(looks) == at + 1:
                    found.append(message)
            return found

    return Box()


REAL_WAYS = [
    Speculation("suffix", "goodput", "coupled"),
    Speculation("suffix", "fixed:3", "rejection"),
    Speculation("draft-model", "fixed:2", "coupled"),
    Speculation("draft-model", "fixed:2", "rejection"),
    Speculation("hybrid", "goodput", "coupled"),
]


def test_the_small_model_repairs_in_one_batch_what_it_repairs_alone(small_model_home, monkeypatch):
    """In int8 and with its own chat template: not one token is another, at all widths."""
    monkeypatch.undo()
    monkeypatch.setenv("BASSLINE_HOME", str(small_model_home))
    inbox = queue.SimpleQueue()
    with loaded(SamplerEngine(), SMALL_MODEL, inbox) as engine:

        def run(asked):
            engine.submit(Generate("r", asked))
            events = [inbox.get(timeout=WAIT_S)]
            while not isinstance(events[-1], RunFinished):
                events.append(inbox.get(timeout=WAIT_S))
            assert events[-1].outcome == "finished"
            return texts(events)

        plain = Request("Write add(a, b).", 5, 3, sampling=Sampling(max_tokens=20))
        wrong = run(plain)
        openings = {n + 3: (Turn("assistant", wrong[n]), Turn("user", "assert add(1, 2) == 3 fails.")) for n in wrong}
        openings[7] = openings[4]
        for at, way in enumerate(REAL_WAYS):
            asked = replace(
                plain, candidates=6, first_candidate=4, openings=openings, speculation=way, width=3 * (at % 2)
            )
            together, apart = run(asked), {}
            for number in asked.numbers:
                apart |= run(replace(asked.asked_of(number), candidates=1, first_candidate=number))
            assert together == apart
