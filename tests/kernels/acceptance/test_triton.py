"""The device's way from logits to tokens, in Triton's interpreter, against the sampler's own and the torch twin."""

from collections.abc import Sequence

import pytest
import torch

from engine.contract import Sampling
from engine.sampler.sampling import Distributions, distributions
from kernels.acceptance import torch as plain
from kernels.philox import ACCEPT, DRAFT, TOKEN
from kernels.philox.torch import uniform

pytest.importorskip("triton", reason="triton has no wheel for this platform")

import triton
import triton.language as tl

from kernels.acceptance.triton import (
    COUPLED,
    REJECTION,
    Counter,
    Drawn,
    _gumbel,
    accept,
    cuts_of,
    dense,
    draw,
    unpack,
)

WAYS = [
    Sampling(temperature=0.8, top_p=0.95),
    Sampling(temperature=0.2, top_p=0.5),
    Sampling(temperature=1.3, top_p=1.0, top_k=20),
    Sampling(temperature=0.7, top_p=0.8, top_k=20, min_p=0.05),
    Sampling(temperature=1.0, top_p=1.0, min_p=0.1),
    Sampling(temperature=0),
    Sampling(temperature=1.0, top_p=1.0),
    Sampling(temperature=1.0, top_p=0.9, top_k=90),  # more than the pieces of a small vocabulary
]


def cuts(samplings: Sequence[Sampling]) -> torch.Tensor:
    return cuts_of([(s.temperature, s.top_k, s.top_p, s.min_p) for s in samplings], torch.device("cpu"))


def counter(positions: int, seed: int = 3) -> Counter:
    generator = torch.Generator().manual_seed(seed)
    return Counter(
        torch.randint(0, 2**63 - 1, (positions,), generator=generator),
        torch.randint(0, 200, (positions,), generator=generator),
        torch.randint(0, 100_000, (positions,), generator=generator),
    )


def random_logits(positions: int, size: int, spread: float = 4.0, seed: int = 0) -> torch.Tensor:
    return torch.randn(positions, size, generator=torch.Generator().manual_seed(seed)) * spread


def support_of(drawn: Drawn) -> list[list[int]]:
    temperature = drawn.cuts[:, :1]
    scaled = drawn.logits.float() / torch.where(temperature > 0, temperature, 1.0)
    return [row.nonzero()[:, 0].tolist() for row in scaled >= drawn.floors[:, None]]


EDGE = 2e-6  # of probability: an id this close to where a nucleus ends may fall on either side


def support_by_sorting(logits: torch.Tensor, sampling: Sampling, edge: float) -> set[int]:
    """What may be drawn, by a float64 sort; the nucleus ends at top-p plus ``edge``."""
    x = (logits.float() / sampling.temperature).double()
    falling = x.sort(descending=True).values
    floor = falling[sampling.top_k - 1] if 0 < sampling.top_k < len(x) else falling[-1]
    p = falling[falling >= floor].softmax(0)
    first_of_tie = torch.searchsorted(-falling, -falling[: len(p)])
    above = (p.cumsum(0) - p)[first_of_tie]
    if sampling.top_p < 1:
        floor = falling[: len(p)][above < sampling.top_p + edge].min()
    if sampling.min_p > 0:
        floor = max(floor, falling[0] + torch.tensor(sampling.min_p).log().double() - 1e-6)
    return set((x >= floor).nonzero()[:, 0].tolist())


def check_draw(logits: torch.Tensor, samplings: Sequence[Sampling], purpose: int = TOKEN) -> None:
    at = counter(len(logits))
    drawn = draw(logits, cuts(samplings), at, purpose)
    for index, sampling in enumerate(samplings):
        alone = tuple(part[index : index + 1] for part in at)
        if sampling.temperature == 0:
            assert drawn.tokens[index] == logits[index].argmax()
            continue
        ids = support_of(drawn)[index]
        assert support_by_sorting(logits[index], sampling, -EDGE) <= set(ids)
        assert set(ids) <= support_by_sorting(logits[index], sampling, EDGE)
        log_probs = (logits[index, ids].float() / sampling.temperature).log_softmax(-1)
        assert drawn.tokens[index] == plain.draw(torch.tensor([ids]), log_probs[None], alone, purpose)
    torch.testing.assert_close(drawn.raw_totals, logits.float().logsumexp(-1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [2, 97, 4097])
def test_every_way_of_sampling_side_by_side(size):
    check_draw(random_logits(len(WAYS), size), WAYS)


def test_drafts_are_drawn_from_a_stream_of_their_own():
    check_draw(random_logits(3, 300), [WAYS[0]] * 3, DRAFT)


def test_the_largest_vocabulary():
    check_draw(random_logits(3, 152_064, spread=3.0), [WAYS[0], WAYS[3], WAYS[4]])


@pytest.mark.parametrize("sampling", [WAYS[0], WAYS[2], WAYS[3], WAYS[7]], ids=str)
def test_ties_stay_whole(sampling):
    """Logits of few different values: the cut falls inside a tie almost surely."""
    logits = random_logits(4, 500, spread=2.0, seed=5).round()
    check_draw(logits, [sampling] * 4)


def test_half_precision_logits_are_read_as_they_are():
    check_draw(random_logits(2, 700).bfloat16(), [WAYS[0], WAYS[3]])


@pytest.mark.parametrize(("min_p", "temperature"), [(0.1, 1.0), (0.3, 0.7)])
def test_ids_at_the_very_edge_of_min_p_stay_and_those_beyond_it_go(min_p, temperature):
    """As in the sampler's own: whatever the last bit of a logarithm says."""
    largest = torch.linspace(-4, 4, 24, dtype=torch.float64)
    for off, size in ((0.0, 2), (-1e-4, 1)):
        edge = largest + temperature * torch.tensor(min_p, dtype=torch.float64).log() + off
        logits = torch.stack([largest, edge, largest - 50], dim=1).float()
        sampling = Sampling(temperature=temperature, top_p=1.0, min_p=min_p)
        drawn = draw(logits, cuts([sampling] * len(logits)), counter(len(logits)), TOKEN)
        assert [len(ids) for ids in support_of(drawn)] == [size] * len(logits)


def test_what_cannot_be_drawn_never_is():
    logits = random_logits(2, 300)
    logits[:, 7:] = float("-inf")
    drawn = draw(logits, cuts([WAYS[6], WAYS[2]]), counter(2), TOKEN)
    assert drawn.tokens.max() < 7


@triton.jit  # type: ignore[untyped-decorator]
def _gumbel_kernel(source, out, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    tl.store(out + at, _gumbel(tl.load(source + at)))


def test_gumbel_noise_is_exact_to_the_last_bits_where_it_matters():
    u = torch.logspace(-9.9, -0.0001, 1024, dtype=torch.float64).float().clamp(max=1 - 2**-24)
    out = torch.empty_like(u)
    _gumbel_kernel[(1,)](u, out, BLOCK=1024)
    want = -torch.log(-torch.log1p(-u.double()))
    torch.testing.assert_close(out.double(), want, rtol=2e-6, atol=2e-6)


COUNTS = [3, 1, 2]  # positions of each row: its drafts and one more
STARTS = torch.tensor([0, 3, 4, 6], dtype=torch.int32)
OWNERS = torch.repeat_interleave(torch.arange(3), torch.tensor(COUNTS))
LAST = [2, 3, 5]


def likely_drafts(tokens: torch.Tensor, seed: int) -> torch.Tensor:
    """Drafts that are right about three times in four; -1 at each row's last position."""
    wrong = torch.rand(len(tokens), generator=torch.Generator().manual_seed(seed)) < 0.25
    drafts = torch.where(wrong, (tokens + 1) % 50, tokens).to(torch.int32)
    drafts[LAST] = -1
    return drafts


def check_log_probs(
    scores: torch.Tensor, raw: torch.Tensor, drafts: torch.Tensor, accepted: list, tokens: list
) -> None:
    for row, start in enumerate(STARTS[:-1].tolist()):
        for offset in range(accepted[row] + 1):
            token = tokens[row] if offset == accepted[row] else int(drafts[start + offset])
            want = raw[start + offset].float().log_softmax(-1)[token]
            torch.testing.assert_close(scores[start + offset], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sampling", [WAYS[0], WAYS[3], WAYS[5]], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_coupled(sampling, seed):
    logits, at = random_logits(6, 50, seed=seed), counter(6, seed)
    p = distributions(logits, sampling)
    drafts = likely_drafts(plain.draw(p.ids, p.log_probs, tuple(at), TOKEN), seed)
    result = accept(logits, cuts([sampling] * 6), at, drafts, STARTS, COUPLED)
    accepted, tokens, scores = unpack(result, 3)
    want_accepted, want_tokens = plain.coupled(p.ids, p.log_probs, drafts.long(), OWNERS, tuple(at))
    assert accepted.tolist() == want_accepted.tolist()
    assert tokens.tolist() == want_tokens.tolist()
    check_log_probs(scores, logits, drafts, accepted.tolist(), tokens.tolist())


@pytest.mark.parametrize("sampling", [WAYS[0], WAYS[6]], ids=str)
@pytest.mark.parametrize("drawn", [True, False], ids=["drawn", "guessed"])
@pytest.mark.parametrize("seed", range(2))
def test_rejection(sampling, drawn, seed):
    logits, at = random_logits(6, 50, spread=2.0, seed=seed), counter(6, seed)
    p = distributions(logits, sampling)
    q_logits = (
        logits[torch.arange(5, -1, -1)] * 0.1 + logits
    )  # row r of q belongs to any position: ``places`` says which
    places = torch.arange(6, dtype=torch.int32).flip(0)
    q_at = Counter(*(part.flip(0) for part in at))
    q = draw(q_logits.flip(0), cuts([sampling] * 6), q_at, DRAFT)
    drafts = q.tokens.flip(0).contiguous() if drawn else likely_drafts(logits.argmax(-1), seed)
    drafts[LAST] = -1
    result = accept(logits, cuts([sampling] * 6), at, drafts, STARTS, REJECTION, q=(q, places) if drawn else None)
    accepted, tokens, scores = unpack(result, 3)

    sparse_q = distributions(q_logits, sampling)
    want_accepted, want_tokens = (
        plain.rejection(p.ids, p.log_probs, drafts.long(), sparse_q.ids, sparse_q.log_probs, OWNERS, tuple(at))
        if drawn
        else plain.coupled(p.ids, p.log_probs, drafts.long(), OWNERS, tuple(at))
    )
    assert accepted.tolist() == want_accepted.tolist()
    assert tokens.tolist() == want_tokens.tolist()
    check_log_probs(scores, logits, drafts, accepted.tolist(), tokens.tolist())


def check_rejection(
    logits: torch.Tensor,
    sampling: Sampling,
    q: Distributions,
    drafts: torch.Tensor,
    seed: int = 3,
    drawn: torch.Tensor | None = None,
) -> torch.Tensor:
    """A line of one draft per row, judged by kernel and twin alike. ``q`` ``[R, K]``; accepted counts ``[R]``."""
    rows = len(drafts)
    at, wide = counter(2 * rows, seed), torch.arange(2 * rows) // 2
    places = wide.int()
    if drawn is not None:
        drawn = drawn[wide]
        places = torch.where(drawn, places, -1)
    line = torch.stack([drafts, torch.full_like(drafts, -1)], dim=1).flatten().int()
    starts = torch.arange(0, 2 * rows + 1, 2, dtype=torch.int32)
    drawn_from = (dense(q.ids, q.log_probs, logits.shape[1]), places)
    result = accept(logits, cuts([sampling] * 2 * rows), at, line, starts, REJECTION, q=drawn_from)
    accepted, tokens, _ = unpack(result, rows)
    p = distributions(logits, sampling)
    judged = (line.long(), q.ids[wide], q.log_probs[wide])
    want = plain.rejection(p.ids, p.log_probs, *judged, wide, tuple(at), drawn)
    assert accepted.tolist() == want[0].tolist()
    assert tokens.tolist() == want[1].tolist()
    return accepted


@pytest.mark.parametrize(("size", "sampling"), [(53, WAYS[6]), (4099, WAYS[0]), (131, WAYS[3])], ids=str)
def test_rejection_of_what_another_distribution_drew(size, sampling):
    """q is sparse and sharp, reaches beyond p's support, and repeats id 0 where it is not used up."""
    rows = 9
    logits = random_logits(2 * rows, size, spread=1.5, seed=size)
    q_logits = logits[::2] + random_logits(rows, size, spread=1.0, seed=1)
    q_logits[:, 0] = q_logits.amax(-1) - 1  # the id that fills what is not used up is also a likely one
    kept = distributions(q_logits, Sampling(temperature=0.9, top_p=0.9))
    q = Distributions(
        torch.nn.functional.pad(kept.ids, (0, 3)), torch.nn.functional.pad(kept.log_probs, (0, 3), value=-torch.inf)
    )
    p = distributions(logits[::2], sampling)
    assert any(set(q.ids[row].tolist()) - set(p.ids[row].tolist()) for row in range(rows)) or sampling == WAYS[6]
    drafts = plain.draw(q.ids, q.log_probs, tuple(counter(rows, 5)), DRAFT)
    accepted = check_rejection(logits, sampling, q, drafts)
    assert 0 < accepted.sum() < rows


@pytest.mark.parametrize("seed", range(4))
def test_what_was_drawn_and_what_was_not_in_one_line(seed):
    """Rows of a hybrid drafter: each draft is met as what it is."""
    rows, sampling = 9, WAYS[6]
    logits = random_logits(2 * rows, 53, spread=1.5, seed=seed)
    q = distributions(logits[::2] + random_logits(rows, 53, spread=0.7, seed=seed + 10), sampling)
    at = counter(rows, 5)
    drafts = plain.draw(q.ids, q.log_probs, tuple(at), DRAFT)
    drawn = torch.arange(rows) % 3 > 0
    accepted = check_rejection(logits, sampling, q, drafts, seed, drawn)
    none_drawn = check_rejection(logits, sampling, q, drafts, seed, torch.zeros_like(drawn))
    all_drawn = check_rejection(logits, sampling, q, drafts, seed, torch.ones_like(drawn))
    assert torch.equal(accepted, torch.where(drawn, all_drawn, none_drawn))


def test_where_nothing_is_left_of_p_it_is_drawn_from_itself():
    """The draft's q is above p everywhere, as rounding can make it; what follows is drawn from p."""
    rows = 12
    logits = random_logits(2 * rows, 37, spread=1.0, seed=2)
    p = distributions(logits[::2], WAYS[6])
    q = Distributions(p.ids, p.log_probs + 0.7)
    accepted = check_rejection(logits, WAYS[6], q, logits[::2].argmax(-1))
    assert 0 < accepted.sum() < rows


def test_at_temperature_zero_both_rules_are_the_same():
    logits, at = random_logits(6, 50), counter(6)
    drafts = likely_drafts(logits.argmax(-1), 1)
    ways = [accept(logits, cuts([WAYS[5]] * 6), at, drafts, STARTS, rule) for rule in (COUPLED, REJECTION)]
    assert torch.equal(ways[0][:6], ways[1][:6])
    assert 0 < ways[0][:3].sum() < 3  # some drafts stay, some do not


def test_scores_are_of_the_logits_before_penalties():
    raw = random_logits(6, 50)
    penalised = raw - 3.0 * (torch.arange(50) % 7 == 0)
    at, drafts = counter(6), likely_drafts(penalised.argmax(-1), 2)
    accepted, tokens, scores = unpack(
        accept(penalised, cuts([WAYS[0]] * 6), at, drafts, STARTS, COUPLED, raw=raw), rows=3
    )
    p = distributions(penalised, WAYS[0])
    assert tokens.tolist() == plain.coupled(p.ids, p.log_probs, drafts.long(), OWNERS, tuple(at))[1].tolist()
    check_log_probs(scores, raw, drafts, accepted.tolist(), tokens.tolist())


def test_the_coin_is_that_of_the_twin_and_a_rejected_draft_never_comes_back():
    """One draft, p(draft) = 1/2: it stays exactly when the twin's uniform number is below that."""
    positions = 12
    at = counter(2 * positions)
    logits = torch.zeros(2 * positions, 2)
    drafts = torch.tensor([1, -1] * positions, dtype=torch.int32)
    starts = torch.arange(0, 2 * positions + 1, 2, dtype=torch.int32)
    q = dense(torch.ones(1, 1, dtype=torch.long), torch.zeros(1, 1), 2)  # which can draw nothing else
    places = torch.zeros(2 * positions, dtype=torch.int32)
    accepted, tokens, _ = unpack(
        accept(logits, cuts([WAYS[6]] * len(logits)), at, drafts, starts, REJECTION, q=(q, places)), positions
    )
    coins = uniform(*at, torch.zeros(2 * positions, dtype=torch.long), ACCEPT)[::2]
    assert accepted.tolist() == (coins < 0.5).int().tolist()
    assert 2 < accepted.sum() < positions - 2
    assert tokens[accepted == 0].tolist() == [0] * int((accepted == 0).sum())
