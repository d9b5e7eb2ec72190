"""Filling a gap: the layout of each family, by the control tokens its vocabulary has."""

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.contract import BadRequest, Request
from engine.models.chat import PromptEncoder

BEFORE, AFTER = "def f(x):\n    return ", "\n\nprint(f(1))\n"
FAMILIES = {
    "Qwen": (
        ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"],
        f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{AFTER}<|fim_middle|>",
    ),
    "StarCoder": (
        ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<repo_name>", "<file_sep>"],
        f"<fim_prefix>{BEFORE}<fim_suffix>{AFTER}<fim_middle>",
    ),
    "DeepSeek": (
        ["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"],
        f"<｜fim▁begin｜>{BEFORE}<｜fim▁hole｜>{AFTER}<｜fim▁end｜>",
    ),
    "Codestral": (["[SUFFIX]", "[PREFIX]"], f"[SUFFIX]{AFTER}[PREFIX]{BEFORE}"),
}


def tokenizer_with(controls):
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    tokenizer.add_tokens([AddedToken(control, special=True) for control in controls])
    return tokenizer


@pytest.mark.parametrize("family", FAMILIES)
def test_the_layout_of_each_family(family):
    controls, want = FAMILIES[family]
    tokenizer = tokenizer_with(controls)
    request = Request(BEFORE, 0, mode="fill-in-the-middle", suffix=AFTER)
    ids = PromptEncoder(tokenizer).ids(request)
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == want
    assert ids == tokenizer(want).input_ids  # the very ids of the text written out


@pytest.mark.parametrize("family", FAMILIES)
def test_control_tokens_typed_around_the_gap_are_characters(family):
    controls, want = FAMILIES[family]
    tokenizer = tokenizer_with(controls)
    typed = "".join(controls)
    ids = PromptEncoder(tokenizer).gap(BEFORE + typed, typed + AFTER)
    for control in controls:
        assert ids.count(tokenizer.convert_tokens_to_ids(control)) == want.count(control)


@pytest.mark.parametrize("family", FAMILIES)
def test_marks_of_files_and_gaps_end_a_text(family):
    controls, _ = FAMILIES[family]
    tokenizer = tokenizer_with(controls)
    assert PromptEncoder(tokenizer).end_ids() == set(tokenizer.convert_tokens_to_ids(controls))


def test_a_gap_at_the_end_of_a_file():
    tokenizer = tokenizer_with(FAMILIES["Qwen"][0])
    ids = PromptEncoder(tokenizer).ids(Request(BEFORE, 0, mode="fill-in-the-middle"))
    assert tokenizer.decode(ids) == f"<|fim_prefix|>{BEFORE}<|fim_suffix|><|fim_middle|>"


def code_llama():
    """A tokenizer that puts a blank in front of every text, as sentencepiece does, and a token in front of that."""
    letters = ["<s>", "<unk>", "▁", *dict.fromkeys(f"{BEFORE}{AFTER}".replace(" ", ""))]
    backend = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, [], unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", unk_token="<unk>")
    controls = ["▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"]
    tokenizer.add_tokens([AddedToken(control, special=True, normalized=False) for control in controls])
    return tokenizer


def test_the_text_behind_the_gap_gets_no_blank_of_its_own():
    tokenizer = code_llama()
    tokens = tokenizer.convert_ids_to_tokens(PromptEncoder(tokenizer).gap(BEFORE, AFTER))
    before, after = (text.replace(" ", "▁") for text in (BEFORE, AFTER))
    assert tokens == ["▁<PRE>", "▁", *before, "▁<SUF>", *after, "▁<MID>"]
    assert tokenizer.convert_tokens_to_ids("▁<EOT>") in PromptEncoder(tokenizer).end_ids()


def test_a_model_without_such_tokens_is_refused():
    with pytest.raises(BadRequest, match="completion mode"):
        PromptEncoder(tokenizer_with(["<fim_prefix>"])).gap(BEFORE, AFTER)
