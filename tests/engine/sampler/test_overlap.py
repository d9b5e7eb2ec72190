"""Where the device works by itself, the next step is under way before the last one is told; nothing else changes."""

import copy
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from engine.backends import registry
from engine.backends.cpu import Cpu
from engine.contract import (
    Add,
    Cancel,
    CandidateFinished,
    Close,
    Generate,
    Load,
    ModelChoice,
    RunFinished,
    Sampling,
    StepDone,
    TextAdded,
)
from engine.models.room import Room
from engine.sampler.acceptance import Coupled, Proposals, Rejection
from engine.sampler.budget import DraftBudget
from engine.sampler.cost_table import CostTable
from engine.sampler.decoder import Decoder
from engine.sampler.device_model import DeviceModel
from engine.sampler.drafters import Drafter
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.engine import SamplerEngine
from engine.sampler.policies.fixed import Fixed
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.sampling import Distributions
from tests.engine.sampler.running import new_rows, open_decoder, tokens_of
from tests.engine.sampler.test_engine import TinyModel, request
from tests.engine.sampler.tiny import VOCABULARY, build, noisy_copy

NO_MEMORY = "[enforce fail] not enough memory: you tried to allocate 9 bytes"


class Ahead(RaggedModel):
    """Pretends to be on a device that works by itself."""

    is_asynchronous = True


@pytest.fixture(scope="module")
def modules():
    target = build(spread=0.4)
    return {"target": target, "draft": noisy_copy(target, 0.05)}


class Stage:
    """An engine over tiny models. ``log``: launches, commits, decoded tokens and events, in their order."""

    def __init__(self, modules, monkeypatch):
        self.modules, self.monkeypatch, self.log = modules, monkeypatch, []
        monkeypatch.setattr("engine.sampler.engine.check_pair", lambda target, draft: None)
        monkeypatch.setattr("engine.sampler.engine.measured_once", lambda *_: CostTable({1: 1.0, 8: 1.2, 16: 2.0}))
        self._note(Decoder, "launch")
        self._note(Decoder, "_commit")
        decode = TinyModel.decode
        monkeypatch.setattr(TinyModel, "decode", staticmethod(lambda ids: (self.log.append("decode"), decode(ids))[1]))

    def _note(self, owner, name):
        inner = getattr(owner, name)

        def noted(decoder, *arguments):
            self.log.append(name)
            return inner(decoder, *arguments)

        self.monkeypatch.setattr(owner, name, noted)

    def run(self, door, asked, react=lambda event, submit: None):
        """All events of one request through such a door."""
        self.monkeypatch.setattr(
            "engine.sampler.engine.open_model", lambda module, vocabulary, **_: door(module, vocabulary)
        )
        engine = SamplerEngine(lambda name, **_: TinyModel(name, self.modules[name]), lambda name, **_: None)
        events, self.log[:] = [], []

        def emit(event):
            events.append(event)
            self.log.append(event)
            react(event, engine.submit)
            if isinstance(event, RunFinished):
                engine.submit(Close())

        engine.submit(Load(ModelChoice("target", draft="draft")))
        engine.submit(Generate("r", asked))
        engine.run(emit)
        return events


@pytest.fixture
def stage(modules, monkeypatch):
    return Stage(modules, monkeypatch)


def told(events):
    """Events without their times."""
    return [
        replace(event, at_s=0.0) if hasattr(event, "at_s") else getattr(event, "outcome", event) for event in events
    ]


def test_the_next_step_is_launched_before_the_last_one_is_told(stage):
    events = stage.run(Ahead, request(3, tokens=12, drafter="suffix"))
    steps = [event for event in events if isinstance(event, StepDone)]
    done = [stage.log.index(event) for event in steps]
    launches = [at for at, entry in enumerate(stage.log) if entry == "launch"]
    assert len(launches) == steps[-1].steps > 4
    # StepDone 0 tells the first tokens, which no step made. Behind the last nothing is launched.
    for number, at in enumerate(done[:-1]):
        before = done[number - 1] if number else 0
        first_told = next(i for i in range(before + 1, at + 1) if isinstance(stage.log[i], TextAdded | StepDone))
        assert before < launches[number] < first_told
        commits = [i for i in range(before, at) if stage.log[i] == "_commit"]
        assert commits[-1] < launches[number]


def test_what_cannot_end_a_row_becomes_text_while_the_device_works(stage):
    stage.run(Ahead, request(2, tokens=12, drafter="none"))
    launched = [at for at, entry in enumerate(stage.log) if entry == "launch"]
    for start, stop in pairwise(launched):
        commit = stage.log.index("_commit", start)
        assert "decode" in stage.log[start:commit]
        # Only a row that ends is read to its end at once.
        assert "decode" not in stage.log[commit:stop] or any(
            isinstance(entry, CandidateFinished) for entry in stage.log[stop:]
        )


@pytest.mark.parametrize(
    "how",
    [
        {"drafter": "suffix"},
        {"drafter": "draft-model"},
        {"drafter": "hybrid", "policy": "goodput"},
        {"drafter": "draft-model", "acceptance": "rejection"},
        {"drafter": "suffix", "stop": ("\u0140", "\u0150")},
        {"drafter": "suffix", "code_stop": "block"},
    ],
    ids=str,
)
def test_events_are_the_same_and_in_the_same_order(stage, how):
    asked = request(5, tokens=25, **how)
    assert told(stage.run(Ahead, asked)) == told(stage.run(RaggedModel, asked))


def test_nothing_is_launched_that_a_waiting_candidate_would_undo(stage):
    events = stage.run(Ahead, replace(request(5, tokens=12), width=2))
    assert stage.log.count("launch") == [event.steps for event in events if isinstance(event, StepDone)][-1]


@pytest.mark.parametrize("change", ["join", "leave", "release"])
def test_rows_that_come_and_go_undo_what_was_launched(change):
    prompt, numbers = [3, 4, 5], [1, 2, 3]
    found = []
    for ahead in (False, True):
        decoder = open_decoder(build(spread=0.4), drafter="suffix", policy="fixed:3")
        rows = new_rows(numbers, prompt, max_tokens=12)
        logits = decoder.target.prefill(prompt)
        decoder.drafter.begin(prompt, lambda done: True)
        decoder.join(rows[:2], logits)
        if ahead:
            decoder.launch()
        if change == "join":
            decoder.join(rows[2:], logits)
        elif change == "leave":
            rows[0].end("cancelled")
            decoder.leave()
        else:
            decoder.join(decoder.release(), logits)
        widths = []
        while decoder.rows:
            widths.append(decoder.step().rows)
            decoder.leave()
        found.append((tokens_of(rows), widths))
    assert found[0] == found[1]


def at_step(number, *messages):
    waiting = list(messages)

    def react(event, submit):
        if isinstance(event, StepDone) and event.steps == number:
            while waiting:
                submit(waiting.pop(0))

    return react


@pytest.mark.parametrize(
    "messages",
    [(Cancel("r", 2),), (Add("r", 2),), (Cancel("r", 1), Add("r", 1), Cancel("r", 3)), (Cancel("r"),)],
    ids=str,
)
@pytest.mark.parametrize("width", [0, 2])
def test_messages_are_heeded_as_soon(stage, messages, width):
    # What copies are made of may differ by what a cancelled row said last; a draft model's drafts do not.
    asked = replace(request(4, tokens=25, drafter="draft-model"), width=width)
    events = [told(stage.run(door, asked, at_step(3, *messages))) for door in (Ahead, RaggedModel)]
    assert events[0] == events[1]


def test_stop_waits_for_no_step_that_is_under_way(stage):
    stage.run(Ahead, request(4, tokens=150), at_step(3, Cancel("r")))
    assert stage.log.count("launch") == 4
    assert stage.log.count("_commit") == 1 + 3  # the first tokens, and three steps


def test_a_failure_under_way_is_that_of_the_next_step(stage, modules):
    """Memory lacks: what was done is told before, and with half as many rows it goes on."""
    runs = []
    for door in (Ahead, RaggedModel):
        hooks = []

        failures = iter([True] * (2 if door is Ahead else 1))  # the launch ahead, and the step

        def react(event, submit, hooks=hooks, failures=failures):
            if isinstance(event, StepDone) and event.steps == 3 and not hooks:

                def fail(module, args):
                    if next(failures, False):
                        raise RuntimeError(NO_MEMORY)

                hooks.append(modules["target"].lm_head.register_forward_pre_hook(fail))

        runs.append(told(stage.run(door, request(5, tokens=30), react)))
        hooks[0].remove()
    texts = [{e.candidate: e.text for e in run if isinstance(e, CandidateFinished)} for run in runs]
    assert texts[0] == texts[1]
    assert "finished" in runs[0]


class Operations(TorchDispatchMode):
    """What would make the host wait for the device, which "meta" stands in for: it has no values to be asked for."""

    ASKS = ("_local_scalar_dense", "item", "nonzero", "equal", "is_nonzero", "masked_select")
    COPIES = ("_to_copy", "to", "copy_")  # inside inference mode, "to" is not taken apart

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name, options = operation.__name__.split(".")[0], kwargs or {}
        out = operation(*args, **options)
        devices = {part.device.type for part in args if isinstance(part, torch.Tensor)}
        waits = "meta" in devices and (name in self.ASKS or (name in ("index", "index_put_") and _asks(args[1])))
        if name in self.COPIES and {*devices, out.device.type} == {"cpu", "meta"}:
            waits = not (options.get("non_blocking") or any(part is True for part in args))
        if waits:
            self.seen.append(name)
        return out


def _asks(indices):
    """An index by a mask, or by numbers of the host, is one that waits."""
    return any(i is not None and (i.dtype == torch.bool or i.device.type == "cpu") for i in indices)


class Literals(TorchFunctionMode):
    """A tensor of Python numbers that is made on the device is a copy that waits."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __torch_function__(self, function, types, args=(), kwargs=None):
        options = kwargs or {}
        if function in (torch.tensor, torch.as_tensor) and torch.device(options.get("device") or "cpu").type == "meta":
            self.seen.append("tensor")
        return function(*args, **options)


@contextmanager
def waits():
    """Names of the operations inside that the host would wait in."""
    seen = []
    with Operations(seen), Literals(seen):
        yield seen


class Guesses(Drafter):
    """Drafts, and what they were drawn from, on the device."""

    name, draws = "guesses", True

    def __init__(self, tokens, drawn):
        self.tokens, self.drawn = tokens, drawn

    def propose(self, rows, budget):
        size = (sum(map(len, self.tokens)), 4)
        q = Distributions(torch.zeros(size, dtype=torch.long, device="meta"), torch.zeros(size, device="meta"))
        return Proposals(self.tokens, q if self.drawn else None)


@pytest.fixture
def without_values(monkeypatch):
    """The device's verdict where tensors have no values: its kernels are left out, and so is the copy home."""
    kernels = pytest.importorskip("kernels.acceptance.triton", reason="triton has no wheel for this platform")
    monkeypatch.setattr("engine.sampler.verdict.HostCopy", lambda result: result)
    monkeypatch.setitem(registry._BACKENDS, "meta", Cpu)
    judged = []

    def accept(logits, cuts, counter, drafts, starts, rule, *, q=None, raw=None):
        parts = [
            logits,
            cuts,
            *counter,
            drafts,
            starts,
            *([q[0].logits, q[1]] if q else []),
            *([] if raw is None else [raw]),
        ]
        assert {part.device.type for part in parts} == {"meta"}
        assert all(part.is_contiguous() for part in parts[1:7])
        judged.append(q is not None)
        return torch.empty(2 * (len(starts) - 1) + len(drafts), dtype=torch.int32, device="meta")

    monkeypatch.setattr(kernels, "accept", accept)
    return judged


@pytest.mark.parametrize("penalised", [False, True], ids=["plain", "penalised"])
@pytest.mark.parametrize("rule", [Coupled(), Rejection()], ids=lambda rule: rule.name)
@pytest.mark.parametrize("drawn", [False, True], ids=["guessed", "drawn"])
def test_a_launch_never_waits_for_the_device(without_values, rule, drawn, penalised):
    def attention(query, prefix, suffix, *line, **options):
        return query.new_empty(*query.shape[:2], suffix[1].shape[3])

    stock = build().to("meta")
    room = Room(rows=4, slots=32, prompt=16)
    model = DeviceModel(stock, VOCABULARY, attention, None, room=room, has_kernels=True)
    model.prefill([3, 4, 5])
    sampling = Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.3 if penalised else 1.0)
    rows = new_rows([1, 2], [3, 4, 5], sampling=sampling)
    for row in rows:
        row.tokens += [7, 8]
    decoder = Decoder(model, Guesses([[5, 6], [7]], drawn), Fixed(2), rule, CostTable({1: 1.0, 8: 2.0}))
    decoder.rows = rows
    with waits() as seen:
        decoder.launch()
    assert seen == []
    assert without_values == [drawn and isinstance(rule, Rejection)]


def test_what_makes_the_host_wait_would_be_seen():
    device = torch.device("meta")
    there = torch.zeros(4, device=device)
    for inference in (False, True):
        for ask in (
            lambda: torch.tensor([1, 2], device=device),
            lambda: torch.zeros(3).to(device),
            lambda: there[torch.tensor([1, 2])],
            lambda: there.copy_(torch.zeros(4)),
        ):
            with torch.inference_mode(inference), waits() as seen:
                ask()
            assert len(seen) == 1
        with torch.inference_mode(inference), waits() as seen:
            torch.zeros(3).to(device, non_blocking=True)
            there.copy_(torch.zeros(4), non_blocking=True)
        assert seen == []


def test_a_suffix_drafter_may_be_asked_twice():
    """A launch that was forgotten and made again leaves no trace in what the drafter has learned."""
    once, twice = SuffixDrafter(), SuffixDrafter()
    found = []
    for drafter, times in ((once, 1), (twice, 3)):
        rows = new_rows([1, 2], [3, 4, 5, 3, 4])
        drafter.begin([3, 4, 5, 3, 4], lambda done: True)
        offers = []
        for step in range(6):
            for row in rows:
                row.tokens += [3 + (step + row.candidate) % 3, 4]
            for _ in range(times):
                offer = drafter.propose(rows, DraftBudget.of([4, 4]))
            offers.append((offer.tokens, offer.survival))
        found.append(copy.deepcopy(offers))
    assert found[0] == found[1]
