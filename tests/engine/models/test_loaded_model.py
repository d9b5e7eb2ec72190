"""What of a model's tokens becomes text."""

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.models.loaded_model import LoadedModel


def loaded(*special: str) -> LoadedModel:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")
    tokenizer.add_special_tokens({"additional_special_tokens": [AddedToken(text, special=True) for text in special]})
    return LoadedModel("m", torch.nn.Module(), tokenizer, torch.device("cpu"), "float32", 10, 300, frozenset())


@pytest.mark.parametrize("marks", [("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>")])
def test_the_marks_of_a_thought_stay_in_the_text_though_they_are_control_tokens(marks: tuple[str, str]) -> None:
    model = loaded(*marks, "[INST]")
    text = f"[INST]{marks[0]}hm, é{marks[1]}\nx = 1<|end|>"
    assert model.decode(model.tokenizer(text).input_ids) == f"{marks[0]}hm, é{marks[1]}\nx = 1"


def test_other_control_tokens_are_no_text() -> None:
    model = loaded("[INST]")
    assert model.decode(model.tokenizer("[INST]x = 1<|end|>").input_ids) == "x = 1"
