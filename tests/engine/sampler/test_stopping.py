"""One cut for end tokens, stop strings and the length limit, as a row makes it."""

import pytest
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from engine.contract import Request, Sampling
from engine.sampler.detokenizer import Detokenizer
from engine.sampler.row import Row
from engine.sampler.stopping import Limits


def alphabet(ids):
    return "".join(chr(ord("A") + i) for i in ids)


def row(stop=(), eos=(), max_tokens=50, decode=alphabet, **code):
    return Row(1, 0, [0] * 3, Limits(frozenset(eos), max_tokens, tuple(stop), **code), decode)


def commit(target, text, proposed=None):
    ids = [ord(letter) - ord("A") for letter in text]
    target.commit(ids, [-1.0] * len(ids), len(ids) - 1 if proposed is None else proposed)


@pytest.mark.parametrize("block", range(1, 10))
def test_a_stop_string_at_every_offset_of_a_block(block):
    text = "ABCDEFGHI"
    got = row(stop=["DEFGH"])
    for start in range(0, len(text), block):
        if not got.stop_reason:
            commit(got, text[start : start + block])
            assert "D" not in got.text
    assert (got.text, got.stop_reason, got.tokens) == ("ABC", "stop", [0, 1, 2])


def test_a_text_that_only_begins_like_a_stop_string():
    got = row(stop=["DEFGH"])
    commit(got, "ABCDEF")
    assert got.text == "ABC"
    commit(got, "X")
    assert got.text == "ABCDEFX"
    commit(got, "DE")
    got.end("cancelled")
    assert got.text == "ABCDEFXDE"


def test_the_end_token_inside_a_block_that_crosses_the_limit():
    got = row(eos=[5], max_tokens=3)
    got.commit([0, 1, 5, 2, 3], [-1.0] * 5, 4)
    assert (got.stop_reason, got.text, got.tokens) == ("stop", "AB", [0, 1, 5])


def test_the_end_token_one_past_the_limit():
    got = row(eos=[5], max_tokens=3)
    got.commit([0, 1, 2, 5], [-1.0] * 4, 3)
    assert (got.stop_reason, got.text) == ("length", "ABC")


def test_several_end_tokens():
    for eos in (2, 7):
        got = row(eos=[2, 7])
        got.commit([0, eos, 1], [-1.0] * 3, 2)
        assert (got.stop_reason, got.text) == ("stop", "A")


def test_counts_stop_at_the_cut():
    got = row(eos=[9])
    got.commit([0, 9, 1, 2, 3, 4], [-0.5, -1.5, -9, -9, -9, -9], 5)
    assert (got.proposed, got.accepted, got.mean_log_prob) == (2, 2, -1.0)
    other = row()
    other.commit([0, 1, 2], [-1.0] * 3, 5)  # two accepted, three rejected: they count as proposed
    assert (other.proposed, other.accepted) == (5, 2)


def test_tokens_of_a_stop_string_do_not_count_also_over_several_blocks():
    got = row(stop=["CDEF"])
    got.commit([0, 1], [-1.0, -2.0], 3)  # one accepted of three
    got.commit([2, 3, 4], [-9.0] * 3, 4)  # C, D, E: held back, and dropped when F comes
    got.commit([5, 6], [-9.0] * 2, 1)
    assert (got.text, got.tokens, got.log_probs) == ("AB", [0, 1], [-1.0, -2.0])
    assert (got.proposed, got.accepted, got.mean_log_prob) == (2, 1, -1.5)


def test_a_token_that_is_shown_in_part_counts():
    got = row(stop=["xyz"], decode=lambda ids: "".join(["ab", "cx", "yz"][i] for i in ids))
    got.commit([0, 1, 2], [-1.0] * 3)
    assert (got.text, got.tokens) == ("abc", [0, 1])


def test_a_text_that_ends_before_it_begins():
    got = row(stop=["A"])
    commit(got, "AB")
    assert (got.text, got.tokens, got.proposed, got.accepted, got.mean_log_prob) == ("", [], 0, 0, None)


PIECES = ["Sure:", "\n``", "`python", "\nx = ", "1\n", "``", "`", "\n\n", "Use it", " so:"]


@pytest.mark.parametrize("block", range(1, 11))
def test_the_end_of_a_block_of_code_at_every_offset(block):
    got = row(decode=lambda ids: "".join(PIECES[i] for i in ids), code_stop="block")
    for start in range(0, len(PIECES), block):
        if not got.stop_reason:
            ids = list(range(start, min(start + block, len(PIECES))))
            got.commit(ids, [-1.0] * len(ids), len(ids) - 1)
    assert (got.text, got.stop_reason) == ("Sure:\n```python\nx = 1\n```", "stop")
    assert got.tokens == list(range(7))  # the line break that told the end is not part of it
    assert got.accepted <= got.proposed <= 7


BODY = ["    ret", "urn x", "\n", "\n", "# Ex", "ample\n", "pri", "nt(f(1))"]


@pytest.mark.parametrize("block", range(1, 9))
def test_the_end_of_a_function_at_every_offset(block):
    got = row(decode=lambda ids: "".join(BODY[i] for i in ids), code_stop="function", before="def f(x):\n")
    for start in range(0, len(BODY), block):
        if not got.stop_reason:
            ids = list(range(start, min(start + block, len(BODY))))
            got.commit(ids, [-1.0] * len(ids), len(ids) - 1)
            assert "#" not in got.text
    assert (got.text, got.stop_reason, got.tokens) == ("    return x\n", "stop", [0, 1, 2])


def test_limits_of_each_candidate():
    request = Request(
        "def f():\n",
        seed=1,
        mode="completion",
        sampling=Sampling(max_tokens=9, stop=("x",)),
        overrides={2: Sampling(max_tokens=99, code_stop="function")},
    )
    assert Limits.of(request, 1, frozenset({5}), 50) == Limits(frozenset({5}), 9, ("x",), "", "def f():\n")
    assert Limits.of(request, 2, frozenset({5}), 50) == Limits(frozenset({5}), 50, (), "function", "def f():\n")


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
def test_characters_split_over_blocks(byte_tokenizer, text, block):
    ids = byte_tokenizer.encode(text).ids
    got = row(decode=byte_tokenizer.decode, max_tokens=500)
    for start in range(0, len(ids), block):
        part = ids[start : start + block]
        got.commit(part, [-1.0] * len(part))
        assert text.startswith(got.text)  # never half a character
    got.end("cancelled")
    assert got.text == text


def test_a_run_that_ends_inside_a_character(byte_tokenizer):
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
