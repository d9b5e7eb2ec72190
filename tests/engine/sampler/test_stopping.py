"""One cut for end tokens, stop strings and the length limit: cases D3, D4, D18 and D19 for the row."""

import pytest
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from engine.sampler.detokenizer import Detokenizer
from engine.sampler.stopping import Limits, Row


def alphabet(ids):
    return "".join(chr(ord("A") + i) for i in ids)


def row(stop=(), eos=(), max_tokens=50, decode=alphabet):
    return Row(1, 0, [0] * 3, Limits(frozenset(eos), max_tokens, tuple(stop)), decode)


def commit(target, text, proposed=None):
    ids = [ord(letter) - ord("A") for letter in text]
    target.commit(ids, [-1.0] * len(ids), len(ids) - 1 if proposed is None else proposed)


@pytest.mark.parametrize("block", range(1, 10))
def test_d3_a_stop_string_at_every_offset_of_a_block(block):
    text = "ABCDEFGHI"
    got = row(stop=["DEFGH"])
    for start in range(0, len(text), block):
        if not got.stop_reason:
            commit(got, text[start : start + block])
            assert "D" not in got.text
    assert (got.text, got.stop_reason, got.tokens) == ("ABC", "stop", [0, 1, 2])


def test_d3_a_text_that_only_begins_like_a_stop_string():
    got = row(stop=["DEFGH"])
    commit(got, "ABCDEF")
    assert got.text == "ABC"
    commit(got, "X")
    assert got.text == "ABCDEFX"
    commit(got, "DE")
    got.end("cancelled")
    assert got.text == "ABCDEFXDE"


def test_d4_the_end_token_inside_a_block_that_crosses_the_limit():
    got = row(eos=[5], max_tokens=3)
    got.commit([0, 1, 5, 2, 3], [-1.0] * 5, 4)
    assert (got.stop_reason, got.text, got.tokens) == ("stop", "AB", [0, 1, 5])


def test_d4_the_end_token_one_past_the_limit():
    got = row(eos=[5], max_tokens=3)
    got.commit([0, 1, 2, 5], [-1.0] * 4, 3)
    assert (got.stop_reason, got.text) == ("length", "ABC")


def test_d15_several_end_tokens():
    for eos in (2, 7):
        got = row(eos=[2, 7])
        got.commit([0, eos, 1], [-1.0] * 3, 2)
        assert (got.stop_reason, got.text) == ("stop", "A")


def test_d19_counts_stop_at_the_cut():
    got = row(eos=[9])
    got.commit([0, 9, 1, 2, 3, 4], [-0.5, -1.5, -9, -9, -9, -9], 5)
    assert (got.proposed, got.accepted, got.mean_log_prob) == (2, 2, -1.0)
    other = row()
    other.commit([0, 1, 2], [-1.0] * 3, 5)  # two accepted, three rejected: they count as proposed
    assert (other.proposed, other.accepted) == (5, 2)


@pytest.fixture(scope="module")
def byte_tokenizer():
    """One token per byte, as byte-level tokenizers fall back to."""
    letters = sorted(ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    return tokenizer


TEXTS = ["naïve 日本語 🙂👩‍👩‍👧 e\u0301 end", "\ufeff\u00a0x\r\n\ttab", "🙂🙂"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("block", [1, 2, 3, 5])
def test_d18_characters_split_over_blocks(byte_tokenizer, text, block):
    ids = byte_tokenizer.encode(text).ids
    got = row(decode=byte_tokenizer.decode, max_tokens=500)
    for start in range(0, len(ids), block):
        part = ids[start : start + block]
        got.commit(part, [-1.0] * len(part))
        assert text.startswith(got.text)  # never half a character
    got.end("cancelled")
    assert got.text == text


def test_d18_a_run_that_ends_inside_a_character(byte_tokenizer):
    ids = byte_tokenizer.encode("ab🙂").ids[:-2]
    got = row(decode=byte_tokenizer.decode, max_tokens=len(ids))
    got.commit(ids, [-1.0] * len(ids))
    assert got.stop_reason == "length"
    assert got.text == "ab\ufffd" == byte_tokenizer.decode(ids)


def test_a_token_that_really_is_the_replacement_mark(byte_tokenizer):
    text = "a\ufffdb"
    detokenizer = Detokenizer(byte_tokenizer.decode)
    pieces = [detokenizer.add(token) for token in byte_tokenizer.encode(text).ids]
    assert "".join(pieces) + detokenizer.flush() == text
