"""Two engines in one process, each in the middle of a pass while the other is.

One that was told to stop is at its last step when the next begins: after a forced stop, or a change of models.
"""

import copy
import sys
import threading
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
    Request,
    RunFinished,
    Sampling,
    Speculation,
)
from engine.sampler.cache import forward_over
from engine.sampler.engine import SamplerEngine
from engine.sampler.ragged_model import RaggedModel
from kernels.elementwise import compile_elementwise
from kernels.int8_linear import available, join_siblings, replace_linears
from tests.engine.sampler.test_engine import TinyModel, any_name
from tests.engine.sampler.tiny import VOCABULARY, build, noisy_copy

RUNS = 4
PROMPTS = ("write a parser of dates " * 9, "sort these by name and size " * 3)


class LongTinyModel(TinyModel):
    def __init__(self, name, module, precision):
        super().__init__(name, module, context=512)
        self.precision = precision


def built(precision, seed):
    """A target and a draft of a size that keeps a pass busy for a while."""
    shape = {"hidden_size": 96, "intermediate_size": 168, "num_hidden_layers": 3}
    target = build("qwen2", seed, spread=0.15, **shape)
    models = {"target": target, "draft": noisy_copy(target, 0.02)}
    if precision == "int8":
        ids = torch.arange(3, 9)[None]
        for name, model in models.items():
            model = replace_linears(compile_elementwise(model))
            models[name] = join_siblings(model, partial(model, input_ids=ids))
    return models


def answers(models, precision, prompt, seed, *, begin=lambda: None):
    """Texts of some runs by candidate, the outcomes, and what went wrong; on the thread that calls."""
    engine = SamplerEngine(lambda name, **_: LongTinyModel(name, models[name], precision), any_name)
    texts, outcomes = {}, []

    def emit(event):
        if isinstance(event, CandidateFinished):
            texts[event.run, event.candidate] = event.text
        elif isinstance(event, RunFinished | LoadFailed):
            outcomes.append(getattr(event, "outcome", "not loaded") + event.reason + event.details)
        if isinstance(event, LoadFailed) or len(outcomes) == RUNS:
            engine.submit(Close())

    engine.submit(Load(ModelChoice("target", draft="draft")))
    for number in range(RUNS):
        sampling = Sampling(temperature=1.0, max_tokens=40)
        how = Speculation(("suffix", "hybrid", "draft-model", "none")[number % 4], "fixed:3", "coupled")
        engine.submit(Generate(f"r{number}", Request(prompt, seed, 4, sampling=sampling, speculation=how)))
    begin()
    engine.run(emit)
    return texts, outcomes


@pytest.fixture
def hasty(monkeypatch):
    """Threads take turns as often as they can."""
    monkeypatch.setattr("engine.sampler.engine.check_pair", lambda target, draft: None)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("precisions", [("float32", "float32"), ("int8", "int8"), ("int8", "float32")], ids="-".join)
def test_two_engines_in_the_middle_of_passes_say_what_each_says_alone(precisions, hasty):
    if "int8" in precisions and not available():
        pytest.skip("no int8 products here")
    jobs = [(built(precision, seed), precision, PROMPTS[seed], 5 + seed) for seed, precision in enumerate(precisions)]
    alone = [answers(*job) for job in jobs]
    assert [outcomes for _, outcomes in alone] == [["finished"] * RUNS] * 2
    for _ in range(3):
        gate, found = threading.Barrier(2), {}

        def work(index, gate=gate, found=found):
            found[index] = answers(*jobs[index], begin=lambda: gate.wait(60))

        threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert [found.get(index) for index in range(2)] == alone


def test_a_pass_within_a_pass_finds_its_own_cache_and_then_the_outer_one():
    """A draft's pass may be begun while the target's is open, on one thread; another thread sees neither."""
    target, draft = (RaggedModel(copy.deepcopy(build(seed=seed)), VOCABULARY) for seed in range(2))
    want = {model: model.prefill([3, 4, 5]).logits for model in (target, draft)}
    for model in (target, draft):
        model.clear()
    step = target.cache.step
    with forward_over(target.cache, step):
        assert torch.equal(draft.prefill([3, 4, 5]).logits, want[draft])
        other = []
        thread = threading.Thread(target=lambda: other.append(draft.forward([[6]], [3]).logits))
        thread.start()
        thread.join(30)
        assert len(other) == 1
        assert torch.equal(target.prefill([3, 4, 5]).logits, want[target])
