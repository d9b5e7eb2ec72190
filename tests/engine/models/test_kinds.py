"""What is no model that writes text is told from one that is, in a sentence that says what to do."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.models.checkpoint import open_checkpoint
from engine.models.errors import UnsupportedModel, WrongFile
from engine.models.preparation import prepare
from tests.engine.models.rewriting import rewrite


def prepare_float(folder):
    """Found before torch is asked for anything: float precisions are loaded from the folder as it is."""
    return prepare(
        str(folder), precision="float32", device="cpu", progress=lambda event: None, cancelled=lambda: False
    ).folder


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "consolidated.00.pth"])
def test_weights_that_could_run_programs(tiny_folder, home, name):
    folder = tiny_folder()
    (folder / "model.safetensors").rename(folder / name)
    with pytest.raises(
        WrongFile, match=rf"are in {name}, which Bassline does not read, because .* run any program; ch"
    ):
        prepare_float(folder)


@pytest.mark.parametrize("name", ["tf_model.h5", "flax_model.msgpack", "model.onnx"])
def test_weights_of_other_frameworks(tiny_folder, home, name):
    folder = tiny_folder()
    (folder / "model.safetensors").rename(folder / name)
    with pytest.raises(
        WrongFile, match=rf"are in {name}, which Bassline does not read; choose a version with safetens"
    ):
        prepare_float(folder)


def test_parts_without_their_index(tiny_folder, home):
    folder = tiny_folder()
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    with pytest.raises(WrongFile, match=r"parts of a model, but not model\.safetensors\.index\.json"):
        prepare_float(folder)


def test_weights_by_another_name(tiny_folder, home):
    folder = tiny_folder()
    (folder / "model.safetensors").rename(folder / "consolidated.safetensors")
    with pytest.raises(WrongFile, match=r"if consolidated\.safetensors holds all"):
        prepare_float(folder)


def test_weights_and_an_index_of_others(tiny_folder, home):
    folder = tiny_folder()
    shutil.copy(folder / "model.safetensors", folder / "other.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "other.safetensors"}}))
    with pytest.raises(WrongFile, match="remove what does not belong"):
        prepare_float(folder)


@pytest.mark.parametrize("config", [True, False], ids=["with a config", "without"])
def test_an_adapter(tiny_folder, home, config):
    folder = tiny_folder()
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "some/base"}')
    if not config:
        (folder / "config.json").unlink()
    with pytest.raises(WrongFile, match=r"an adapter \(LoRA\), which only changes the weights of some/base; merge it"):
        prepare_float(folder)


def test_a_folder_of_one_gguf(tmp_path, home):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "tiny.Q4_0.gguf").write_bytes(b"GGUF")
    with pytest.raises(WrongFile, match=r"name the GGUF file itself: tiny\.Q4_0\.gguf"):
        prepare_float(tmp_path / "files")


@pytest.mark.parametrize("file", ["modules.json", "config_sentence_transformers.json"])
def test_an_embedding_model(tiny_folder, home, file):
    folder = tiny_folder()
    (folder / file).write_text("[]")
    with pytest.raises(UnsupportedModel, match="tiny is an embedding model, which turns texts into vectors; choose"):
        prepare_float(folder)


@pytest.mark.parametrize(
    ("architecture", "said"),
    [
        ("LlamaForSequenceClassification", "a label or a score"),
        ("InternLM2ForRewardModel", "gives answers a score"),
        ("Qwen2ForRewardModeling", "gives answers a score"),
        ("BertForMaskedLM", "masked words"),
        ("LlamaForTokenClassification", "labels words"),
        ("LlamaForQuestionAnswering", "finds answers"),
    ],
)
def test_other_tasks(tiny_folder, home, architecture, said):
    folder = rewrite(tiny_folder(), architectures=[architecture])
    with pytest.raises(UnsupportedModel, match=rf"tiny is a {architecture}: it .*{said}.*; choose"):
        prepare_float(folder)


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (
            "bert",
            {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 48},
            "an enc",
        ),
        ("roberta", {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}, "an encoder, which"),
        ("bart", {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1}, "an encoder with a decoder"),
    ],
)
def test_encoders_by_what_their_config_leaves_to_defaults(tmp_path, home, kind, options, said):
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.for_model(kind, vocab_size=64, **options)
    AutoModel.from_config(config).save_pretrained(tmp_path / "mine")
    said_in_file = json.loads((tmp_path / "mine" / "config.json").read_text())
    said_in_file.pop("is_encoder_decoder", None)
    (tmp_path / "mine" / "config.json").write_text(json.dumps(said_in_file))
    with pytest.raises(UnsupportedModel, match=rf"mine is a {kind} model, {said}.*; choose"):
        open_checkpoint(tmp_path / "mine")


def test_an_encoder_decoder_that_says_so(tiny_folder, home):
    with pytest.raises(UnsupportedModel, match="tiny is a t5 model, an encoder with a decoder"):
        prepare_float(rewrite(tiny_folder(), model_type="t5", is_encoder_decoder=True, architectures=None))


QUANTISED = {
    "bitsandbytes": (
        "weight.absmax",
        torch.uint8,
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        r"bitsandbytes \(4 bits\)",
    ),
    "GPTQ": ("qweight", torch.int32, {"quant_method": "gptq", "bits": 4}, r"GPTQ \(4 bits\)"),
    "AWQ": ("qweight", torch.int32, {"quant_method": "awq", "bits": 4}, r"AWQ \(4 bits\)"),
    "packed": (
        "weight_packed",
        torch.int32,
        {"quant_method": "compressed-tensors", "format": "pack-quantized"},
        "compressed-tensors .pack-q",
    ),
    "another": ("codes", torch.int16, {"quant_method": "aqlm"}, "aqlm"),
    "silent GPTQ": ("qweight", torch.int32, None, "GPTQ or AWQ"),
    "silent": ("weight", torch.uint8, None, "a method that its config does not name"),
    "rotated": (
        "weight",
        torch.float8_e4m3fn,
        {"quant_method": "compressed-tensors", "transform_config": {"a": 1}},
        "compressed",
    ),
}


@pytest.mark.parametrize(("name", "dtype", "declared", "label"), QUANTISED.values(), ids=QUANTISED.keys())
def test_quantised_weights_that_cannot_be_made_whole(tiny_folder, home, name, dtype, declared, label):
    def quantised(tensors):
        return {
            key.replace("weight", name) if "_proj" in key else key: t.to(dtype) if "_proj" in key else t
            for key, t in tensors.items()
        }

    folder = rewrite(tiny_folder(), quantised, quantization_config=declared)
    with pytest.raises(
        UnsupportedModel, match=rf"tiny is quantised with {label}.*which Bassline does not read; choose a"
    ):
        prepare_float(folder)


def test_weights_of_mlx(tiny_folder, home):
    folder = tiny_folder()
    weights = load_file(folder / "model.safetensors")
    packed = {f"{name}.scales" if "_proj" in name else name: t.to(torch.uint8) for name, t in weights.items()}
    save_file(packed, folder / "model.safetensors", {"format": "mlx"})
    with pytest.raises(UnsupportedModel, match="quantised with MLX, which"):
        prepare_float(rewrite(folder, quantization={"group_size": 64, "bits": 4}))


@pytest.mark.parametrize("text", ["{", "", "[1]", "\ufeff{}"])
@pytest.mark.parametrize("file", ["generation_config.json", "config.json", "tokenizer_config.json"])
def test_a_file_beside_the_weights_that_cannot_be_read_is_named(tiny_folder, home, file, text):
    folder = tiny_folder()
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(WrongFile, match=rf"{file} (is no JSON|holds no JSON object).*; fetch it again"):
        prepare_float(folder)
