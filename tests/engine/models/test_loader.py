"""Names to loaded models: converted once, whole or not at all, in the precision that was asked for."""

import json
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch
from transformers import AutoTokenizer

from benchmarks.int8_quality import compare
from engine.contract import BadRequest, Loading, Request
from engine.models import preparation
from engine.models.errors import (
    DownloadFailed,
    UnsupportedModel,
    WrongFile,
)
from engine.models.loader import LoadedModel, load
from engine.models.preparation import prepare
from kernels.int8_linear import Int8Linear, available
from tests.engine.models.conftest import PADDED, VOCABULARY

needs_int8 = pytest.mark.skipif(not available(), reason="this torch has no FBGEMM")


def quiet(_: Loading) -> None:
    pass


def never() -> bool:
    return False


def load_quietly(name: object, precision: str = "auto", **options) -> LoadedModel:
    return load(str(name), precision=precision, device="cpu", progress=quiet, cancelled=never, **options)


def logits(model: LoadedModel) -> torch.Tensor:
    with torch.inference_mode():
        return model.module(torch.arange(60)[None]).logits[0]


@needs_int8
class TestGguf:
    @pytest.mark.parametrize("tied", [False, True])
    def test_int8_is_close_to_float32(self, tiny_gguf, home, tied):
        path = tiny_gguf("Datei mit 空白 .gguf", tied=tied)
        exact, int8 = load_quietly(path, "float32"), load_quietly(path, "int8")
        assert exact.precision == "float32"
        assert int8.precision == "int8"
        assert not any(isinstance(module, torch.nn.Linear) for module in int8.module.modules())
        assert isinstance(int8.module.lm_head, Int8Linear)
        error = (logits(int8) - logits(exact)).norm() / logits(exact).norm()
        assert 0 < error < 0.1

    def test_what_the_sampler_reads(self, tiny_gguf, home):
        model = load_quietly(tiny_gguf("small.gguf"))
        assert model.name == "small"
        assert model.precision == "int8"
        assert model.device == torch.device("cpu")
        assert model.context == 256
        assert model.vocabulary == len(VOCABULARY) < PADDED
        assert model.eos_ids == {VOCABULARY.index("<|im_end|>"), VOCABULARY.index("<|endoftext|>")}
        assert model.tokenizer.eos_token == "<|im_end|>"
        assert model.tokenizer.bos_token == "<|endoftext|>"
        assert model.tokenizer.decode(model.encode(Request("a , b .", 0, mode="completion"))) == "a , b ."
        assert model.module.config._attn_implementation == "eager"
        assert not model.module.training
        assert not any(parameter.requires_grad for parameter in model.module.parameters())
        assert model.decode(model.encode(Request("héllo <|im_end|>", 0, mode="completion"))) == "héllo <|im_end|>"

    def test_second_start_converts_nothing(self, tiny_gguf, home, monkeypatch):
        path = tiny_gguf()
        first = logits(load_quietly(path))
        monkeypatch.setattr(preparation, "convert", lambda *_: pytest.fail("converted again"))
        assert torch.equal(logits(load_quietly(path)), first)

    def test_a_changed_file_is_converted_again(self, tiny_gguf, home):
        path = tiny_gguf()
        old = prepare(str(path), device="cpu", progress=quiet, cancelled=never)
        path.touch()
        new = prepare(str(path), device="cpu", progress=quiet, cancelled=never)
        assert new.folder != old.folder

    def test_a_damaged_copy_is_removed_and_made_again(self, tiny_gguf, home):
        path = tiny_gguf()
        folder = prepare(str(path), device="cpu", progress=quiet, cancelled=never).folder
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-10])
        with pytest.raises(WrongFile, match="start again"):
            load_quietly(path)
        assert load_quietly(path).precision == "int8"


class TestFolder:
    def test_floats_load_as_they_are(self, tiny_folder, home):
        folder = tiny_folder("モデル")
        model = load_quietly(folder, "float32")
        assert not (home / "models" / "converted").exists()
        assert model.vocabulary == len(model.tokenizer) < PADDED
        assert model.eos_ids >= {7, 256}
        assert load_quietly(folder, "bfloat16").module.dtype == torch.bfloat16

    @needs_int8
    def test_int8_is_converted(self, tiny_folder, home):
        folder = tiny_folder()
        exact, int8 = load_quietly(folder, "float32"), load_quietly(folder)
        assert int8.precision == "int8"
        assert int8.vocabulary == exact.vocabulary
        assert int8.eos_ids == exact.eos_ids
        assert 0 < (logits(int8) - logits(exact)).norm() / logits(exact).norm() < 0.1

    @needs_int8
    def test_a_converted_folder_is_a_model_by_itself(self, tiny_folder, home):
        converted = prepare(str(tiny_folder()), device="cpu", progress=quiet, cancelled=never).folder
        assert load_quietly(converted).precision == "int8"
        with pytest.raises(WrongFile, match="int8"):
            load_quietly(converted, "float32")

    def test_weights_cut_off(self, tiny_folder, home):
        folder = tiny_folder()
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
        with pytest.raises(WrongFile, match="incomplete"):
            load_quietly(folder)

    def test_unknown_architecture(self, tiny_folder, home):
        folder = tiny_folder()
        (folder / "config.json").write_text('{"model_type": "imaginary"}')
        with pytest.raises(UnsupportedModel, match="imaginary"):
            load_quietly(folder, "float32")


class TestIds:
    """Token ids as tokenizer, config and weights each have their own idea of them."""

    def test_a_tokenizer_that_leaves_out_ids_in_between(self, tiny_folder, home):
        folder = tiny_folder()
        said = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        last = max(said["model"]["vocab"], key=said["model"]["vocab"].get)
        said["model"]["vocab"][last] = PADDED - 3
        (folder / "tokenizer.json").write_text(json.dumps(said), encoding="utf-8")
        model = load_quietly(folder, "float32")
        assert len(model.tokenizer) < model.vocabulary == PADDED - 2
        assert max(model.encode(Request(last, 0, mode="completion"))) < model.vocabulary

    def test_a_tokenizer_that_knows_more_than_the_weights(self, tiny_folder, home):
        folder = tiny_folder()
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens([f"<new{number}>" for number in range(20)])
        tokenizer.chat_template = "{{ messages[0]['content'] }}<new19>"
        tokenizer.save_pretrained(folder)
        model = load_quietly(folder, "float32")
        assert model.vocabulary == PADDED < len(tokenizer)
        assert model.encode(Request("harmless", 0, mode="completion"))
        last = tokenizer.convert_tokens_to_ids("<new19>")
        with pytest.raises(BadRequest, match=rf"token '<new19>' has the number {last}, .* end at {PADDED - 1};"):
            model.encode(Request("harmless", 0, mode="chat", system=""))

    def test_only_the_config_says_what_ends_a_text(self, tiny_folder, home):
        folder = tiny_folder()
        (folder / "generation_config.json").unlink()
        assert load_quietly(folder, "float32").eos_ids >= {7, 256}
        assert load_quietly(folder, "int8").eos_ids >= {7, 256}

    def test_what_nobody_says_is_no_end(self, tiny_folder, home):
        """Transformers has a default for it, 2, which is a letter here."""
        folder = tiny_folder()
        (folder / "generation_config.json").unlink()
        config = json.loads((folder / "config.json").read_text())
        del config["eos_token_id"]
        (folder / "config.json").write_text(json.dumps(config))
        for precision in ("float32", "int8"):
            assert 2 not in load_quietly(folder, precision).eos_ids

    def test_a_copy_is_made_again_when_a_file_beside_the_weights_changes(self, tiny_folder, home):
        folder = tiny_folder()
        before = prepare(str(folder), precision="int8", device="cpu", progress=quiet, cancelled=never).folder
        (folder / "generation_config.json").write_text('{"eos_token_id": 11}')
        after = prepare(str(folder), precision="int8", device="cpu", progress=quiet, cancelled=never).folder
        assert after != before


class TestHubCache:
    """Repositories that this or another program has downloaded before."""

    @pytest.fixture
    def cached(self, tiny_folder, tmp_path, monkeypatch):
        def put(repository: str) -> Path:
            hub = tmp_path / "hub"
            monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(hub))
            folder = hub / f"models--{repository.replace('/', '--')}"
            (folder / "refs").mkdir(parents=True)
            (folder / "refs" / "main").write_text("abc")
            (folder / "snapshots").mkdir()
            return tiny_folder().rename(folder / "snapshots" / "abc")

        return put

    def test_by_name_without_the_network(self, cached, home):
        cached("some/one")
        assert load_quietly("some/one", "float32", offline=True).vocabulary > 0

    def test_one_with_weights_missing_does_not_count(self, cached, home):
        (cached("some/one") / "model.safetensors").unlink()
        with pytest.raises(DownloadFailed, match="not on this machine"):
            load_quietly("some/one", "float32", offline=True)

    def test_a_gpu_prefers_safetensors_to_a_quantised_file(self, cached, home, monkeypatch):
        folder = cached("HuggingFaceTB/SmolLM2-135M-Instruct")
        monkeypatch.setattr("engine.backends.cuda.Cuda.why_not", lambda _: "")  # nothing is loaded here
        ready = prepare("smollm2", device="cuda", offline=True, progress=quiet, cancelled=never)
        assert (ready.folder, ready.precision) == (folder, "bfloat16")

    @needs_int8
    def test_a_cpu_makes_do_with_safetensors_where_only_they_are_here(self, cached, home):
        cached("HuggingFaceTB/SmolLM2-135M-Instruct")
        ready = prepare("smollm2", device="cpu", offline=True, progress=quiet, cancelled=never)
        assert ready.folder.name.startswith("HuggingFaceTB--SmolLM2-135M-Instruct-int8-")


@pytest.mark.real_model
class TestSmallModel:
    def test_loads_by_name_without_the_network(self, small_model):
        model = load_quietly(small_model, offline=True)
        assert (model.name, model.precision, model.context) == ("smollm2-135m", "int8", 8192)
        assert model.eos_ids >= {0, 2}
        assert model.decode(model.eos_ids) == ""  # nothing that an answer may hold ends it

    def test_int8_stays_near_the_perplexity_of_float32(self, small_model_cache, loaded_small_model, monkeypatch):
        """So small a model feels rounding most, 4 % here: the default model's gate is in docs/models.md."""
        monkeypatch.setenv("BASSLINE_HOME", str(small_model_cache))
        exact = load_quietly(loaded_small_model.name, "float32")
        quality = compare(loaded_small_model, exact, modules=("heapq", "statistics"))
        print(f"perplexity {quality.rise:+.1%}, same likeliest token {quality.agreement:.1%}")
        assert 0 < quality.rise < 0.12
        assert quality.agreement > 0.8
