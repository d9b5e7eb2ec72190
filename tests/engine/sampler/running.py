"""Decode rows to their end without an engine around them."""

import copy

from engine.contract import Sampling
from engine.sampler.acceptance import Coupled, Rejection
from engine.sampler.cost_table import CostTable
from engine.sampler.decoder import Decoder
from engine.sampler.drafters import Drafter, NoDrafter
from engine.sampler.drafters.draft_model import DraftModelDrafter
from engine.sampler.drafters.hybrid import HybridDrafter
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.policies import open_policy
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.row import Row
from engine.sampler.stopping import Limits
from tests.engine.sampler.tiny import VOCABULARY

GREEDY = Sampling(temperature=0)
FREE = Sampling(temperature=1.0, top_p=1.0)


def letters(ids):
    """A tokenizer of one printable character per id."""
    return "".join(chr(0x100 + i) for i in ids)


def new_rows(numbers, prompt, max_tokens=24, seed=7, eos=(), stop=(), decode=letters, sampling=FREE):
    """``sampling``: of all rows, or a dictionary by number."""
    limits = Limits(frozenset(eos), max_tokens, tuple(stop))
    seeds = seed if isinstance(seed, dict) else dict.fromkeys(numbers, seed)
    samplings = sampling if isinstance(sampling, dict) else dict.fromkeys(numbers, sampling)
    return [Row(n, seeds[n], prompt, limits, decode, samplings[n]) for n in numbers]


def open_decoder(
    target,
    *,
    drafter="none",
    draft=None,
    policy="fixed:4",
    rule="coupled",
    packed=True,
    vocabulary=VOCABULARY,
):
    """``target`` and ``draft`` are stock models and stay as they are."""
    acceptance = Coupled() if rule == "coupled" else Rejection()
    chosen: Drafter
    if drafter == "draft-model":
        second = RaggedModel(copy.deepcopy(draft), vocabulary, packed=packed)
        chosen = DraftModelDrafter(second, acceptance)
    elif drafter == "hybrid":
        second = RaggedModel(copy.deepcopy(draft), vocabulary, packed=packed)
        chosen = HybridDrafter(SuffixDrafter(), DraftModelDrafter(second, acceptance))
    else:
        chosen = SuffixDrafter() if drafter == "suffix" else NoDrafter()
    return assemble(RaggedModel(copy.deepcopy(target), vocabulary, packed=packed), chosen, policy, acceptance)


def assemble(model, drafter, policy, acceptance):
    """A decoder of parts that exist; ``model`` may be a ``TableModel``."""
    costs = CostTable({1: 1.0, 8: 1.2, 16: 2.0})
    return Decoder(model, drafter, open_policy(policy, costs, drafter), acceptance, costs)


def decode(decoder, prompt, rows, after_step=lambda step, decoder: None):
    """All rows to their end; the ended ones in the order of their numbers."""
    last = decoder.target.prefill(prompt, features=decoder.drafter.needs)
    decoder.drafter.begin(prompt, lambda done: True)
    decoder.join(rows, last)
    decoder.leave()
    step = 0
    while decoder.rows:
        decoder.step()
        step += 1
        after_step(step, decoder)
        decoder.leave()
    return sorted(rows, key=lambda row: row.candidate)


def tokens_of(rows):
    return [row.tokens for row in rows]
