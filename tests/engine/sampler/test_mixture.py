"""Copies, a speculator and a draft model in one drafter, under the rejection rule: the text stays the target's.

By enumeration of every way the random numbers can fall, through the real drafters, the real network of the speculator
and the real decoder. Which of them guesses depends on hidden states, and on which guesses came true before.
"""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch
from torch import nn

from engine.sampler.acceptance import Proposals, Rejection
from engine.sampler.budget import DraftBudget
from engine.sampler.drafters.draft_model import DraftModelDrafter
from engine.sampler.drafters.hybrid import HybridDrafter
from engine.sampler.drafters.speculator import CLASSES, DEPTHS, Speculator, SpeculatorFile, SpeculatorKind
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.forward_pass import NO_FEATURES, Pass
from kernels.int8_linear import quantize_weight
from tests.engine.sampler.running import assemble, decode, new_rows
from tests.engine.sampler.table_model import TableModel
from tests.engine.sampler.worlds import Worlds, total_variation

PROMPT = [0, 1]
SIZE, WIDTH = 32, 16
SAME = ((0.7, 0.3), (0.7, 0.3))  # what follows token 0, and token 1
CHAIN = ((0.7, 0.3), (0.35, 0.65))
DRAFT = ((0.4, 0.6), (0.4, 0.6))
CUTS = [0.5, 0.35 / 0.4]  # P / Q where it is less than 1


class Chances(TableModel):
    """What follows is known by the last token. Its hidden states tell texts apart, as a network's do.

    ``states``: which hidden states, of many that are as good.
    """

    def __init__(self, chances, states=0):
        super().__init__(len(chances))
        self._states = states
        self._logits = torch.tensor(chances, dtype=torch.float64).log()

    def logits_after(self, tokens):
        return self._logits[tokens[-1]]

    def prefill(self, prompt, between_chunks=lambda done: True, features=NO_FEATURES):
        return self._seen(super().prefill(prompt, between_chunks), [[*prompt]], features)

    def forward(self, tokens, starts, *, last_only=False, features=NO_FEATURES):
        found = super().forward(tokens, starts, last_only=last_only)
        texts = [
            self._prompt + row[: len(row) - left]
            for row, fresh in zip(self._rows, tokens, strict=False)
            for left in reversed(range(1 if last_only else len(fresh)))
        ]
        return self._seen(found, texts, features)

    def _seen(self, found, texts, features):
        assert len(found.logits) == len(texts)
        hidden = torch.stack([hidden_after(text, self._states) for text in texts]) if features.hidden else None
        return Pass(found.logits, hidden)


def hidden_after(text, states):
    """``[SIZE]``, another for every text."""
    number = 1000 * states + sum((token + 1) * 3**at for at, token in enumerate(text))
    return torch.randn(SIZE, generator=torch.Generator().manual_seed(number))


class Network(nn.Module):
    """As much of a target as a speculator looks at."""

    def __init__(self, vocabulary):
        super().__init__()
        self.embeddings, self.head = nn.Embedding(vocabulary, SIZE), nn.Linear(SIZE, vocabulary, bias=False)
        generator = torch.Generator().manual_seed(2)
        self.embeddings.weight.data = torch.randn(vocabulary, SIZE, generator=generator)
        self.head.weight.data = torch.randn(vocabulary, SIZE, generator=generator) * 0.15  # sure of some, of others not

    def get_input_embeddings(self):
        return self.embeddings

    def get_output_embeddings(self):
        return self.head


def speculator():
    """Random weights; of a third of its guesses it is sure, of a third only until one is wrong, of a third never."""
    numbers = np.random.default_rng(5)
    read, write = (
        quantize_weight(torch.from_numpy(numbers.normal(0, 0.3, shape)))
        for shape in ((SIZE + 2 * WIDTH, 2 * SIZE), (SIZE, WIDTH))
    )
    return Speculator(
        SpeculatorFile(
            read[0].numpy(),
            read[1].numpy(),
            write[0].numpy(),
            write[1].numpy(),
            gain=np.ones(SIZE, np.float32),
            vocabulary=np.arange(2, dtype=np.int32),
            state_size=np.ones((), np.float32),
            token_size=np.ones((), np.float32),
            right=np.array([0.3, 0.6, 0.9], np.float32)[np.add.outer(np.arange(DEPTHS), np.arange(CLASSES)) % 3],
            probe_ids=np.array([0]),
            probe_texts=np.array([""]),
            probe_rows=np.zeros((1, SIZE)),
        ),
        Network(2),
    )


SPECULATOR = speculator()


class Mixture(HybridDrafter):
    """Counts where its guesses came from."""

    def __init__(self, sources):
        super().__init__(SuffixDrafter(speculator=SPECULATOR), DraftModelDrafter(Chances(DRAFT), Rejection()))
        self.sources = sources

    def propose(self, rows, budget):
        proposals = super().propose(rows, budget)
        for at, row in enumerate(rows):
            if proposals.tokens[at]:
                kind = self.suffix._guesses[row.candidate].kinds[0]
                predicted = "speculator" if isinstance(kind, SpeculatorKind) else "copies"
                self.sources["draft model" if proposals.drawn(at) else predicted] += 1
        return proposals


class ByTheDraw(Mixture):
    """Wrong: what the draft model drew is kept only where the speculator would have said the same."""

    def propose(self, rows, budget):
        drawn = self.model.propose(rows, DraftBudget.of(budget.drawn))
        guessed = self.suffix.propose(rows, budget)
        keep = [
            len(own) if own[:1] == other[:1] else 0 for own, other in zip(drawn.tokens, guessed.tokens, strict=True)
        ]
        return Proposals(drawn.tokens, drawn.q).cut(keep)


def enumerated(monkeypatch, kind, target, runs, length, states):
    """Chances of the texts of the last of ``runs`` runs with one seed, and how often which source guessed."""
    found, sources = defaultdict(float), Counter()
    for world in Worlds(CUTS):
        drafter = kind(sources)
        with world.decide(monkeypatch):
            for _ in range(runs):
                rows = new_rows([1], PROMPT, length, seed=7)
                rows = decode(assemble(Chances(target, states), drafter, "fixed:2", Rejection()), PROMPT, rows)
        found[tuple(rows[0].tokens)] += world.chance
    assert math.fsum(found.values()) == pytest.approx(1, abs=1e-12)
    return found, sources


def exact(target, length):
    """A walk through the target's own chances."""
    return {
        text: math.prod(target[before][token] for before, token in itertools.pairwise([PROMPT[-1], *text]))
        for text in itertools.product(range(2), repeat=length)
    }


# By which states each of the two is asked in some worlds: what they say follows is as good as random.
@pytest.mark.parametrize(("states", "runs", "length"), [(5, 1, 3), (5, 2, 3), (2, 1, 4)])
@pytest.mark.parametrize("target", [SAME, CHAIN], ids=["same", "chain"])
def test_whichever_of_them_guesses_the_text_is_the_targets(monkeypatch, target, states, runs, length):
    found, sources = enumerated(monkeypatch, Mixture, target, runs, length, states)
    assert total_variation(found, exact(target, length)) <= 1e-12
    assert sources["speculator"] > 0
    assert sources["draft model"] > 0


def test_to_choose_by_what_was_drawn_would_be_wrong(monkeypatch):
    """What the enumeration is there to see."""
    found, _ = enumerated(monkeypatch, ByTheDraw, CHAIN, 1, 3, states=5)
    assert total_variation(found, exact(CHAIN, 3)) > 0.01
