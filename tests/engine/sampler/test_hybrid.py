"""One drafter per row and step: copied where a match is sure, drawn elsewhere, and each verified as what it is."""

import torch

from engine.sampler.acceptance import Proposals
from engine.sampler.budget import DraftBudget
from engine.sampler.cost_table import CostTable
from engine.sampler.drafters import Drafter
from engine.sampler.drafters.hybrid import SURE, HybridDrafter
from engine.sampler.policies.goodput import Goodput
from engine.sampler.sampling import Distributions
from tests.engine.sampler.running import new_rows


class Copies(Drafter):
    """Sure of row 1, unsure of row 2, silent about row 3."""

    name = "suffix"

    def propose(self, rows, budget):
        self.counts = list(budget.guesses)
        return Proposals([[10, 11, 12], [20, 21], []], survival=[[SURE, 0.5, 0.1], [SURE - 0.1, 0.3], []])


class Model(Drafter):
    """Draws as many tokens as it is asked for, with a distribution that says which row and step it was for."""

    name, draws = "draft-model", True

    def propose(self, rows, budget):
        self.counts = list(budget.drawn)
        tokens = [[100 * row + step for step in range(count)] for row, count in enumerate(self.counts)]
        line = [token for row in tokens for token in row]
        if not line:
            return Proposals(tokens)
        ids = torch.tensor([[token, token + 1] for token in line])
        return Proposals(tokens, Distributions(ids, torch.full(ids.shape, 0.5).log()))


def propose(drawn):
    copies, model = Copies(), Model()
    drafter = HybridDrafter(copies, model)
    rows = new_rows([1, 2, 3], [5, 6], max_tokens=6)
    return drafter.propose(rows, DraftBudget([8, 8, 8], drawn).within(rows)), copies, model


def test_the_model_is_asked_only_where_copying_is_not_sure():
    proposals, copies, model = propose([2, 2, 2])
    assert copies.counts == [5, 5, 5]  # as far as there is room: the policy will choose
    assert model.counts == [0, 2, 2]
    assert proposals.tokens == [[10, 11, 12], [100, 101], [200, 201]]
    assert [proposals.drawn(row) for row in range(3)] == [False, True, True]


def test_where_the_model_does_not_pay_an_unsure_copy_is_better_than_nothing():
    proposals, _, model = propose([0, 0, 0])
    assert model.counts == [0, 0, 0]
    assert proposals.tokens == [[10, 11, 12], [20, 21], []]
    assert proposals.q is None


def test_copied_drafts_are_judged_as_certain_and_drawn_ones_by_what_they_were_drawn_from():
    proposals, _, _ = propose([2, 2, 2])
    assert proposals.q.ids[:, 0].tolist() == [10, 11, 12, 100, 101, 200, 201]
    p = proposals.q.log_probs.exp()
    assert p[:3].tolist() == [[1.0, 0.0]] * 3
    assert p[3:].tolist() == [[0.5, 0.5]] * 4


def test_goodput_drops_unlikely_copies_and_never_what_was_drawn():
    proposals, _, _ = propose([2, 2, 2])
    costs = CostTable({1: 1.0, 8: 1.0, 9: 30.0})  # room for eight tokens: three rows, four drawn drafts, one copy
    chosen = Goodput(costs, Model()).prune(proposals)
    assert chosen.tokens == [[10], [100, 101], [200, 201]]
    assert chosen.survival == [[SURE], None, None]
    assert chosen.q.ids[:, 0].tolist() == [10, 100, 101, 200, 201]
    assert chosen.q.log_probs.exp()[0].tolist() == [1.0, 0.0]
