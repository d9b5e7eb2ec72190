"""The network beside the target: what it reads, whom it is for, and that no text depends on it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.sampler.acceptance import Coupled
from engine.sampler.budget import DraftBudget
from engine.sampler.drafters.confidence import CopyKind
from engine.sampler.drafters.speculator import (
    CLASSES,
    DEPTHS,
    FOLDER,
    Speculator,
    SpeculatorFile,
    SpeculatorKind,
    output_rows,
    speculator_for,
)
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.forward_pass import Features
from engine.sampler.ragged_model import RaggedModel
from kernels.int8_linear import Int8Linear, available, quantize_weight
from tests.engine.sampler.running import GREEDY, assemble, decode, new_rows, tokens_of
from tests.engine.sampler.tiny import VOCABULARY, build

PROMPT = [5, 6, 7, 8]
SIZE, WIDTH = 32, 16


class Tokenizer:
    """``VOCABULARY`` tokens whose texts are numbers, but for those in ``other``."""

    def __init__(self, other=()):
        self.other = other

    def __len__(self):
        return VOCABULARY

    def convert_ids_to_tokens(self, ids):
        return ["other" if id in self.other else f"t{id}" for id in ids]


def model_of(module, other=()):
    return SimpleNamespace(module=module, tokenizer=Tokenizer(other), device=torch.device("cpu"))


def file_for(module, seed=0, prior=0.9):
    """A network of random weights, trusted as much as ``prior`` says."""
    numbers = np.random.default_rng(seed)
    read, write = (
        quantize_weight(torch.from_numpy(numbers.normal(0, 0.3, shape)))
        for shape in ((SIZE + 2 * WIDTH, 2 * SIZE), (SIZE, WIDTH))
    )
    probes = np.array([3, 50, 96])
    return SpeculatorFile(
        read[0].numpy(),
        read[1].numpy(),
        write[0].numpy(),
        write[1].numpy(),
        np.ones(SIZE, np.float32),
        np.arange(VOCABULARY, dtype=np.int32),
        np.float32(1),
        np.float32(1),
        np.full((DEPTHS, CLASSES), prior, np.float32),
        probes,
        np.array(Tokenizer().convert_ids_to_tokens(probes.tolist())),
        module.get_input_embeddings().weight[probes].detach().half().numpy(),
    )


def drafter_for(module, **how):
    return SuffixDrafter(speculator=Speculator(file_for(module, **how), module))


@pytest.fixture(scope="module")
def module():
    return build(spread=0.4).requires_grad_(False)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("last_only", [True, False])
def test_hidden_states_are_what_the_output_layer_read(module, packed, last_only):
    model = RaggedModel(build(spread=0.4), VOCABULARY, packed=packed)
    features = Features(hidden=True)
    with torch.inference_mode():
        read = model.prefill(PROMPT, features=features)
        assert torch.allclose(module.lm_head(read.hidden), read.logits, atol=1e-5)
        read = model.forward([[9, 10, 11], [12], [13, 14]], [4, 4, 4], last_only=last_only, features=features)
    assert read.hidden.shape == (3 if last_only else 6, SIZE)
    assert torch.allclose(module.lm_head(read.hidden), read.logits, atol=1e-5)


def test_a_pass_keeps_hidden_states_only_if_asked_and_leaves_nothing_on_the_model():
    model = RaggedModel(build(), VOCABULARY)
    before = set(vars(model))
    assert model.prefill(PROMPT).hidden is None
    assert model.forward([[9]], [4], features=Features(hidden=True)).hidden is not None
    assert model.forward([[10]], [5]).hidden is None
    assert set(vars(model)) == before
    assert not model.module.lm_head._forward_pre_hooks


def test_a_drafter_sees_the_state_in_which_each_last_token_was_drawn(module):
    """With rows that join late, end early, and take several tokens at once; greedy, so the state tells the token."""
    model, drafter = RaggedModel(build(spread=0.4), VOCABULARY), drafter_for(module)
    seen, observe = [], drafter.observe

    def watched(rows, hidden):
        seen.extend(zip((row.tokens[-1] for row in rows), module.lm_head(hidden).argmax(-1).tolist(), strict=True))
        observe(rows, hidden)

    drafter.observe = watched
    decoder = assemble(model, drafter, "fixed:3", Coupled())
    lengths = {1: 9, 2: 30, 3: 20}
    rows = [row for number, most in lengths.items() for row in new_rows([number], PROMPT, most, sampling=GREEDY)]
    late = new_rows([4], PROMPT, 15, sampling=GREEDY)

    def join(step, decoder):
        if step == 3:
            decoder.join(late, last)

    with torch.inference_mode():
        last = model.prefill(PROMPT, features=drafter.needs)
        decode(decoder, PROMPT, rows, join)
    assert len(seen) > 20
    assert all(token == told for token, told in seen)
    assert late[0].tokens == rows[1].tokens[:15]


@pytest.mark.parametrize("policy", ["fixed:4", "goodput"])
def test_no_text_depends_on_it(module, policy):
    plain = decode(
        assemble(RaggedModel(build(spread=0.4), VOCABULARY), SuffixDrafter(), "fixed:0", Coupled()),
        PROMPT,
        new_rows(range(1, 6), PROMPT),
    )
    model = RaggedModel(build(spread=0.4), VOCABULARY)
    rows = decode(assemble(model, drafter_for(module), policy, Coupled()), PROMPT, new_rows(range(1, 6), PROMPT))
    assert tokens_of(rows) == tokens_of(plain)
    assert sum(row.proposed for row in rows) > 0


def test_it_guesses_for_all_rows_as_for_each_alone(module):
    speculator = Speculator(file_for(module), module)
    states, tokens = torch.randn(5, SIZE), [3, 4, 5, 6, 7]
    after, guesses = speculator.next(speculator.begin(states), tokens, 0)
    for row in range(5):
        alone, guess = speculator.next(speculator.begin(states[row : row + 1]), tokens[row : row + 1], 0)
        assert guess == guesses[row : row + 1]
        assert torch.allclose(alone, after[row : row + 1], atol=1e-5)


def test_the_surest_guess_is_taken(module):
    """A copy that is trusted more goes before an insight, and the other way round."""

    def kinds(prior):
        said = [10, 11, 40, 41, 42, 43] * 3
        drafter = drafter_for(module, prior=prior)
        drafter.begin(said, lambda done: True)
        (row,) = new_rows([1], said)
        row.commit([10, 11], [0.0, 0.0])
        drafter.observe([row], torch.randn(1, SIZE))
        proposals = drafter.propose([row], DraftBudget.of([4]))
        assert len(proposals.tokens[0]) == len(proposals.survival[0]) == 4
        return drafter._guesses[1].kinds

    assert all(isinstance(kind, CopyKind) for kind in kinds(0.01))
    insights = kinds(0.999)
    assert all(isinstance(kind, SpeculatorKind) for kind in insights)
    assert [kind.depth for kind in insights] == [0, 1, 2, 3]


def test_it_is_not_asked_where_a_copy_is_sure_or_the_answer_would_cost_more_than_it_brings(module):
    said = list(range(10, 30))

    def asked(prompt, least):
        drafter = drafter_for(module)
        times, tell = [], drafter.speculator.next
        drafter.speculator.next = lambda *which: times.append(1) or tell(*which)
        drafter.begin(prompt, lambda done: True)
        (row,) = new_rows([1], prompt)
        row.commit(said[:14], [0.0] * 14)
        drafter.observe([row], torch.randn(1, SIZE))
        drafter.propose([row], DraftBudget.of([4], least))
        return len(times)

    assert asked([1, 2], 0.0) == 4
    assert asked(said * 3, 0.0) == 0  # three times the same behind twelve tokens and more
    assert asked([1, 2], 0.7) == 0


def test_rows_that_were_never_seen_are_not_foretold(module):
    drafter = drafter_for(module)
    drafter.begin(PROMPT, lambda done: True)
    seen, unseen = new_rows([1, 2], PROMPT)
    for row in (seen, unseen):
        row.commit([20], [0.0])
    drafter.observe([seen], torch.randn(1, SIZE))
    assert [len(tokens) for tokens in drafter.propose([seen, unseen], DraftBudget.of([3, 3])).tokens] == [3, 0]


def test_a_file_says_whom_it_is_for(module, tmp_path):
    file = file_for(module)
    file.save(tmp_path / "s.npz")
    again = SpeculatorFile.load(tmp_path / "s.npz")
    assert again.fits(model_of(module))
    assert not again.fits(model_of(module, other={50}))
    assert not again.fits(model_of(build(seed=1)))  # the same sizes and words, other weights
    assert not again.fits(model_of(build(hidden_size=64)))
    tuned = build(spread=0.4)
    with torch.no_grad():
        tuned.get_input_embeddings().weight += 0.02
    assert again.fits(model_of(tuned))
    guess = Speculator(again, module).next(torch.ones(1, SIZE), [3], 0)[1]
    assert guess == Speculator(file, module).next(torch.ones(1, SIZE), [3], 0)[1]


def test_ids_beyond_the_vocabulary_are_another_model(module):
    assert not replace(file_for(module), probe_ids=np.array([3, 50, VOCABULARY])).fits(model_of(module))


@pytest.mark.skipif(not available(), reason="this processor has no int8 products")
@pytest.mark.parametrize("tied", [True, False])
def test_rows_of_an_int8_output_layer_are_its_weights(tied):
    module = build(tie_word_embeddings=tied)
    weight = module.lm_head.weight.detach()
    module.lm_head = Int8Linear.from_linear(module.lm_head)
    rows = output_rows(module, torch.tensor([3, 7]))
    assert torch.allclose(rows, weight[[3, 7]], atol=0.01)


def test_the_shipped_files_can_be_read_and_fit_no_other_model(module):
    paths = sorted(FOLDER.glob("*.npz"))
    assert paths
    for path in paths:
        file = SpeculatorFile.load(path)
        assert file.right.shape == (DEPTHS, CLASSES)
        assert 0 < file.right.min() <= file.right.max() < 1
        assert path.stat().st_size < 8_000_000
        assert not file.fits(model_of(module))
    assert speculator_for(model_of(module)) is None
