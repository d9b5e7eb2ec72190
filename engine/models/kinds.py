"""Models that do not write text, recognized by their config before anything is loaded. No torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.models.errors import UnsupportedModel

_EMBEDDING_FILES = ("modules.json", "config_sentence_transformers.json", "1_Pooling")
_TASKS = {
    "ForSequenceClassification": "gives texts a label or a score",
    "ForRewardModeling": "gives answers a score",
    "RewardModel": "gives answers a score",
    "ForTokenClassification": "labels words",
    "ForQuestionAnswering": "finds answers in a text",
    "ForMultipleChoice": "chooses between answers",
    "ForMaskedLM": "fills in masked words",
    "ForNextSentencePrediction": "compares sentences",
    "ForImageClassification": "labels pictures",
    "ForAudioClassification": "labels sounds",
    "ForCTC": "writes down speech",
    "ForSpeechSeq2Seq": "writes down speech",
    "ForTextEncoding": "turns texts into vectors",
    "EncoderModel": "turns texts into vectors",
}


def check_kind(name: str, folder: Path, config: Mapping[str, Any]) -> None:
    """Raises UnsupportedModel for a model that is not made to go on writing a text."""
    if any((folder / file).exists() for file in _EMBEDDING_FILES):
        raise UnsupportedModel(f"{name} is an embedding model, which turns texts into vectors; choose another.")
    architectures = [str(one) for one in config.get("architectures") or ()]
    for architecture in architectures:
        task = next((task for suffix, task in _TASKS.items() if architecture.endswith(suffix)), "")
        if task:
            raise UnsupportedModel(f"{name} is a {architecture}: it {task}; choose a model that writes text.")
    if config.get("is_encoder_decoder") is True:
        raise encoder_decoder(name, config.get("model_type"))


def encoder_decoder(name: str, kind: object) -> UnsupportedModel:
    """For models that read one text and write another."""
    return UnsupportedModel(
        f"{name} is a {kind} model, an encoder with a decoder, and Bassline runs decoders alone; "
        "choose a model such as Llama or Qwen."
    )


def encoder(name: str, kind: object) -> UnsupportedModel:
    """For models that see a text's end while they read its beginning."""
    return UnsupportedModel(
        f"{name} is a {kind} model, an encoder, which turns texts into vectors; choose a model that writes text."
    )
