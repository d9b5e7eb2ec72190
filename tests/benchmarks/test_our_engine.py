"""Our engine as a contender: what it is told to forget, it reads again."""

import pytest

from benchmarks.our_engine import OurEngine
from engine.contract import BasslineError, CandidateFinished, ModelChoice, Request, RunFinished, Sampling
from engine.sampler.prefix_reuse import PrefixReuse


@pytest.mark.real_model
def test_after_a_rest_nothing_of_the_prompt_is_known(small_model, monkeypatch):
    known, match = [], PrefixReuse.match

    def noted(self, prompt):
        known.append(match(self, prompt).prompt)
        return match(self, prompt)

    engine = OurEngine(ModelChoice(small_model, precision="int8"))
    try:
        monkeypatch.setattr(PrefixReuse, "match", noted)
        request = Request("Add two numbers.", 0, 1, sampling=Sampling(max_tokens=3))
        first = engine.run(request)
        again = engine.run(request)
        engine.rest()
        engine.run(request)
    finally:
        engine.close()
    assert known[0] == 0
    assert known[1] > 10  # else the last figure would show nothing
    assert known[3] == 0
    assert isinstance(first[-1], RunFinished)
    texts = [[event.text for event in run if isinstance(event, CandidateFinished)] for run in (first, again)]
    assert texts[0] == texts[1]


def test_a_model_that_is_not_there_is_one_sentence():
    with pytest.raises(BasslineError, match="No model is called"):
        OurEngine(ModelChoice("no-such-model"))
