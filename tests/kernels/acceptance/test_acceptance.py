"""The two rules over one line of positions: which numbers decide what, and the draws behind every seed."""

import pytest
import torch

from kernels.acceptance.torch import coupled, draw, draw_draft, rejection, residual
from kernels.philox import ACCEPT, DRAFT, RESIDUAL, TOKEN
from kernels.philox.torch import gumbel, uniform

V = 7
FROZEN = {
    TOKEN: [51000, 54000, 46000, 45000, 39000, 49000, 58000, 59000, 33000, 25000, 40000, 30000],
    DRAFT: [15000, 57000, 56000, 54000, 53000, 42000, 50000, 58000, 26000, 28000, 47000, 54000],
    RESIDUAL: [34000, 41000, 49000, 40000, 58000, 33000, 15000, 19000, 59000, 37000, 30000, 44000],
}
COUNTS = (0, 3, 1, 0, 4)  # drafts of each row


def line(seed=5):
    """A line of rows with ``COUNTS`` drafts: counter, drafts, rows, and p and q at every position."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.tensor([row for row, count in enumerate(COUNTS) for _ in range(count + 1)])
    positions = torch.tensor([20 * row + at for row, count in enumerate(COUNTS) for at in range(count + 1)])
    counter = (torch.full_like(rows, 2**40 + seed), rows + 1, positions)
    ids = torch.arange(V).expand(len(rows), V).contiguous()
    p, q = (torch.randn(len(rows), V, generator=generator).log_softmax(-1) for _ in range(2))
    drafts = torch.randint(0, V, (len(rows),), generator=generator)
    drafts[[n - 1 for n in torch.tensor([count + 1 for count in COUNTS]).cumsum(0).tolist()]] = -1
    return counter, drafts, rows, ids, p, q


def at(counter, index):
    seed, candidate, position = (part[index : index + 1] for part in counter)
    return seed, candidate, position


def drawn_by_hand(ids, log_weights, counter, purpose):
    """One position, written out."""
    seed, candidate, position = counter
    return ids[(log_weights + gumbel(seed, candidate, position, ids, purpose)).argmax()].item()


@pytest.mark.parametrize("seed", range(20))
def test_coupled_is_plain_decoding_up_to_the_first_difference(seed):
    counter, drafts, rows, ids, p, _ = line(seed)
    tokens = [drawn_by_hand(ids[t], p[t], at(counter, t), TOKEN) for t in range(len(rows))]
    drafts = torch.where((drafts >= 0) & (torch.arange(len(drafts)) % 3 > 0), torch.tensor(tokens), drafts)
    accepted, following = coupled(ids, p, drafts, rows, counter)
    start = 0
    for row, count in enumerate(COUNTS):
        right = 0
        while right < count and drafts[start + right] == tokens[start + right]:
            right += 1
        assert (accepted[row].item(), following[row].item()) == (right, tokens[start + right])
        start += count + 1


@pytest.mark.parametrize("seed", range(20))
def test_rejection_takes_each_decision_by_a_number_of_its_own(seed):
    counter, drafts, rows, ids, p, q = line(seed)
    accepted, following = rejection(ids, p, drafts, ids, q, rows, counter)
    start = 0
    for row, count in enumerate(COUNTS):
        right = 0
        while right < count:
            t, x = start + right, drafts[start + right]
            key, candidate, position = at(counter, t)
            coin = uniform(key, candidate, position, torch.tensor([0]), ACCEPT)
            if coin >= (p[t, x] - q[t, x]).exp():
                break
            right += 1
        t = start + right
        if right == count:  # the target's own token
            want = drawn_by_hand(ids[t], p[t], at(counter, t), TOKEN)
        else:
            left = (p[t].exp() - q[t].exp()).clamp(min=0).log()
            want = drawn_by_hand(ids[t], left, at(counter, t), RESIDUAL)
        assert (accepted[row].item(), following[row].item()) == (right, want)
        start += count + 1


@pytest.mark.parametrize(("is_coupled", "purpose"), [(True, TOKEN), (False, DRAFT)])
def test_a_draft_shares_the_target_s_numbers_only_where_that_is_the_rule(is_coupled, purpose):
    counter, _, rows, ids, _, q = line()
    got = draw_draft(ids, q, counter, is_coupled=is_coupled).tolist()
    assert got == [drawn_by_hand(ids[t], q[t], at(counter, t), purpose) for t in range(len(rows))]


def test_what_is_not_in_the_support_is_never_drawn():
    n = 5000
    ids = torch.tensor([[3, 1, 0]]).expand(n, 3)
    log_probs = torch.tensor([[0.5, 0.5, 0.0]]).log().expand(n, 3)
    counter = (torch.zeros(n, dtype=torch.long), torch.ones(n, dtype=torch.long), torch.arange(n))
    assert set(draw(ids, log_probs, counter, TOKEN).tolist()) == {1, 3}


def test_a_residual_only_where_p_is_above_q():
    p, q = torch.tensor([[0.5, 0.3, 0.2]]), torch.tensor([[0.1, 0.6, 0.3]])
    ids = torch.tensor([[4, 2, 9]])
    left = residual(ids, p.log(), ids, q.log())
    torch.testing.assert_close(left, torch.tensor([[0.4, 0.0, 0.0]]))


def test_these_draws_never_change():
    """The text behind every seed that was ever written down: a fixed distribution, seeds, candidates, positions."""
    n = 12
    ids = torch.arange(0, 60_000, 1000).expand(n, 60)
    log_probs = torch.linspace(-3, 0, 60).log_softmax(-1).expand(n, 60)
    seeds = torch.tensor([0, 1, 2**63 - 1, 12345]).repeat(3)
    counter = (seeds, torch.arange(1, n + 1), torch.arange(n) * 100)
    assert {purpose: draw(ids, log_probs, counter, purpose).tolist() for purpose in FROZEN} == FROZEN
