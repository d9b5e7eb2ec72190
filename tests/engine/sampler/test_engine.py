"""The sampler as an engine: messages in, events out, one RunFinished whatever happens."""

import time
from dataclasses import replace

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
from engine.sampler.drafters.speculator import Speculator
from engine.sampler.engine import SamplerEngine
from tests.engine.sampler.running import letters
from tests.engine.sampler.test_speculator import file_for
from tests.engine.sampler.tiny import VOCABULARY, build, noisy_copy


class TinyModel:
    """What the loader gives, around a random model; one character of the prompt is one token."""

    def __init__(self, name, module, context=200, tokenizer=()):
        self.name, self.module, self.context, self.tokenizer = name, module, context, tokenizer
        self.device, self.precision = torch.device("cpu"), "float32"
        self.vocabulary, self.eos_ids = VOCABULARY, frozenset({2})

    def encode(self, request):
        return [3 + ord(letter) % (VOCABULARY - 3) for letter in request.prompt]

    decode = staticmethod(letters)


def any_name(name, **_):
    """In place of ``resolve``: the names here mean the tiny models."""


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
        engine, events = SamplerEngine(load, any_name), []

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


def request(
    n=3,
    tokens=12,
    drafter="auto",
    policy="fixed:3",
    acceptance="coupled",
    budget=None,
    prompt="write some code",
    **sampling,
):
    return Request(
        prompt,
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


@pytest.mark.parametrize("drafter", ["none", "suffix", "draft-model", "hybrid", "auto"])
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
    assert end.metrics.drafter == ("hybrid" if drafter == "auto" else drafter)
    if drafter not in ("none", "suffix"):
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


def test_a_speculator_guesses_unless_told_otherwise(talk, monkeypatch):
    monkeypatch.setattr(
        "engine.sampler.engine.speculator_for", lambda target: Speculator(file_for(target.module), target.module)
    )

    def said(drafter):
        events = talk([Load(ModelChoice("target")), Generate("r", request(3, tokens=30, drafter=drafter))])
        drafted = sum(event.drafted for event in of(StepDone, events))
        (end,) = of(RunFinished, events)
        return drafted, texts(events), end.metrics.drafter

    none, copies, everything, by_name = map(said, ("none", "suffix", "auto", "speculator"))
    assert none[0] == 0 < copies[0] < everything[0] == by_name[0]
    assert none[1] == copies[1] == everything[1] == by_name[1]
    assert [run[2] for run in (none, copies, everything, by_name)] == ["none", "suffix", "speculator", "speculator"]


@pytest.mark.parametrize("acceptance", ["coupled", "rejection"])
def test_a_mixture_asks_the_speculator_too(talk, monkeypatch, acceptance):
    """Copies, n-grams, the speculator and the draft model are one drafter, and a run can name it."""
    asked, tell = [], Speculator.next
    monkeypatch.setattr(Speculator, "next", lambda self, *which: asked.append(which[1]) or tell(self, *which))
    monkeypatch.setattr(
        "engine.sampler.engine.speculator_for", lambda target: Speculator(file_for(target.module), target.module)
    )
    plain = texts(talk([LOAD, Generate("r", request(3, tokens=30, drafter="none"))]))
    assert not asked
    events = talk([LOAD, Generate("r", request(3, tokens=30, drafter="hybrid", acceptance=acceptance))])
    assert asked
    (end,) = of(RunFinished, events)
    assert end.metrics.drafter == "hybrid"
    if acceptance == "coupled":
        assert texts(events) == plain


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"drafter": "oracle"}, "Drafter 'oracle' is not known; choose auto, suffix, speculator, draft-model"),
        ({"policy": "fixed"}, "fixed:N with N from 0 to 99."),
        ({"acceptance": "always"}, "choose coupled or rejection."),
    ],
)
def test_a_name_that_nothing_is_registered_for_refuses_the_run_and_nothing_else(talk, names, sentence):
    events = talk([LOAD, Generate("a", request(**names)), Generate("b", request())])
    first, second = of(RunFinished, events)
    assert (first.outcome, second.outcome) == ("refused", "finished")
    assert sentence in first.reason


def test_a_speculator_that_is_not_there_is_refused(talk):
    events = talk([Load(ModelChoice("target")), Generate("r", request(drafter="speculator"))])
    (end,) = of(RunFinished, events)
    assert end.outcome == "refused"
    assert "suffix" in end.reason


def test_without_a_model_a_run_is_refused(talk):
    (end,) = of(RunFinished, talk([Generate("r", request())]))
    assert (end.outcome, end.metrics) == ("refused", None)


class BreakAtStep:
    """A reaction after which the target fails ``times`` times, from the given step on, until ``hook`` is removed."""

    def __init__(self, modules, step, error, times):
        self.modules, self.step, self.error, self.left = modules, step, error, times
        self.hook = None

    def __call__(self, event, submit):
        if isinstance(event, StepDone) and event.steps == self.step and self.hook is None:
            self.hook = self.modules["target"].lm_head.register_forward_pre_hook(self._fail)

    def _fail(self, module, args):
        if self.left:
            self.left -= 1
            raise self.error


NO_MEMORY = "[enforce fail] not enough memory: you tried to allocate 9 bytes"


def test_a_model_that_fails_in_a_step_keeps_finished_candidates_and_the_next_run_works(talk, modules):
    react = BreakAtStep(modules, 2, RuntimeError("mat1 and mat2 do not fit"), times=1)
    events = talk([LOAD, Generate("a", request(3, tokens=30)), Generate("b", request())], react)
    first, second = of(RunFinished, events)
    assert (first.outcome, second.outcome) == ("failed", "finished")
    assert "worth a report" in first.reason
    assert "do not fit" in first.details
    failed = [event for event in of(CandidateFinished, events) if event.run == "a"]
    assert len(failed) == 3
    assert {event.state for event in failed} <= {"failed", "done"}
    assert all(event.text for event in failed)


@pytest.mark.parametrize("drafter", ["none", "suffix", "draft-model", "hybrid"])
def test_out_of_memory_once_goes_on_with_half_the_batch_and_the_same_texts(talk, modules, drafter):
    want = texts(talk([LOAD, Generate("a", request(5, drafter=drafter, tokens=30))]))
    for error in (RuntimeError(NO_MEMORY), MemoryError()):
        react = BreakAtStep(modules, 3, error, times=1)
        events = talk([LOAD, Generate("a", request(5, drafter=drafter, tokens=30))], react)
        react.hook.remove()
        assert of(RunFinished, events)[0].outcome == "finished"
        assert texts(events) == want
        shown = {n: "".join(e.text for e in of(TextAdded, events) if e.candidate == n) for n in want}
        assert shown == want  # nothing was told twice
        after = [event.active for event in of(StepDone, events) if event.steps > 3]
        assert max(after) <= 2


def test_out_of_memory_again_ends_the_run_with_numbers_and_the_next_one_works(talk, modules):
    react = BreakAtStep(modules, 3, MemoryError(), times=2)
    events = talk([LOAD, Generate("a", request(6, tokens=30)), Generate("b", request())], react)
    first, second = of(RunFinished, events)
    assert (first.outcome, first.kind, second.outcome) == ("failed", "out-of-memory", "finished")
    assert first.reason.startswith("3 candidates at a time")
    assert len([event for event in of(CandidateFinished, events) if event.run == "a"]) == 6


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
def test_however_many_at_a_time_the_texts_are_the_same(talk, width):
    want = texts(talk([LOAD, Generate("a", request(5, tokens=20))]))
    events = talk([LOAD, Generate("a", replace(request(5, tokens=20), width=width))])
    assert texts(events) == want
    assert max(event.active for event in of(StepDone, events)) <= width
    assert of(RunFinished, events)[0].metrics.width == min(width, 5)


def test_more_candidates_keep_to_the_width_that_was_asked_for(talk):
    asked = []

    def react(event, submit):
        if isinstance(event, StepDone) and event.steps == 2 and not asked:
            asked.append(submit(Add("a", 4)))

    events = talk([LOAD, Generate("a", replace(request(2, tokens=40, drafter="none"), width=2))], react)
    assert len(texts(events)) == 6
    assert max(event.active for event in of(StepDone, events)) == 2


def test_what_speculation_did_is_told(talk):
    def numbers(**how):
        return of(RunFinished, talk([LOAD, Generate("a", request(2, tokens=40, **how))]))[0].metrics

    plain = numbers(drafter="none")
    assert (plain.plain_step_share, plain.mean_draft_length, plain.speedup) == (1.0, 0.0, None)
    drafted = numbers(drafter="draft-model", policy="fixed:3")
    assert drafted.plain_step_share < 0.5
    assert 1 < drafted.mean_draft_length <= 3
    assert drafted.speedup > 0


def test_a_follow_up_reads_only_what_is_new(talk, modules):
    def again(text):
        """Letters of a prompt that mean the very tokens of an answer."""
        return "".join(chr(VOCABULARY - 3 + ord(letter) - 0x100 - 3) for letter in text)

    def ask(prompt, run="a"):
        return Generate(run, request(3, prompt=prompt, tokens=12, drafter="none"))

    first = texts(talk([LOAD, ask("abcdefgh")]))
    longer = "abcdefgh" + again(first[2]) + "xyz"
    alone = texts(talk([LOAD, ask(longer)]))
    read = []
    hook = modules["target"].register_forward_pre_hook(
        lambda module, args, kwargs: read.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    events = talk([LOAD, ask("abcdefgh"), ask(longer, "b")])
    hook.remove()
    assert texts([event for event in events if getattr(event, "run", "") == "b"]) == alone
    assert max(read[-13:]) == 4  # the answer's last token, which was never fed, and three new ones; then one per row


def test_a_load_can_be_cancelled(talk):
    (failed,) = of(LoadFailed, talk([LOAD, Cancel()]))
    assert failed.cancelled


def test_loading_problems_are_told_and_the_engine_lives_on(modules):
    engine, events = SamplerEngine(lambda name, **_: 1 / 0, any_name), []

    def emit(event):
        events.append(event)
        if isinstance(event, LoadFailed):
            engine.submit(Close())

    engine.submit(LOAD)
    engine.run(emit)
    assert "ZeroDivisionError" in events[0].reason
    assert "Traceback" in events[0].details
