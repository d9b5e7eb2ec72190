"""A draft may speak for a target only in the same words."""

from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from engine.models.errors import IncompatibleDraft
from engine.models.loaded_model import LoadedModel
from engine.models.pairing import check_pair

WORDS = [f"w{number}" for number in range(100)]


def model(name: str, words: list[str], vocabulary: int | None = None) -> LoadedModel:
    backend = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token=words[0]))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token=words[0])
    cpu = torch.device("cpu")
    return LoadedModel(
        name, torch.nn.Identity(), tokenizer, cpu, "float32", 64, vocabulary or len(words), frozenset({1})
    )


def test_same_words_in_other_sizes():
    check_pair(model("target", WORDS), model("draft", WORDS[:97]))
    check_pair(model("target", WORDS[:97]), model("draft", WORDS))


def test_padding_beyond_the_vocabulary_may_differ():
    target = model("target", [*WORDS, "pad1", "pad2"], vocabulary=100)
    check_pair(target, model("draft", [*WORDS, "other"], vocabulary=100))
    with pytest.raises(IncompatibleDraft, match="token 100"):
        check_pair(replace(target, vocabulary=102), model("draft", [*WORDS, "other"]))


def test_swapped_ids_are_named():
    swapped = WORDS.copy()
    swapped[5], swapped[6] = swapped[6], swapped[5]
    with pytest.raises(IncompatibleDraft, match="draft cannot draft for target: token 5 is 'w5' in one and 'w6'"):
        check_pair(model("target", WORDS), model("draft", swapped))
