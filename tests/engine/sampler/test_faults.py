"""What breaks at load, in prefill or in a step is a sentence and a kind; what is finished stays."""

import errno
from functools import partial

import pytest
import torch

from engine.contract import (
    CandidateFinished,
    Close,
    Generate,
    Load,
    LoadFailed,
    ModelChoice,
    Ready,
    RunFinished,
    StepDone,
)
from engine.models import notes
from engine.models.errors import DiskFull, DoesNotFit, IncompatibleDraft, ModelNotFound
from engine.sampler.cost_table import CostTable
from engine.sampler.device_path import open_model
from engine.sampler.engine import SamplerEngine
from engine.sampler.faults import kind_of, sentence_for
from tests.engine.sampler.device import FakeDevice
from tests.engine.sampler.test_engine import TinyModel, request
from tests.engine.sampler.tiny import build, noisy_copy

CUDA = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 GiB")
CPU = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:118] . DefaultCPUAllocator: not enough memory: you tried to allocate"
)
FULL = OSError(errno.ENOSPC, "No space left on device")


class Machine:
    """Tiny models, of which any can fail: ``faults`` by name, each raised once when the model is opened."""

    def __init__(self, monkeypatch):
        target = build(spread=0.4)
        self.modules = {"target": target, "draft": noisy_copy(target, 0.05), "other": build(seed=3, spread=0.4)}
        self.faults, self.opened = {}, []
        self.engine = SamplerEngine(self.open, self.resolve)
        monkeypatch.setattr("engine.sampler.engine.check_pair", lambda target, draft: None)
        monkeypatch.setattr("engine.sampler.engine.measured_once", lambda *_: CostTable({1: 1.0, 8: 1.2, 16: 2.0}))

    def open(self, name, **_):
        self.opened.append(name)
        if (fault := self.faults.pop(name, None)) is not None:
            raise fault
        return TinyModel(name, self.modules[name])

    def resolve(self, name, **_):
        if name not in self.modules:
            raise ModelNotFound(f"No model is called {name!r}.")

    def break_once(self, name, error, after=0):
        """Let a model's forward pass raise ``error`` once, ``after`` so many passes that go well."""
        left = [after]

        def fail(module, args, kwargs):
            if left[0] == 0:
                hook.remove()
                raise error
            left[0] -= 1

        hook = self.modules[name].register_forward_pre_hook(fail, with_kwargs=True)

    def say(self, *messages, react=lambda event: None):
        """All events of these messages; each is answered before the next is given."""
        events, waiting = [], list(messages)

        def emit(event):
            events.append(event)
            react(event)
            if isinstance(event, Ready | LoadFailed | RunFinished):
                self.engine.submit(waiting.pop(0) if waiting else Close())

        self.engine.submit(waiting.pop(0))
        self.engine.run(emit)
        return events


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


TARGET, PAIR = Load(ModelChoice("target")), Load(ModelChoice("target", draft="draft"))


class TestLoad:
    @pytest.mark.parametrize("error", [CUDA, CPU, MemoryError(), DoesNotFit("It needs 9 GB.")], ids=repr)
    def test_out_of_memory(self, machine, error):
        machine.faults["target"] = error
        events = machine.say(TARGET, TARGET, Generate("r", request()))
        (failed,) = of(LoadFailed, events)
        assert failed.kind == "out-of-memory"
        assert "smaller model" in failed.reason or "9 GB" in failed.reason
        assert len(failed.reason.splitlines()) == 1
        assert of(RunFinished, events)[0].outcome == "finished"

    @pytest.mark.parametrize("error", [FULL, DiskFull("The disk is full.")], ids=repr)
    def test_disk_full(self, machine, error):
        machine.faults["target"] = error
        (failed,) = of(LoadFailed, machine.say(TARGET))
        assert failed.kind == "disk-full"

    def test_out_of_memory_in_the_check(self, machine):
        machine.break_once("target", CPU)
        events = machine.say(TARGET, TARGET)
        assert of(LoadFailed, events)[0].kind == "out-of-memory"
        assert len(of(Ready, events)) == 1

    @pytest.mark.parametrize("error", [CUDA, DoesNotFit("draft needs 2 GB.")], ids=repr)
    def test_a_draft_that_does_not_fit_is_left_out_with_a_note(self, machine, error):
        machine.faults["draft"] = error
        events = machine.say(PAIR, Generate("r", request()))
        (ready,) = of(Ready, events)
        assert (ready.model, ready.draft) == ("target", "")
        assert ready.note.startswith("Running without draft model: ")
        assert of(RunFinished, events)[0].outcome == "finished"

    def test_what_a_model_does_without_is_told_and_kept_for_the_doctor(self, machine, monkeypatch, tmp_path):
        monkeypatch.setenv("BASSLINE_HOME", str(tmp_path))
        device = FakeDevice(plain="It runs without graphs.")
        monkeypatch.setattr("engine.sampler.engine.open_model", partial(open_model, device=device))
        (ready,) = of(Ready, machine.say(TARGET))
        assert ready.note == "It runs without graphs."
        assert notes.kept() == {"target": "It runs without graphs."}

    def test_a_draft_of_another_family_is_refused(self, machine):
        machine.faults["draft"] = IncompatibleDraft("draft cannot draft for target: token 5 is 'a' in one and 'b' ...")
        (failed,) = of(LoadFailed, machine.say(PAIR))
        assert (failed.kind, failed.reason[:24]) == ("", "draft cannot draft for t")

    @pytest.mark.parametrize("choice", [ModelChoice("tarqet"), ModelChoice("other", draft="drat")])
    def test_a_mistyped_name_costs_nothing(self, machine, choice):
        events = machine.say(TARGET, Load(choice), Generate("r", request()))
        assert "No model is called" in of(LoadFailed, events)[0].reason
        assert of(RunFinished, events)[0].outcome == "finished"
        assert machine.opened == ["target"]

    def test_a_model_that_fails_leaves_none_and_says_so(self, machine):
        machine.faults["other"] = ValueError("bad header")
        events = machine.say(TARGET, Load(ModelChoice("other")), Generate("r", request()), TARGET)
        assert "ValueError: bad header" in of(LoadFailed, events)[0].reason
        (end,) = of(RunFinished, events)
        assert (end.outcome, end.reason) == ("refused", "No model is loaded; load one first.")
        assert len(of(Ready, events)) == 2


class TestRun:
    @pytest.mark.parametrize("name", ["target", "draft"])
    @pytest.mark.parametrize(
        ("error", "kind"), [(CPU, "out-of-memory"), (ValueError("nan"), "")], ids=["memory", "else"]
    )
    def test_in_prefill(self, machine, name, error, kind):
        def react(event):
            if isinstance(event, Ready):
                machine.break_once(name, error)

        events = machine.say(PAIR, Generate("a", request()), Generate("b", request()), react=react)
        first, second = of(RunFinished, events)
        assert (first.outcome, first.kind, second.outcome) == ("failed", kind, "finished")

    @pytest.mark.parametrize("name", ["target", "draft"])
    @pytest.mark.parametrize("step", [1, 4])
    def test_in_a_step_what_is_finished_stays(self, machine, name, step):
        """Candidates end at different lengths; the model breaks after some of them have."""
        broken = []

        def react(event):
            if isinstance(event, StepDone) and event.steps == step and not broken:
                broken.append(machine.break_once(name, ValueError("broken kernel")))

        plain = machine.say(PAIR, Generate("a", request(6, tokens=30)))
        machine.engine = SamplerEngine(machine.open, machine.resolve)
        events = machine.say(
            PAIR, Generate("a", request(6, tokens=30)), Generate("b", request(6, tokens=30)), react=react
        )
        first, second = of(RunFinished, events)
        assert (first.outcome, second.outcome) == ("failed", "finished")
        assert "ValueError: broken kernel" in first.reason
        want = {event.candidate: event.text for event in of(CandidateFinished, plain)}
        ended = [event for event in of(CandidateFinished, events) if event.run == "a"]
        assert len(ended) > 1
        for event in ended:
            assert want[event.candidate].startswith(event.text)
            assert event.state in ("done", "cut", "failed")
        again = {event.candidate: event.text for event in of(CandidateFinished, events) if event.run == "b"}
        assert again == want


class TestWords:
    @pytest.mark.parametrize(
        ("error", "kind", "said"),
        [
            (CUDA, "out-of-memory", "Loading ran out of memory; take fewer candidates"),
            (CPU, "out-of-memory", "ran out of memory"),
            (MemoryError(), "out-of-memory", "ran out of memory"),
            (FULL, "disk-full", "Loading found the disk full; make room"),
            (Exception("I/O error: No space left on device (os error 28)"), "disk-full", "disk full"),
            (ValueError("out of memory cells in the sheet"), "", "ValueError: out of memory cells"),
            (KeyError("x"), "", "KeyError: 'x'. The details are worth a report."),
        ],
    )
    def test_sentence_and_kind(self, error, kind, said):
        assert kind_of(error) == kind
        assert said in sentence_for(error, "Loading")
