"""Nothing is left of a run that is over: case D17."""

import gc
import threading

import pytest
import torch

from engine.contract import Cancel, Close, Generate, Load, ModelChoice, Request, RunFinished, RunStarted, Sampling
from engine.sampler.engine import SamplerEngine
from engine.sampler.generation import Generation
from engine.sampler.stopping import Row
from tests.engine.sampler.test_engine import TinyModel, any_name
from tests.engine.sampler.tiny import build, noisy_copy

WARM = 2  # jobs until everything that is kept is there


def alive(kind):
    """Objects of a kind, looked for by type: that asks nothing of other libraries' objects."""
    gc.collect()
    return [thing for thing in gc.get_objects() if issubclass(type(thing), kind)]


@pytest.fixture
def play(monkeypatch):
    """``play(jobs, cancel)``: run so many jobs on one engine; tensor bytes alive when an early and the last start."""
    monkeypatch.setattr("engine.sampler.engine.check_pair", lambda target, draft: None)
    target = build(spread=0.4)
    modules = {"target": target, "draft": noisy_copy(target, 0.05)}

    def run(jobs, cancel):
        engine = SamplerEngine(lambda name, **_: TinyModel(name, modules[name]), any_name)
        sizes, outcomes = [], []

        def emit(event):
            if isinstance(event, RunStarted):
                if event.run in (f"r{WARM}", f"r{jobs - 1}"):
                    sizes.append(sum(tensor.nbytes for tensor in alive(torch.Tensor)))
                if cancel:
                    engine.submit(Cancel(event.run))
            elif isinstance(event, RunFinished):
                outcomes.append(event.outcome)
                if len(outcomes) == jobs:
                    engine.submit(Close())

        engine.submit(Load(ModelChoice("target", draft="draft")))
        sampling = Sampling(temperature=1.0, max_tokens=12, repetition_penalty=1.2)
        for number in range(jobs):
            engine.submit(Generate(f"r{number}", Request("write some code", number, candidates=3, sampling=sampling)))
        engine.run(emit)
        return sizes, outcomes

    return run


def threads_of_ours():
    """But for the helpers of ``kernels.team``, which come with the first loop and stay as long as the process."""
    return [thread for thread in threading.enumerate() if not thread.name.startswith("loops-")]


@pytest.mark.parametrize(("jobs", "cancel", "outcome"), [(20, False, "finished"), (100, True, "stopped")])
def test_d17_memory_is_flat_and_nothing_is_left(play, jobs, cancel, outcome):
    threads, rows, generations = threads_of_ours(), len(alive(Row)), len(alive(Generation))
    sizes, outcomes = play(jobs, cancel)
    assert outcomes == [outcome] * jobs
    early, late = sizes
    assert late <= early * 1.01
    assert threads_of_ours() == threads
    assert (len(alive(Row)), len(alive(Generation))) == (rows, generations)
