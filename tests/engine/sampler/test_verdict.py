"""The device's verdict, in Triton's interpreter, is that of the sampler's own arithmetic."""

import pytest
import torch

from engine.contract import Sampling
from engine.sampler.acceptance import Coupled, Proposals, Rejection, VerifyLine
from engine.sampler.sampling import distributions
from engine.sampler.verdict import DeviceVerifier, HostVerifier
from tests.engine.sampler.running import new_rows

pytest.importorskip("triton", reason="triton has no wheel for this platform")

SAMPLINGS = {
    1: Sampling(temperature=0.8, top_p=0.9),
    2: Sampling(temperature=0),
    3: Sampling(temperature=1.1, top_k=12, repetition_penalty=1.3, frequency_penalty=0.5),
}


def q_of(logits, drafts, generator):
    """What the drafts might have been drawn from: like the target's, but not the same, and cut elsewhere."""
    count = sum(map(len, drafts))
    other = logits[:count].float() + torch.randn(count, logits.shape[1], generator=generator)
    other[torch.arange(count), torch.tensor([token for row in drafts for token in row])] += 9.0  # it can be drawn
    return distributions(other, Sampling(temperature=0.9, top_p=0.95))


def test_a_copied_guess_beside_drawn_ones_is_not_judged_as_if_it_had_been_drawn():
    """Over several draws: a guess that the draft model likes is often kept by the one rule and not by the other."""
    kept = []
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        rows = new_rows([1, 2], [3, 4, 5], sampling={1: SAMPLINGS[1], 2: SAMPLINGS[1]}, seed=seed)
        logits = torch.randn(5, 60, generator=generator)
        drafts = [logits[:2].argmax(-1).tolist(), logits[3:4].argmax(-1).tolist()]
        proposals = Proposals(
            drafts, q_of(logits, drafts, generator), [[0.9, 0.9], None]
        )  # the first row's were copied
        line = VerifyLine.of(rows, proposals, logits.device)
        want, got = (
            verifier.verify(logits, line, 2, proposals.q, Rejection()).wait()
            for verifier in (HostVerifier(), DeviceVerifier())
        )
        kept.append(((got.accepted, got.tokens), (want.accepted, want.tokens)))
    assert [got for got, _ in kept] == [want for _, want in kept]


@pytest.mark.parametrize("rule", [Coupled(), Rejection()], ids=lambda rule: rule.name)
@pytest.mark.parametrize("penalised", [False, True], ids=["plain", "penalised"])
@pytest.mark.parametrize("drawn", ["none", "all", "some"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_verdicts_agree(rule, penalised, drawn, dtype):
    numbers = [1, 2, 3] if penalised else [1, 2]
    rows = new_rows(numbers, [3, 4, 5], sampling={number: SAMPLINGS[number] for number in numbers})
    for row in rows:
        row.tokens += [7, 8, 7]
    generator = torch.Generator().manual_seed(4)
    logits = (torch.randn(3 * len(rows) - 1, 60, generator=generator) * 3).to(dtype)
    guesses = logits.argmax(-1).tolist()  # likely to stay for a while
    drafts = [guesses[:2], guesses[3:4], guesses[5:7]][: len(rows)]
    q = None if drawn == "none" else q_of(logits, drafts, generator)
    survival = [[0.9] * len(drafts[0]), *[None] * (len(rows) - 1)] if drawn == "some" else None  # the first was copied
    proposals = Proposals(drafts, q, survival)
    line = VerifyLine.of(rows, proposals, logits.device)
    want, got = (
        verifier.verify(logits[: len(line.drafts)], line, len(rows), proposals.q, rule).wait()
        for verifier in (HostVerifier(), DeviceVerifier())
    )
    assert (got.accepted, got.tokens) == (want.accepted, want.tokens)
    start = 0
    for count, tokens in zip(want.accepted, drafts, strict=True):
        committed = slice(start, start + count + 1)
        assert got.scores[committed] == pytest.approx(want.scores[committed], abs=1e-5)
        start += len(tokens) + 1
