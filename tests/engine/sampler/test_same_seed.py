"""Runs that use a seed again, under the rejection rule: what a run copies from an earlier one must not shift its text.

By enumeration of every way the random numbers can fall, through the real drafters and the real decoder.
"""

import itertools
import math
from collections import defaultdict

import pytest
import torch

from engine.sampler.acceptance import Coupled, Rejection
from engine.sampler.drafters.draft_model import DraftModelDrafter
from engine.sampler.drafters.hybrid import HybridDrafter
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.sampling import Distributions
from kernels.acceptance.torch import rejection
from tests.engine.sampler.running import assemble, decode, new_rows, tokens_of
from tests.engine.sampler.table_model import TableModel
from tests.engine.sampler.worlds import Worlds, total_variation

P, Q = (0.7, 0.3), (0.4, 0.6)
PROMPT = [0, 1]


class Constant(TableModel):
    """The same distribution everywhere."""

    def __init__(self, chances):
        super().__init__(len(chances))
        self._logits = torch.tensor(chances, dtype=torch.float64).log()

    def logits_after(self, tokens):
        return self._logits


def texts_of(runs, drafter, rule, length, candidates=(1,)):
    """The texts of the last of ``runs`` runs with one seed; the drafter lives on, as the engine's does."""
    for _ in range(runs):
        rows = new_rows(candidates, PROMPT, length, seed=7)
        rows = decode(assemble(Constant(P), drafter, "fixed:2", rule), PROMPT, rows)
    return tuple(tuple(row.tokens) for row in rows)


def exact(length, candidates=1):
    """What independent draws from P say."""
    answers = list(itertools.product(range(len(P)), repeat=length))
    return {
        texts: math.prod(P[token] for text in texts for token in text)
        for texts in itertools.product(answers, repeat=candidates)
    }


def enumerated(monkeypatch, drafter, runs, length, candidates=(1,), rule=None, cuts=(*P, *Q, 0.5)):
    found, rule = defaultdict(float), rule or Rejection()
    for world in Worlds(cuts):
        with world.decide(monkeypatch):
            texts = texts_of(runs, drafter(rule), rule, length, candidates)
        found[texts] += world.chance
    assert math.fsum(found.values()) == pytest.approx(1, abs=1e-12)
    return found


def suffix(rule):
    return SuffixDrafter()


def model(rule):
    return DraftModelDrafter(Constant(Q), rule)


def hybrid(rule):
    return HybridDrafter(SuffixDrafter(), model(rule))


def second_is_a(found):
    """The chance that the first candidate's second token is the likelier one."""
    return math.fsum(chance for texts, chance in found.items() if texts[0][1] == 0)


class JudgedByCoins(Rejection):
    """The published rule for guesses, too, as if each had been drawn from a distribution that is sure of it."""

    def accept(self, p, line, q):
        assert q is None
        sure = Distributions(line.drafts.clamp(min=0)[:, None], torch.zeros_like(p.log_probs[:, :1]))
        return rejection(p.ids, p.log_probs, line.drafts, sure.ids, sure.log_probs, line.rows, line.counter)


def test_coins_for_guesses_are_wrong_as_soon_as_most_copies_come_from_coins(monkeypatch):
    """What the enumeration is there to see: .82 where the target says .70."""
    rule = JudgedByCoins()
    chances = [second_is_a(enumerated(monkeypatch, suffix, runs, 3, rule=rule, cuts=P)) for runs in (1, 2, 4)]
    assert chances == pytest.approx([0.7, 0.7, 0.82], abs=1e-12)


@pytest.mark.parametrize("runs", [1, 2, 3, 4])
def test_a_run_that_copies_from_runs_with_its_seed_says_what_the_target_says(monkeypatch, runs):
    found = enumerated(monkeypatch, suffix, runs, 3, cuts=P)
    assert second_is_a(found) == pytest.approx(0.7, abs=1e-12)
    assert total_variation(found, exact(3)) <= 1e-12


def test_candidates_that_copy_from_each_other_stay_independent(monkeypatch):
    found = enumerated(monkeypatch, suffix, 2, 3, candidates=(1, 2), cuts=P)
    assert total_variation(found, exact(3, candidates=2)) <= 1e-12


@pytest.mark.parametrize(("drafter", "runs"), [(model, 1), (model, 2), (hybrid, 1), (hybrid, 2), (hybrid, 3)])
def test_drafts_that_are_drawn_copied_or_both(monkeypatch, drafter, runs):
    found = enumerated(monkeypatch, drafter, runs, 3, cuts=[0.5])
    assert total_variation(found, exact(3)) <= 1e-12


def test_a_hybrid_that_copied_from_runs_with_its_seed_would_be_wrong(monkeypatch):
    """Which numbers decide, those of a copy or those of a draw, would depend on the numbers."""
    monkeypatch.setattr(SuffixDrafter, "forget", lambda self: None)
    found = enumerated(monkeypatch, hybrid, 3, 4, cuts=[0.5])
    assert total_variation(found, exact(4)) > 0.001


def test_without_drawn_drafts_both_rules_say_the_same_for_every_seed():
    """Nothing but plain decoding's numbers is asked."""
    target, ways = TableModel(23), []
    for rule in (Coupled(), Rejection()):
        rows = new_rows(range(1, 9), PROMPT, 40, seed=5)
        ways.append(decode(assemble(target, SuffixDrafter(), "fixed:4", rule), PROMPT, rows))
    assert tokens_of(ways[0]) == tokens_of(ways[1])
    assert sum(row.accepted for row in ways[1]) > 10
