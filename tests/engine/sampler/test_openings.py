"""Rows that begin with tokens of their own behind the shared prompt say what they say in a run of their own."""

import random

import pytest
import torch

from engine.sampler.device_model import DeviceModel
from engine.sampler.ragged_model import RaggedModel
from kernels.attention.torch import packed_attention
from tests.engine.sampler.running import decode, new_rows, open_decoder, tokens_of
from tests.engine.sampler.tiny import VOCABULARY, build, noisy_copy

WAYS = [
    ("none", "fixed:0"),
    ("suffix", "fixed:3"),
    ("suffix", "goodput"),
    ("draft-model", "fixed:2"),
    ("draft-model", "goodput"),
    ("hybrid", "fixed:2"),
]
# Under rejection a draft model's text depends on how many tokens it drew, and a mixture's on who guessed.
EXACT = [(*way, "coupled") for way in WAYS] + [(*way, "rejection") for way in WAYS[:4]]
PROMPT = [5, 9, 33, 70, 12, 5, 9]
LONG, SHORT, OTHER = [8 + at % 13 for at in range(40)], [21, 22], [80, 81, 82, 5, 9, 33]
OPENINGS = {1: [], 2: LONG, 3: SHORT, 4: LONG, 5: [], 6: OTHER}


@pytest.fixture(scope="module")
def target():
    return build(spread=0.4)


@pytest.fixture(scope="module")
def draft(target):
    return noisy_copy(target, 0.05)


def rows_with(openings, prompt=PROMPT, **options):
    """A row for each opening, by number."""
    rows = [row for n, own in openings.items() for row in new_rows([n], [*prompt, *own], **options)]
    for row in rows:
        row.opening = tuple(openings[row.candidate])
    return rows


def alone(open_own, openings, **options):
    """Every row in a run of its own, whose prompt is the whole conversation."""
    rows = []
    for number, own in openings.items():
        conversation = [*PROMPT, *own]
        rows += decode(open_own(), conversation, new_rows([number], conversation, **options))
    return rows


@pytest.mark.parametrize(("drafter", "policy", "rule"), EXACT)
def test_a_row_says_what_it_says_in_a_run_of_its_own(target, draft, drafter, policy, rule):
    def open_own():
        return open_decoder(target, drafter=drafter, draft=draft, policy=policy, rule=rule)

    together = decode(open_own(), PROMPT, rows_with(OPENINGS))
    separate = alone(open_own, OPENINGS)
    assert tokens_of(together) == tokens_of(separate)
    for row, own in zip(together, separate, strict=True):
        assert row.log_probs == pytest.approx(own.log_probs, abs=1e-4)


@pytest.mark.parametrize(("drafter", "policy"), WAYS)
def test_rows_that_join_late_or_leave_early_change_nothing(target, draft, drafter, policy):
    def open_own():
        return open_decoder(target, drafter=drafter, draft=draft, policy=policy)

    want = tokens_of(alone(open_own, OPENINGS))
    decoder = open_own()
    last = decoder.target.prefill(PROMPT, features=decoder.drafter.needs)
    decoder.drafter.begin(PROMPT, lambda done: True)
    rows = rows_with(OPENINGS)
    waiting = list(rows)
    while waiting or decoder.rows:
        if waiting:
            decoder.join([waiting.pop(0)], last)
        for _ in range(3):
            decoder.leave()
            if decoder.rows:
                decoder.step()
    assert tokens_of(rows) == want


@pytest.mark.parametrize(("drafter", "policy"), WAYS)
def test_rows_that_memory_took_out_begin_with_their_opening_again(target, draft, drafter, policy):
    def open_own():
        return open_decoder(target, drafter=drafter, draft=draft, policy=policy)

    want = tokens_of(alone(open_own, OPENINGS))
    decoder, rows = open_own(), rows_with(OPENINGS)
    last = decoder.target.prefill(PROMPT, features=decoder.drafter.needs)
    decoder.drafter.begin(PROMPT, lambda done: True)
    decoder.join(rows, last)
    decoder.step()
    decoder.leave()
    out = decoder.release()
    decoder.join(out[:2], last)
    decoder.step()
    decoder.leave()
    decoder.join(out[2:], last)
    while decoder.rows:
        decoder.step()
        decoder.leave()
    assert tokens_of(rows) == want


@pytest.mark.parametrize("chunk", [1, 3, 7, 64])
def test_openings_are_read_in_pieces_and_each_once(target, monkeypatch, chunk):
    monkeypatch.setattr("engine.sampler.ragged_model.PREFILL_CHUNK", chunk)
    decoder = open_decoder(target)
    last = decoder.target.prefill(PROMPT)
    read, before = [], decoder.target.tokens_read
    forward = decoder.target.forward

    def counted(tokens, starts, **options):
        read.append(sum(map(len, tokens)))
        return forward(tokens, starts, **options)

    monkeypatch.setattr(decoder.target, "forward", counted)
    rows = rows_with(OPENINGS)
    decoder.join(rows, last)
    assert decoder.target.tokens_read - before == len(LONG) + len(SHORT) + len(OTHER)  # one of them twice, read once
    along = len([own for own in OPENINGS.values() if own])
    assert max(read) <= chunk + along
    monkeypatch.setattr(decoder.target, "forward", forward)
    while decoder.rows:
        decoder.step()
        decoder.leave()
    assert tokens_of(rows) == tokens_of(alone(lambda: open_decoder(target), OPENINGS))


def test_what_an_earlier_answer_said_is_not_read_again(target):
    """Neither in the same run nor in the next one of this prompt."""
    decoder = open_decoder(target, drafter="suffix", policy="fixed:3")
    (answer,) = tokens_of(decode(decoder, PROMPT, new_rows([1], PROMPT, 16)))
    openings = {2: [*answer, 40, 41, 42], 3: [*answer[:9], 50, 51], 4: [7, 7, 7]}
    before = decoder.target.tokens_read
    rows = decode(decoder, PROMPT, rows_with(openings))
    known = len(PROMPT) - 1 + (len(answer) - 1) + 9
    assert decoder.target.tokens_read - before == len(PROMPT) + sum(map(len, openings.values())) - known
    assert tokens_of(rows) == tokens_of(alone(lambda: open_decoder(target), openings))


def test_a_follow_up_goes_on_from_the_answer_behind_an_opening(target):
    decoder = open_decoder(target)
    (row,) = decode(decoder, PROMPT, rows_with({2: OTHER}))
    conversation = [*PROMPT, *OTHER, *row.tokens, 60, 61]
    before = decoder.target.tokens_read
    last = decoder.target.prefill(conversation)
    assert decoder.target.tokens_read - before == 3  # the answer's last token was never fed
    fresh = open_decoder(target).target.prefill(conversation)
    torch.testing.assert_close(last.logits, fresh.logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("drafter", ["none", "draft-model"])
def test_reading_stops_between_two_pieces(target, draft, monkeypatch, drafter):
    monkeypatch.setattr("engine.sampler.ragged_model.PREFILL_CHUNK", 4)
    looks, opened = [], open_decoder(target, drafter=drafter, draft=draft)
    last = opened.target.prefill(PROMPT)
    opened.drafter.begin(PROMPT, lambda done: True)
    assert opened.join(rows_with({9: []}), last)
    assert opened.join(rows_with(OPENINGS), last, lambda: looks.append(0) is None)
    assert len(looks) > (16 if drafter == "draft-model" else 8)
    for stop_at in range(1, len(looks) + 1, 3):
        decoder = open_decoder(target, drafter=drafter, draft=draft)
        last = decoder.target.prefill(PROMPT)
        decoder.drafter.begin(PROMPT, lambda done: True)
        first = rows_with({9: []})
        decoder.join(first, last)
        asked = []
        rows = rows_with(OPENINGS)
        assert not decoder.join(rows, last, lambda asked=asked, most=stop_at: asked.append(0) or len(asked) < most)
        assert len(asked) == stop_at
        assert not any(row.tokens for row in rows)
        assert decoder.rows == first
        while decoder.rows:  # those that were there go on as if nothing had been
            decoder.step()
            decoder.leave()
        assert tokens_of(first) == tokens_of(alone(lambda: open_decoder(target), {9: []}))


def test_one_that_is_ended_while_others_are_read_draws_nothing(target, monkeypatch):
    monkeypatch.setattr("engine.sampler.ragged_model.PREFILL_CHUNK", 4)
    decoder, rows = open_decoder(target), rows_with(OPENINGS)
    last = decoder.target.prefill(PROMPT)
    ended = [rows[2], rows[4]]  # one that reads, and one that waits for it

    def end():
        for row in ended:
            row.end("cancelled")
        return True

    assert decoder.join(rows, last, end)
    decoder.leave()
    while decoder.rows:
        decoder.step()
        decoder.leave()
    want = tokens_of(alone(lambda: open_decoder(target), OPENINGS))
    assert tokens_of(rows) == [[] if row in ended else own for row, own in zip(rows, want, strict=True)]


def test_an_opening_is_copied_from(target):
    """A repair repeats most of the answer that it repairs."""
    opening = [30 + at for at in range(20)]
    decoder = open_decoder(target, drafter="suffix", policy="fixed:3")
    decoder.drafter.begin(PROMPT, lambda done: True)
    rows = rows_with({1: opening, 2: opening, 3: []})
    for row in rows:
        row.commit([30, 31, 32], [0.0] * 3)
    proposals = decoder.drafter.propose(rows, decoder.policy.budget(rows))
    assert [tokens[:2] for tokens in proposals.tokens] == [[33, 34]] * 3


@pytest.mark.parametrize("seed", range(6))
def test_any_openings_in_the_fixed_memory_of_a_device(seed):
    """The same door as on a GPU, with plain attention in the kernel's place."""
    generator = random.Random(seed)
    model = build(spread=0.4)
    openings = {
        n: [generator.randrange(3, VOCABULARY) for _ in range(generator.choice([0, 1, 5, 30]))] for n in range(1, 6)
    }
    openings[6] = openings[generator.randrange(1, 6)]
    decoder = open_decoder(model, drafter="suffix", policy="fixed:2")
    decoder.target = DeviceModel(build(spread=0.4), VOCABULARY, packed_attention, None)
    rows = decode(decoder, PROMPT, rows_with(openings))
    assert tokens_of(rows) == tokens_of(alone(lambda: open_decoder(model), openings))


def test_a_padded_line_reads_them_too(target):
    decoder = open_decoder(target, packed=False)
    assert isinstance(decoder.target, RaggedModel)
    rows = decode(decoder, PROMPT, rows_with(OPENINGS))
    assert tokens_of(rows) == tokens_of(alone(lambda: open_decoder(target), OPENINGS))
