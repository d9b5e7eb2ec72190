"""The rejection rule keeps the target's distribution, by enumeration; the tempting wrong rules do not."""

import itertools
import math
from collections import Counter

import pytest
import torch

from engine.contract import Sampling
from engine.sampler.acceptance import Proposals, Rejection, VerifyLine
from engine.sampler.drafters.draft_model import DraftModelDrafter
from engine.sampler.drafters.hybrid import HybridDrafter
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.penalties import TokenCounts
from engine.sampler.row import Row
from engine.sampler.sampling import Distributions, SamplingPoint, distributions
from engine.sampler.stopping import Limits
from kernels.acceptance.torch import acceptance_probability, residual
from tests.engine.sampler.running import assemble, decode, new_rows
from tests.engine.sampler.table_model import TableModel

TARGETS = {
    "two": [0.7, 0.3],
    "four": [0.45, 0.3, 0.2, 0.05],
    "sharp": [0.97, 0.01, 0.01, 0.01],
}
DRAFTS = {
    "two": [0.2, 0.8],
    "four": [0.1, 0.2, 0.3, 0.4],
    "sharp": [0.01, 0.97, 0.01, 0.01],
}
SHARP = Sampling(temperature=1.0, top_p=0.6)
WHOLE = Sampling(temperature=1.0, top_p=1.0)


def from_probabilities(p, sampling):
    return distributions(torch.tensor([p], dtype=torch.float64).log(), sampling)


def as_dense(found, size):
    return torch.zeros(size, dtype=torch.float64).scatter_add(0, found.ids[0], found.log_probs[0].exp())


def one_hot(token):
    return Distributions(torch.tensor([[token]]), torch.zeros(1, 1, dtype=torch.float64))


def outcome_given(p, q, draft, size):
    """Distribution of the committed token once ``draft`` is proposed with the distribution ``q`` in the ratio."""
    accept = acceptance_probability(p.ids, p.log_probs, torch.tensor([draft]), q.ids, q.log_probs)[0]
    left = residual(p.ids, p.log_probs, q.ids, q.log_probs)
    left = torch.zeros(size, dtype=torch.float64).scatter_add(0, p.ids[0], (left / left.sum(-1, keepdim=True))[0])
    out = (1 - accept) * left
    out[draft] += accept
    return out


def total_variation(a, b):
    return (a - b).abs().sum().item() / 2


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("sampling", [WHOLE, SHARP], ids=["whole", "sharp top-p"])
def test_a_sampled_draft_leaves_the_target_distribution(name, sampling):
    size = len(TARGETS[name])
    p, q = from_probabilities(TARGETS[name], sampling), from_probabilities(DRAFTS[name], sampling)
    drawn = as_dense(q, size)
    got = sum(drawn[x] * outcome_given(p, q, x, size) for x in range(size))
    assert total_variation(got, as_dense(p, size)) <= 1e-12


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("sampling", [WHOLE, SHARP], ids=["whole", "sharp top-p"])
def test_a_guessed_draft_leaves_the_target_distribution(name, sampling):
    size = len(TARGETS[name])
    p = from_probabilities(TARGETS[name], sampling)
    for guess in range(size):
        got = outcome_given(p, one_hot(guess), guess, size)
        assert total_variation(got, as_dense(p, size)) <= 1e-12


def test_the_wrong_q_for_a_guess_is_caught():
    """A draft that is an argmax, judged by the softmax it came from, moves the output by a wide margin."""
    p, q = from_probabilities(TARGETS["four"], WHOLE), from_probabilities(DRAFTS["four"], WHOLE)
    guess = int(as_dense(q, 4).argmax())
    assert total_variation(outcome_given(p, q, guess, 4), as_dense(p, 4)) > 0.1


def chain(context):
    """A target over two tokens whose next distribution depends on the one before."""
    return [0.7, 0.3] if context[-1:] == (0,) else [0.35, 0.65]


def draft_chain(context):
    return [0.4, 0.6] if context[-1:] == (0,) else [0.8, 0.2]


def committed(drafts, verified):
    """Distribution over the first two committed tokens if the first ``verified`` of ``drafts`` are judged."""
    p0, q0 = from_probabilities(chain(()), WHOLE), from_probabilities(draft_chain(()), WHOLE)
    result = torch.zeros(2, 2, dtype=torch.float64)
    second_plain = {x: torch.tensor(chain((x,)), dtype=torch.float64) for x in (0, 1)}
    if verified == 0:
        for x in (0, 1):
            result[x] += chain(())[x] * second_plain[x]
        return result
    first = drafts[0]
    accept = acceptance_probability(p0.ids, p0.log_probs, torch.tensor([first]), q0.ids, q0.log_probs)[0]
    left = residual(p0.ids, p0.log_probs, q0.ids, q0.log_probs)[0]
    left = torch.zeros(2, dtype=torch.float64).scatter_add(0, p0.ids[0], left / left.sum())
    for x in (0, 1):
        result[x] += (1 - accept) * left[x] * second_plain[x]
    if verified == 1:
        result[first] += accept * second_plain[first]
    else:
        p1, q1 = from_probabilities(chain((first,)), WHOLE), from_probabilities(draft_chain((first,)), WHOLE)
        result[first] += accept * outcome_given(p1, q1, drafts[1], 2)
    return result


def whole_block(how_many):
    """Average over all drafts of two tokens; ``how_many(drafts)`` says how many are verified."""
    total = torch.zeros(2, 2, dtype=torch.float64)
    for drafts in itertools.product((0, 1), repeat=2):
        chance = draft_chain(())[drafts[0]] * draft_chain((drafts[0],))[drafts[1]]
        total += chance * committed(drafts, how_many(drafts))
    return total


def test_blocks_of_two_leave_the_joint_distribution():
    truth = torch.tensor([[chain(())[a] * chain((a,))[b] for b in (0, 1)] for a in (0, 1)], dtype=torch.float64)
    for count in (0, 1, 2):
        assert total_variation(whole_block(lambda drafts, count=count: count), truth) <= 1e-12
    # Dropping a sampled draft because of its own value is not lossless ...
    assert total_variation(whole_block(lambda drafts: 0 if drafts[0] == 1 else 2), truth) > 0.05
    # ... while looking at an earlier token of the draft is.
    assert total_variation(whole_block(lambda drafts: 1 if drafts[0] == 1 else 2), truth) <= 1e-12


def test_independent_tries_for_one_position_are_caught():
    """Two proposals judged one after the other without updating the residual are biased."""
    p, q = from_probabilities(TARGETS["four"], WHOLE), from_probabilities(DRAFTS["four"], WHOLE)
    pd, qd = as_dense(p, 4), as_dense(q, 4)
    accept = (pd / qd).clamp(max=1)
    missed = 1 - (qd * accept).sum()
    left = (pd - qd).clamp(min=0)
    wrong = qd * accept + missed * (qd * accept + missed * left / left.sum())
    assert total_variation(wrong, pd) > 0.05


def test_an_empty_residual_falls_back_to_the_target():
    """P = q leaves nothing; rounding must not turn that into a uniform draw or a NaN."""
    p = from_probabilities(TARGETS["four"], WHOLE)
    left = residual(p.ids, p.log_probs, p.ids, p.log_probs)
    torch.testing.assert_close(left, p.log_probs.exp())


@pytest.mark.parametrize("guess", [None, 2], ids=["sampled draft", "guessed draft"])
def test_chi_square_through_the_real_rule(guess):
    """One fixed seed, 20,000 rows in one line: counts of the committed token follow the target."""
    n, rule, truth = 20_000, Rejection(), torch.tensor(TARGETS["four"])
    rows = [Row(c, 11, [0] * 5, Limits(frozenset(), 9), lambda ids: "") for c in range(1, n + 1)]
    q = distributions(torch.tensor([DRAFTS["four"]]).log().expand(n, -1), WHOLE)
    counter = VerifyLine.of(rows, Proposals([[] for _ in rows]), torch.device("cpu")).counter
    drafts = rule.draw_draft(q, counter).tolist() if guess is None else [guess] * n
    proposals = Proposals([[d] for d in drafts], q if guess is None else None)
    line = VerifyLine.of(rows, proposals, torch.device("cpu"))
    p = distributions(truth.log().expand(2 * n, -1), WHOLE)
    accepted, tokens = rule.accept(p, line, proposals.q)
    first = torch.where(accepted > 0, torch.tensor(drafts), tokens)
    counts = first.bincount(minlength=4)
    assert ((counts - n * truth) ** 2 / (n * truth)).sum() < 16.3  # 3 degrees of freedom, 0.1 %
    second = tokens[accepted > 0].bincount(minlength=4)  # the extra token is the target's own
    total = second.sum()
    assert ((second - total * truth) ** 2 / (total * truth)).sum() < 16.3


def exact(model, prompt, sampling, length):
    """Probability of every text of ``length`` tokens, by walking the whole tree in float64."""
    chances: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(length):
        longer: dict[tuple[int, ...], float] = {}
        for text, chance in chances.items():
            logits = model.logits_after([*prompt, *text])[None]
            found = distributions(logits, [SamplingPoint(sampling, TokenCounts(prompt, list(text)))])
            for token, log_prob in zip(found.ids[0].tolist(), found.log_probs[0].tolist(), strict=True):
                longer[*text, token] = chance * math.exp(log_prob)
        chances = longer
    return chances


def limit(freedom):
    """The chi-square value that one fixed seed in a thousand would pass (Wilson and Hilferty)."""
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + 3.09 * math.sqrt(spread)) ** 3


PENALISED = Sampling(temperature=1.0, top_p=0.95, repetition_penalty=1.5, frequency_penalty=0.4)


@pytest.mark.parametrize("drafter", ["draft model", "guess", "hybrid"])
@pytest.mark.parametrize("sampling", [WHOLE, SHARP, PENALISED], ids=["whole", "sharp top-p", "penalised"])
def test_texts_of_a_whole_run_follow_the_target(drafter, sampling):
    """Planned, drafted, verified, accepted and committed by the real decoder: 4,000 rows of four tokens."""
    target, prompt, length = TableModel(3, sharpness=1.0), [0, 1], 4
    suffix, model = SuffixDrafter(), DraftModelDrafter(TableModel(3, sharpness=1.5, seed=3), Rejection())
    if drafter == "guess":
        suffix.propose = lambda rows, budget: Proposals(
            [[row.candidate % 3] * count for row, count in zip(rows, budget.guesses, strict=True)]
        )
    chosen = {"guess": suffix, "draft model": model, "hybrid": HybridDrafter(suffix, model)}[drafter]
    rows = new_rows(range(1, 4001), prompt, length, seed=21, sampling=sampling)
    rows = decode(assemble(target, chosen, "fixed:2", Rejection()), prompt, rows)
    counts = Counter(tuple(row.tokens) for row in rows)
    want = exact(target, prompt, sampling, length)
    assert set(counts) <= {text for text, chance in want.items() if chance > 0}
    # Texts that hardly ever come make one class.
    common = [text for text, chance in want.items() if chance * len(rows) >= 8]
    seen = [*(counts[text] for text in common), len(rows) - sum(counts[text] for text in common)]
    expected = [*(want[text] * len(rows) for text in common), len(rows) * (1 - sum(want[text] for text in common))]
    classes = [(a, b) for a, b in zip(seen, expected, strict=True) if b > 1]
    assert sum((a - b) ** 2 / b for a, b in classes) < limit(len(classes) - 1)
    assert 0.1 < sum(row.accepted for row in rows) / sum(row.proposed for row in rows) < 0.95
