"""Whatever is guessed, however it is planned, whoever comes and goes: each row is that of plain decoding, alone."""

from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.contract import Sampling
from engine.sampler.acceptance import Coupled, Proposals, Rejection
from engine.sampler.budget import DraftBudget
from engine.sampler.drafters import Drafter, NoDrafter
from engine.sampler.drafters.draft_model import DraftModelDrafter
from engine.sampler.drafters.hybrid import HybridDrafter
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.ragged_model import RaggedModel
from tests.engine.sampler.running import assemble, decode, letters, new_rows
from tests.engine.sampler.table_model import TableModel
from tests.engine.sampler.tiny import VOCABULARY, build, noisy_copy

SMALL = 23  # ids: few, so that end tokens, stop strings and repetitions come often
POLICIES = ("fixed:0", "fixed:1", "fixed:4", "fixed:9", "bass", "goodput", "random")


class Oracle(Drafter):
    """Knows the truth, also of what would come past the end, and tells it with a chance for every token."""

    name = "oracle"

    def __init__(self, truth, random, honesty, vocabulary):
        self._truth, self._random, self._honesty, self._vocabulary = truth, random, honesty, vocabulary

    def propose(self, rows, budget):
        tokens = [self._guess(row, count) for row, count in zip(rows, budget.guesses, strict=True)]
        return Proposals(tokens, survival=[[0.9**n for n in range(1, len(row) + 1)] for row in tokens])

    def _guess(self, row, count):
        future = self._truth[row.candidate][len(row.tokens) :]
        lie = self._random.randrange
        return [
            token if self._random.random() < self._honesty else lie(self._vocabulary)
            for token in (future + [lie(self._vocabulary) for _ in range(count)])[: max(count, 0)]
        ]


samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_p=st.sampled_from([0.5, 0.95, 1.0]),
    top_k=st.sampled_from([0, 1, 3]),
    min_p=st.sampled_from([0.0, 0.2]),
    repetition_penalty=st.sampled_from([1.0, 1.0, 1.5, 5.0, 0.7]),
    presence_penalty=st.sampled_from([0.0, 0.0, 0.8]),
    frequency_penalty=st.sampled_from([0.0, 0.0, 0.4, -0.3]),
)


@st.composite
def runs(draw, vocabulary, most_tokens):
    """What is asked for: prompt, candidates, each one's sampling, and what ends them."""
    numbers = sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=6)))
    base = draw(samplings)
    own = draw(st.dictionaries(st.sampled_from(numbers), samplings, max_size=3))
    stop = draw(st.lists(st.text(letters(range(vocabulary)), min_size=1, max_size=2), max_size=2))
    return {
        "prompt": draw(st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=12)),
        "numbers": numbers,
        "sampling": {number: own.get(number, base) for number in numbers},
        "options": {
            "max_tokens": draw(st.integers(1, most_tokens)),
            "seed": draw(st.integers(0, 2**63 - 1)),
            "eos": draw(st.sets(st.integers(0, vocabulary - 1), max_size=2)),
            "stop": stop,
        },
    }


@st.composite
def events(draw, numbers):
    """Who joins at which step, and who is cancelled at which."""
    late = draw(st.dictionaries(st.sampled_from(numbers), st.integers(1, 6), max_size=len(numbers) - 1))
    return late, draw(st.dictionaries(st.sampled_from(numbers), st.integers(1, 8), max_size=2))


def alone(model, run):
    """Plain decoding of each candidate by itself."""
    rows = {}
    for number in run["numbers"]:
        decoder = assemble(model, NoDrafter(), "fixed:0", Coupled())
        (rows[number],) = decode(decoder, run["prompt"], rows_of(run, [number]))
    return rows


def rows_of(run, numbers):
    return new_rows(numbers, run["prompt"], sampling=run["sampling"], **run["options"])


def speculate(model, run, drafter, policy_name, random, late, cancelled):
    """All candidates together, with drafts; some join late, some are cancelled."""
    decoder = assemble(model, drafter, "fixed:3" if policy_name == "random" else policy_name, Coupled())
    if policy_name == "random":
        decoder.policy.budget = lambda rows: DraftBudget.of([random.randrange(6) for _ in rows])
    rows = {row.candidate: row for row in rows_of(run, run["numbers"])}
    logits = model.prefill(run["prompt"])
    drafter.begin(run["prompt"], lambda done: True)
    decoder.join([row for number, row in rows.items() if number not in late], logits)
    decoder.leave()
    step = 0
    while decoder.rows or step <= max(late.values(), default=0):
        if joining := [rows[number] for number, at in late.items() if at == step]:
            decoder.join(joining, logits)
        for row in decoder.rows:
            if cancelled.get(row.candidate) == step and not row.stop_reason:
                row.end("cancelled")
        decoder.leave()
        if decoder.rows:
            decoder.step()
            decoder.leave()
        step += 1
    return rows


def a_drafter(data, guide, oracle):
    match data.draw(st.sampled_from(["oracle", "suffix", "draft-model", "hybrid"])):
        case "oracle":
            return oracle
        case "suffix":
            return SuffixDrafter()
        case "draft-model":
            return DraftModelDrafter(guide, Coupled())
        case _:
            return HybridDrafter(SuffixDrafter(), DraftModelDrafter(guide, Coupled()))


def without_end(model, run):
    """What each candidate would say if nothing ended it."""
    options = run["options"] | {"max_tokens": 40, "eos": (), "stop": ()}
    return {number: row.tokens for number, row in alone(model, run | {"options": options}).items()}


def check(rows, truth, endless):
    for number, row in rows.items():
        want = truth[number]
        if row.stop_reason == "cancelled":  # it also shows what a stop string held back
            assert row.tokens == endless[number][: len(row.tokens)]
            continue
        assert (row.tokens, row.text, row.stop_reason) == (want.tokens, want.text, want.stop_reason)
        assert row.log_probs == pytest.approx(want.log_probs, abs=1e-4)
        assert 0 <= row.accepted <= min(row.proposed, len(row.tokens))


@given(data=st.data(), random=st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_guesses_any_plan_any_company(data, random):
    run = data.draw(runs(SMALL, 30))
    late, cancelled = data.draw(events(run["numbers"]))
    model = TableModel(SMALL, sharpness=data.draw(st.sampled_from([0.5, 3.0])))
    truth = alone(model, run)
    endless = without_end(model, run)
    guide = TableModel(SMALL, sharpness=3.0, seed=data.draw(st.integers(0, 1)))
    drafter = a_drafter(data, guide, Oracle(endless, random, data.draw(st.floats(0, 1)), SMALL))
    rows = speculate(model, run, drafter, data.draw(st.sampled_from(POLICIES)), random, late, cancelled)
    check(rows, truth, endless)


@pytest.fixture(scope="module")
def network():
    target = build(spread=0.4)
    draft = noisy_copy(target, 0.05)  # before compiled loops take the places of some of its modules
    return RaggedModel(target, VOCABULARY), RaggedModel(draft, VOCABULARY)


@given(data=st.data(), random=st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_through_a_network_and_its_cache(network, data, random):
    target, draft = network
    run = data.draw(runs(VOCABULARY, 16))
    late, cancelled = data.draw(events(run["numbers"]))
    truth = alone(target, run)
    endless = without_end(target, run)
    drafter = a_drafter(data, draft, Oracle(endless, random, 0.7, VOCABULARY))
    policy = data.draw(st.sampled_from(POLICIES))
    check(speculate(target, run, drafter, policy, random, late, cancelled), truth, endless)


def test_scores_equal_a_teacher_forced_pass_with_and_without_guesses():
    """Raw log-softmax of the target, before temperature, cuts and penalties."""
    model, sampling = TableModel(SMALL), Sampling(temperature=0.5, top_k=5, repetition_penalty=2.0)
    options = {"max_tokens": 30, "seed": 4}
    run = {"prompt": [1, 2, 3], "numbers": [1, 2], "sampling": dict.fromkeys([1, 2], sampling), "options": options}
    for row in speculate(model, run, SuffixDrafter(), "fixed:4", None, {}, {}).values():
        first = model.prefill(run["prompt"]).logits
        rest = model.forward([row.tokens[:-1]], [3]).logits
        logits = torch.cat([first, rest]).log_softmax(-1)
        want = logits.gather(1, torch.tensor(row.tokens)[:, None])[:, 0]
        assert row.log_probs == pytest.approx(want.tolist(), abs=1e-4)
        assert row.mean_log_prob == pytest.approx(want.mean().item(), abs=1e-4)


@pytest.mark.parametrize("rule", ["coupled", "rejection"])
def test_a_draft_that_is_its_target_is_always_right_also_with_penalties(rule):
    """Which it is only if both see the same tokens as said, at every position of the draft."""
    model = build(dtype=torch.float64)
    sampling = Sampling(temperature=1.0, top_p=1.0, repetition_penalty=1.7, presence_penalty=0.5, frequency_penalty=0.3)
    acceptance = Coupled() if rule == "coupled" else Rejection()
    prompt, numbers = [5, 6, 7, 5], [1, 2, 3]
    drafter = DraftModelDrafter(RaggedModel(build(dtype=torch.float64), VOCABULARY), acceptance)
    decoder = assemble(RaggedModel(model, VOCABULARY), drafter, "fixed:5", acceptance)
    ladder = {number: replace(sampling, temperature=0.4 * number) for number in numbers}
    rows = decode(decoder, prompt, new_rows(numbers, prompt, 40, sampling=ladder))
    assert all(row.accepted == row.proposed > 20 for row in rows)
