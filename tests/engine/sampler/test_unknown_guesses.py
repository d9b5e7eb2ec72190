"""Guesses that the target has no logit for: ids between the end of its vocabulary and that of its embedding."""

import pytest

from engine.sampler.acceptance import Coupled, Proposals, Rejection
from engine.sampler.drafters import NoDrafter
from engine.sampler.ragged_model import RaggedModel
from tests.engine.sampler.running import assemble, decode, new_rows, open_decoder
from tests.engine.sampler.tiny import VOCABULARY, build

KNOWN = 90  # of the embedding's 97


class Foreign(NoDrafter):
    """Guesses the same for every row."""

    def __init__(self, guess):
        self.guess = guess

    def propose(self, rows, budget):
        tokens = [self.guess[:count] for count in budget.guesses]
        return Proposals(tokens, survival=[[0.9] * len(row) for row in tokens])


@pytest.mark.parametrize("rule", [Coupled, Rejection])
@pytest.mark.parametrize("guess", [[KNOWN], [3, KNOWN, 4], [3, 4, VOCABULARY - 1], [KNOWN - 1, 5], [VOCABULARY + 900]])
def test_they_are_not_verified_and_change_no_text(rule, guess):
    target, prompt = build(), [5, 6, VOCABULARY - 1, 7]
    plain = decode(open_decoder(target, vocabulary=KNOWN), prompt, new_rows([0, 1], prompt, max_tokens=8))
    decoder = assemble(RaggedModel(build(), KNOWN), Foreign(guess), "fixed:4", rule())
    rows = decode(decoder, prompt, new_rows([0, 1], prompt, max_tokens=8))
    assert all(token < KNOWN for row in rows for token in row.tokens)
    if rule is Coupled:
        assert [row.tokens for row in rows] == [row.tokens for row in plain]


def test_what_is_known_before_them_is_verified():
    decoder = assemble(RaggedModel(build(), KNOWN), NoDrafter(), "fixed:4", Coupled())
    survival = [[0.9, 0.8, 0.7], [0.9, 0.8]]
    kept = decoder._known(Proposals([[3, KNOWN - 1, KNOWN], [KNOWN, 3]], survival=survival))
    assert kept.tokens == [[3, KNOWN - 1], []]
    same = Proposals([[3, KNOWN - 1]], survival=[[0.9, 0.8]])
    assert decoder._known(same) is same
