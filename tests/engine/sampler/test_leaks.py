"""Nothing is left of a run that is over."""

import gc
import sys
import threading

import pytest
import torch

from engine.contract import Cancel, Close, Generate, Load, ModelChoice, Request, RunFinished, RunStarted, Sampling
from engine.sampler.engine import SamplerEngine
from engine.sampler.generation import SamplerRun
from engine.sampler.row import Row
from tests.engine.sampler.test_engine import TinyModel, any_name
from tests.engine.sampler.tiny import build, noisy_copy

MADE_BY_THE_WAY = {"tensor bytes": 4000, "objects": 50, "blocks": 1000}  # answers differ in length
WARM = 5  # jobs until everything that is kept is there


def alive(kind):
    """Objects of a kind, looked for by type: that asks nothing of other libraries' objects."""
    gc.collect()
    return [thing for thing in gc.get_objects() if issubclass(type(thing), kind)]


def python_objects():
    gc.collect()
    return len(gc.get_objects()), sys.getallocatedblocks()


@pytest.fixture
def play(monkeypatch):
    """``play(jobs, cancel)``: run so many jobs on one engine; what is alive when some of them start.

    Bytes of tensors, Python objects, and blocks of Python's memory: numbers in lists are no objects of their own.
    """
    monkeypatch.setattr("engine.sampler.engine.check_pair", lambda target, draft: None)
    monkeypatch.setattr("engine.sampler.drafters.copies.GENERATION", 40)  # what is copied from is full when it counts
    target = build(spread=0.4)
    modules = {"target": target, "draft": noisy_copy(target, 0.05)}

    def run(jobs, cancel):
        engine = SamplerEngine(lambda name, **_: TinyModel(name, modules[name]), any_name)
        sizes, outcomes = [], []

        def emit(event):
            if isinstance(event, RunStarted):
                if int(event.run[1:]) in range(WARM, jobs, jobs // 20):
                    sizes.append((sum(tensor.nbytes for tensor in alive(torch.Tensor)), *python_objects()))
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
    """But for the helpers of ``kernels.thread_pool``, which come with the first loop and stay as long as the
    process.
    """
    return [thread for thread in threading.enumerate() if not thread.name.startswith("loops-")]


@pytest.mark.parametrize(("jobs", "cancel", "outcome"), [(20, False, "finished"), (100, True, "stopped")])
def test_memory_is_flat_and_nothing_is_left(play, jobs, cancel, outcome, monkeypatch):
    monkeypatch.setattr("engine.sampler.prefix_reuse.BUDGET", 20_000)  # answers that are kept fill it at once
    threads, rows, generations = threads_of_ours(), len(alive(Row)), len(alive(SamplerRun))
    sizes, outcomes = play(jobs, cancel)
    assert outcomes == [outcome] * jobs
    # What is copied from comes and goes, a generation at a time: the most of it counts.
    early, late = (tuple(map(max, zip(*part, strict=True))) for part in (sizes[:8], sizes[8:]))
    for kind, before, after in zip(MADE_BY_THE_WAY, early, late, strict=True):
        assert after <= before + MADE_BY_THE_WAY[kind], kind
    assert threads_of_ours() == threads
    assert (len(alive(Row)), len(alive(SamplerRun))) == (rows, generations)
