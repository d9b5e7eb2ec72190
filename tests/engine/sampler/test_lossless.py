"""Speculation changes no token, whatever drafts, stops or runs beside it."""

import copy
import random
from itertools import pairwise

import pytest
import torch

from engine.contract import Sampling
from engine.sampler.acceptance import Proposals
from engine.sampler.budget import DraftBudget
from engine.sampler.drafters import Drafter
from tests.engine.sampler.running import FREE, GREEDY, decode, new_rows, open_decoder, tokens_of
from tests.engine.sampler.tiny import VOCABULARY, build, noisy_copy

WAYS = [
    ("suffix", "fixed:3"),
    ("suffix", "goodput"),
    ("draft-model", "fixed:1"),
    ("draft-model", "bass"),
    ("draft-model", "goodput"),
    ("hybrid", "fixed:2"),
    ("hybrid", "goodput"),
]


@pytest.fixture(scope="module")
def target():
    return build(spread=0.4)


@pytest.fixture(scope="module")
def draft(target):
    return noisy_copy(target, 0.05)


def random_prompt(seed, length=None):
    generator = random.Random(seed)
    return [generator.randrange(3, VOCABULARY) for _ in range(length or generator.randrange(2, 30))]


def plain(target, prompt, numbers, sampling, **options):
    """Regular decoding, each candidate alone: what all speculation must reproduce."""
    rows = []
    for number in numbers:
        rows += decode(open_decoder(target), prompt, new_rows([number], prompt, sampling=sampling, **options))
    return rows


@pytest.mark.parametrize("n", [1, 2, 8, 32])
@pytest.mark.parametrize("length", [1, 2, 5, 9, 15])
@pytest.mark.parametrize("rule", ["coupled", "rejection"])
def test_draft_equal_to_target_is_always_accepted(n, length, rule):
    model = build(dtype=torch.float64)
    prompt = random_prompt(1, 7)
    options = {"drafter": "draft-model", "draft": model, "policy": f"fixed:{length}", "rule": rule}
    rows = decode(open_decoder(model, **options), prompt, new_rows(range(1, n + 1), prompt, max_tokens=40))
    assert all(row.proposed > 10 for row in rows)
    assert [row.accepted / row.proposed for row in rows] == [1.0] * n


def test_an_equal_draft_is_accepted_when_it_lags_by_any_number_of_tokens():
    """Steps without drafts in between: the draft's cache catches up with whatever it missed."""
    model = build(dtype=torch.float64)
    prompt = random_prompt(2, 5)
    decoder = open_decoder(model, drafter="draft-model", draft=model, policy="fixed:3")
    lengths = random.Random(5)
    decoder.policy.budget = lambda rows: DraftBudget.of([lengths.choice([0, 0, 0, 1, 2, 5]) for _ in rows])
    rows = decode(decoder, prompt, new_rows(range(1, 6), prompt, max_tokens=60))
    assert all(row.accepted == row.proposed > 10 for row in rows)


def test_an_equal_draft_is_accepted_after_drafts_that_were_rejected():
    """What the draft's cache read of them is forgotten, also when it is asked again only some tokens later."""
    model = build(dtype=torch.float64)
    prompt = random_prompt(15, 6)
    decoder = open_decoder(model, drafter="draft-model", draft=model)
    drawn, turn = decoder.rule.draw_draft, [0]
    # Misled, then not asked twice, then itself again.
    decoder.drafter.rule.draw_draft = lambda q, counter: (drawn(q, counter) + (turn[0] % 4 == 0)) % VOCABULARY
    decoder.policy.budget = lambda rows: DraftBudget.of([[4, 0, 0, 4][turn[0] % 4]] * len(rows))
    rows = new_rows(range(1, 4), prompt, max_tokens=60)
    seen = [[(0, 0)] * len(rows)]

    def count(step, decoder):
        turn[0] = step
        seen.append([(row.proposed, row.accepted) for row in rows])

    decode(decoder, prompt, rows, count)
    honest = 0
    for step, (before, after) in enumerate(pairwise(seen)):
        for (proposed, accepted), (more_proposed, more_accepted) in zip(before, after, strict=True):
            assert more_accepted - accepted == (0 if step % 4 == 0 else more_proposed - proposed)
            honest += more_accepted - accepted
    assert honest > 50


@pytest.mark.parametrize("length", [1, 4])
def test_nothing_after_the_end_token_is_shown_counted_or_ranked(target, length):
    prompt = random_prompt(3, 6)
    (whole,) = plain(target, prompt, [1], GREEDY, max_tokens=20)
    firsts = [k for k in range(2 * length + 2) if whole.tokens.index(whole.tokens[k]) == k]
    assert len(firsts) >= 3
    for k in firsts:
        eos = whole.tokens[k]
        options = {"drafter": "draft-model", "draft": target, "policy": f"fixed:{length}"}
        rows = new_rows([1], prompt, eos=[eos], max_tokens=20, sampling=GREEDY)
        (row,) = decode(open_decoder(target, **options), prompt, rows)
        (want,) = plain(target, prompt, [1], GREEDY, eos=[eos], max_tokens=20)
        assert row.stop_reason == "stop"
        assert row.tokens == want.tokens == whole.tokens[: k + 1]
        assert row.accepted <= row.proposed <= k + 1
        assert row.log_probs == pytest.approx(want.log_probs, abs=1e-4)


PROMPTS = [(seed, 1 if seed < 150 else 4 if seed < 190 else 16) for seed in range(200)]


@pytest.fixture(scope="module")
def regular(target):
    """Regular decoding of every prompt, greedy and sampled: done once, compared with every way to speculate."""
    texts = {}
    for sampling in (GREEDY, FREE):
        for seed, n in PROMPTS:
            prompt = random_prompt(100 + seed)
            rows = new_rows(range(1, n + 1), prompt, 10, seed, sampling=sampling)
            texts[sampling, seed] = tokens_of(decode(open_decoder(target), prompt, rows))
    return texts


@pytest.mark.parametrize("sampling", [GREEDY, FREE], ids=["greedy", "sampled"])
@pytest.mark.parametrize(("drafter", "policy"), WAYS)
def test_two_hundred_prompts_with_and_without_drafts(target, draft, regular, drafter, policy, sampling):
    accepted = 0
    for seed, n in PROMPTS:
        prompt = random_prompt(100 + seed)
        options = {"drafter": drafter, "draft": draft, "policy": policy}
        rows = new_rows(range(1, n + 1), prompt, 10, seed, sampling=sampling)
        rows = decode(open_decoder(target, **options), prompt, rows)
        assert tokens_of(rows) == regular[sampling, seed], f"prompt {seed}, n = {n}"
        accepted += sum(row.accepted for row in rows)
    assert accepted > 0  # otherwise nothing was speculated


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "padded"])
@pytest.mark.parametrize(("drafter", "policy"), WAYS)
def test_a_row_is_the_same_whatever_runs_beside_it(target, draft, drafter, policy, packed):
    prompt = random_prompt(4, 11)
    (alone,) = plain(target, prompt, [1], FREE, max_tokens=30)
    options = {"drafter": drafter, "draft": draft, "policy": policy, "packed": packed}
    others = {1: 7} | {n: 1000 + n for n in range(2, 9)}

    def cancel_third(step, decoder):
        if step == 3:
            next(row for row in decoder.rows if row.candidate == 3).end("cancelled")

    among = decode(open_decoder(target, **options), prompt, new_rows(range(1, 9), prompt, 30, others))
    cancelled = decode(open_decoder(target, **options), prompt, new_rows(range(1, 9), prompt, 30, others), cancel_third)
    assert among[0].tokens == cancelled[0].tokens == alone.tokens
    assert tokens_of(cancelled[:2] + cancelled[3:]) == tokens_of(among[:2] + among[3:])
    assert len(cancelled[2].tokens) < 30


def test_a_row_that_joins_late_is_the_same(target, draft):
    prompt = random_prompt(5, 8)
    want = plain(target, prompt, [1, 2], FREE)
    decoder = open_decoder(target, drafter="draft-model", draft=draft)
    logits = decoder.target.prefill(prompt)
    late = new_rows([2], prompt)

    def join(step, decoder):
        if step == 4:
            decoder.join(late, logits)

    first = decode(decoder, prompt, new_rows([1], prompt), join)
    assert tokens_of(first + late) == tokens_of(want)


@pytest.mark.parametrize("n", [2, 5, 16])
def test_greedy_candidates_are_all_equal(target, draft, n):
    prompt = random_prompt(6, 9)
    options = {"drafter": "draft-model", "draft": draft, "policy": "bass"}
    rows = decode(open_decoder(target, **options), prompt, new_rows(range(1, n + 1), prompt, sampling=GREEDY))
    assert tokens_of(rows) == [rows[0].tokens] * n


PENALTIES = {
    "repetition": Sampling(temperature=0, repetition_penalty=5.0),
    "presence": Sampling(temperature=0, presence_penalty=2.0),
    "frequency": Sampling(temperature=0, frequency_penalty=0.5),
    "all, sampled": Sampling(temperature=1.0, repetition_penalty=1.5, presence_penalty=0.5, frequency_penalty=0.2),
}


@pytest.fixture(scope="module")
def looping(target):
    """It looks at its last token only, so that greedy text runs in a circle."""
    model = copy.deepcopy(target)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
    return model


@pytest.mark.parametrize("name", PENALTIES)
def test_a_looping_model_with_a_penalty(looping, name):
    prompt = random_prompt(7, 6)
    (loop,) = plain(looping, prompt, [1], GREEDY, max_tokens=60)
    period = len(set(loop.tokens[30:]))
    assert loop.tokens[30:] == loop.tokens[30 - period : -period]
    sampling = PENALTIES[name]
    want = plain(looping, prompt, [1, 2, 3], sampling, max_tokens=60)
    assert len(set(want[0].tokens)) > 2 * period  # the penalty leads out of it
    for drafter, policy in WAYS:
        options = {"drafter": drafter, "draft": noisy_copy(looping, 0.05), "policy": policy}
        rows = decode(open_decoder(looping, **options), prompt, new_rows([1, 2, 3], prompt, 60, sampling=sampling))
        assert tokens_of(rows) == tokens_of(want), (drafter, policy)


@pytest.mark.parametrize(("drafter", "policy"), WAYS)
def test_a_ladder_of_temperatures_is_each_candidate_at_its_own(target, draft, drafter, policy):
    prompt, numbers = random_prompt(12, 9), range(1, 7)
    ladder = {number: Sampling(temperature=0.3 * (number - 1), top_p=0.9) for number in numbers}
    options = {"drafter": drafter, "draft": draft, "policy": policy}
    rows = decode(open_decoder(target, **options), prompt, new_rows(numbers, prompt, sampling=ladder))
    for row in rows:
        (want,) = plain(target, prompt, [row.candidate], ladder[row.candidate])
        assert row.tokens == want.tokens


@pytest.mark.parametrize(("drafter", "policy"), WAYS)
def test_rows_of_one_and_of_sixty_tokens_in_one_batch(target, draft, drafter, policy):
    prompt = random_prompt(13, 8)
    want = plain(target, prompt, [1, 2], FREE, max_tokens=90)
    decoder = open_decoder(target, drafter=drafter, draft=draft, policy=policy)
    logits = decoder.target.prefill(prompt)
    late = new_rows([2], prompt, max_tokens=90)
    lengths = []

    def join(step, decoder):
        if not lengths and len(decoder.rows[0].tokens) >= 60 and not decoder.rows[0].stop_reason:
            decoder.join(late, logits)
            lengths.extend(len(row.tokens) for row in decoder.rows)

    early = decode(decoder, prompt, new_rows([1], prompt, max_tokens=90), join)
    assert lengths[0] >= 60
    assert lengths[1] == 1
    assert tokens_of(early + late) == tokens_of(want)


@pytest.mark.parametrize(("drafter", "policy"), WAYS)
def test_prompts_of_any_length_one_after_another(target, draft, drafter, policy):
    decoder = open_decoder(target, drafter=drafter, draft=draft, policy=policy)
    prompts = [random_prompt(20 + length, length) for length in (5, 50, 7, 90)]
    for prompt in [*prompts, prompts[-1]]:  # and one of them twice
        rows = decode(decoder, prompt, new_rows([1, 2], prompt, max_tokens=12))
        assert tokens_of(rows) == tokens_of(plain(target, prompt, [1, 2], FREE, max_tokens=12))


@pytest.mark.parametrize(("drafter", "policy"), [("none", "fixed:0"), *WAYS])
def test_any_of_several_end_tokens_or_none(target, draft, drafter, policy):
    """An end token in the prompt ends nothing."""
    options = {"drafter": drafter, "draft": draft, "policy": policy}
    whole = plain(target, random_prompt(14, 7), [1, 2, 3], FREE)
    ends = [row.tokens[5] for row in whole]
    prompt = random_prompt(14, 7)
    for eos in ([], ends[:1], ends[1:], ends):
        rows = decode(open_decoder(target, **options), prompt, new_rows([1, 2, 3], prompt, eos=eos))
        for row, all_of_it in zip(rows, whole, strict=True):
            first = min((all_of_it.tokens.index(end) for end in eos if end in all_of_it.tokens), default=None)
            assert row.tokens == (all_of_it.tokens if first is None else all_of_it.tokens[: first + 1])
            assert row.stop_reason == ("length" if first is None else "stop")
    with_end = [ends[0], *prompt]
    rows = decode(open_decoder(target, **options), with_end, new_rows([1], with_end, eos=ends))
    assert tokens_of(rows) == tokens_of(plain(target, with_end, [1], FREE, eos=ends))
    assert len(rows[0].tokens) > 1


@pytest.mark.parametrize("rule", ["coupled", "rejection"])
def test_a_draft_with_a_smaller_vocabulary(target, rule):
    """Ids that it does not know are read as another, and never drafted."""
    small = build(vocab_size=60, spread=0.4, seed=3)
    prompt = [70, 5, 96, 61, 8]
    decoder = open_decoder(target, drafter="draft-model", draft=small, policy="fixed:3", rule=rule)
    decoder.drafter.model.vocabulary = 60
    drafted = []
    propose = decoder.drafter.propose
    decoder.drafter.propose = lambda rows, counts: drafted.append(propose(rows, counts)) or drafted[-1]
    rows = decode(decoder, prompt, new_rows(range(1, 5), prompt))
    assert max(token for proposals in drafted for tokens in proposals.tokens for token in tokens) < 60
    assert max(token for row in rows for token in row.tokens) >= 60
    if rule == "coupled":
        assert tokens_of(rows) == tokens_of(plain(target, prompt, range(1, 5), FREE))


@pytest.mark.parametrize("shape", [{"num_hidden_layers": 1}, {"vocab_size": VOCABULARY + 30}], ids=["layer", "entries"])
def test_a_draft_of_one_layer_or_with_more_entries(target, shape):
    """Entries that the target does not have are cut off, so they are never drafted."""
    prompt = random_prompt(16, 7)
    decoder = open_decoder(target, drafter="draft-model", draft=build(spread=0.4, seed=4, **shape), policy="fixed:3")
    rows = decode(decoder, prompt, new_rows(range(1, 4), prompt))
    assert tokens_of(rows) == tokens_of(plain(target, prompt, range(1, 4), FREE))
    assert all(row.proposed > 0 for row in rows)


class Stubborn(Drafter):
    """Proposes what it is told, and is asked for nothing else."""

    name = "stubborn"

    def __init__(self, propose):
        self._propose = propose

    def propose(self, rows, budget):
        return self._propose(rows, budget.guesses)


@pytest.mark.parametrize("rule", ["coupled", "rejection"])
def test_every_draft_rejected_for_fifty_rounds(target, rule):
    prompt = random_prompt(8, 6)
    want = plain(target, prompt, [1, 2], GREEDY, max_tokens=51)

    def wrong(rows, counts):
        truth = [want[row.candidate - 1].tokens for row in rows]
        return Proposals(
            [[(t[len(row.tokens)] + 1) % VOCABULARY] * c for row, t, c in zip(rows, truth, counts, strict=True)]
        )

    decoder = open_decoder(target, policy="fixed:1", rule=rule)
    decoder.drafter = Stubborn(wrong)
    rows = decode(decoder, prompt, new_rows([1, 2], prompt, max_tokens=51, sampling=GREEDY))
    assert tokens_of(rows) == tokens_of(want)
    assert [(row.proposed, row.accepted) for row in rows] == [(49, 0)] * 2


def test_rows_with_no_one_and_three_drafts_in_one_step(target, draft):
    prompt = random_prompt(9, 6)
    decoder = open_decoder(target, drafter="draft-model", draft=draft)
    decoder.policy.budget = lambda rows: DraftBudget.of([[0, 1, 3][row.candidate % 3] for row in rows])
    rows = decode(decoder, prompt, new_rows(range(1, 7), prompt))
    assert tokens_of(rows) == tokens_of(plain(target, prompt, range(1, 7), FREE))
    assert rows[2].proposed == 0 < rows[0].proposed < rows[1].proposed


def test_a_drafter_that_always_proposes_the_end_token(target):
    prompt = random_prompt(10, 6)
    decoder = open_decoder(target, policy="fixed:3")
    decoder.drafter = Stubborn(lambda rows, counts: Proposals([[2] * count for count in counts]))
    rows = decode(decoder, prompt, new_rows([1, 2], prompt, eos=[2]))
    want = plain(target, prompt, [1, 2], FREE, eos=[2])
    assert tokens_of(rows) == tokens_of(want)
    assert [row.stop_reason for row in rows] == [row.stop_reason for row in want]


@pytest.mark.parametrize(("drafter", "policy"), [("none", "fixed:0"), *WAYS])
@pytest.mark.parametrize("rule", ["coupled", "rejection"])
def test_mean_log_probability_equals_a_teacher_forced_pass(target, draft, drafter, policy, rule):
    prompt = random_prompt(11, 9)
    options = {"drafter": drafter, "draft": draft, "policy": policy, "rule": rule}
    stock = copy.deepcopy(target)
    for row in decode(open_decoder(target, **options), prompt, new_rows(range(1, 5), prompt)):
        with torch.inference_mode():
            logits = stock(input_ids=torch.tensor([prompt + row.tokens]), use_cache=False).logits[0]
        logits = logits[len(prompt) - 1 : -1]
        want = logits.log_softmax(-1).gather(1, torch.tensor(row.tokens)[:, None]).mean()
        assert row.mean_log_prob == pytest.approx(want.item(), abs=1e-4)
