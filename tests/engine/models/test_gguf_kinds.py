"""GGUF files that are no whole model, or one with stretched positions: refused in a sentence, or read as meant."""

import math

import gguf
import numpy as np
import pytest

from engine.models import conversion_process
from engine.models.checkpoint import open_checkpoint
from engine.models.ends import declared_ends
from engine.models.errors import UnsupportedModel, WrongFile
from engine.models.gguf_file import read_header
from engine.models.rotary import llama3_divisors
from tests.engine.models.conftest import HEADS, LAYERS, PADDED, VOCABULARY, WIDTH
from tests.engine.models.rewriting import Silent

PAIRS = WIDTH // HEADS // 2


def converted(path, tmp_path):
    folder = tmp_path / "converted"
    folder.mkdir()
    conversion_process._convert_gguf(path, folder, "float32", Silent())
    return folder


def bare(path, say=lambda writer: None, tensors=()):
    """A GGUF with hardly anything in it."""
    writer = gguf.GGUFWriter(path, "llama")
    say(writer)
    for name in tensors:
        writer.add_tensor(name, np.ones((4, 4), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("adapter", r"adapter \(LoRA\), which only changes the weights .* merge it"),
        ("imatrix", "importance matrix, .* name the model's own GGUF"),
        ("mmproj", "sees pictures; name the GGUF of the model itself"),
        ("something", "something and no model"),
    ],
)
def test_what_lies_beside_models(tmp_path, kind, said):
    path = bare(tmp_path / "file.gguf", lambda writer: writer.add_type(kind), ["blk.0.attn_q.weight"])
    with pytest.raises(UnsupportedModel, match=rf"file\.gguf holds .*{said}"):
        read_header(path)


def test_no_vocabulary(tmp_path):
    with pytest.raises(UnsupportedModel, match="holds no vocabulary, so it is no language model"):
        read_header(bare(tmp_path / "file.gguf", tensors=["blk.0.attn_q.weight"]))


def test_nothing_but_a_vocabulary(tmp_path):
    path = bare(tmp_path / "file.gguf", lambda writer: writer.add_token_list(["a", "b"]))
    with pytest.raises(UnsupportedModel, match="a vocabulary and no weights; name the GGUF of a model"):
        read_header(path)


def test_one_part_of_several(tiny_gguf):
    path = tiny_gguf(say=lambda writer: writer.add_uint16("split.count", 3))
    with pytest.raises(UnsupportedModel, match=r"one of 3 parts .*llama-gguf-split --merge"):
        read_header(path)


@pytest.mark.parametrize("architecture", ["bert", "nomic-bert", "clip"])
def test_encoders(tiny_gguf, architecture):
    with pytest.raises(UnsupportedModel, match="turns texts or pictures into vectors"):
        read_header(tiny_gguf(architecture=architecture))


@pytest.mark.parametrize(
    ("left_out", "named"),
    [
        (("token_embd.weight",), r"model\.embed_tokens\.weight is"),
        (("blk.1.ffn_up.weight",), r"model\.layers\.1\.mlp\.up_proj\.weight is"),
        (("output_norm.weight",), r"model\.norm\.weight is"),
        (("blk.0.attn_q.weight", "blk.0.attn_k.weight"), "and 1 more are"),
    ],
)
def test_missing_weights_are_named(tiny_gguf, tmp_path, left_out, named):
    with pytest.raises(WrongFile, match=rf"tiny\.gguf are not all there: .*{named} in none"):
        converted(tiny_gguf(without=left_out), tmp_path)


def test_a_header_with_more_layers_than_the_file(tiny_gguf, tmp_path):
    def say(writer):
        writer.kv_data[0]["llama.block_count"] = gguf.gguf_writer.GGUFValue(LAYERS + 1, gguf.GGUFValueType.UINT32)

    with pytest.raises(WrongFile, match=rf"model\.layers\.{LAYERS}\."):
        converted(tiny_gguf(say=say), tmp_path)


def test_weights_without_a_place_are_not_dropped(tiny_gguf, tmp_path):
    with pytest.raises(UnsupportedModel, match=r"no place for here, blk\.0\.attn_q\.bias first"):
        converted(tiny_gguf(extra={"blk.0.attn_q.bias": np.ones(WIDTH, dtype=np.float32)}), tmp_path)


def test_half_an_expert():
    assert conversion_process._half_experts({"blk.0.ffn_gate_exps.weight"}) == {"blk.0.ffn_up_exps.weight"}
    assert conversion_process._half_experts({"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight", "a"}) == set()


class TestIds:
    def test_every_end_that_the_file_names(self, tiny_gguf, tmp_path):
        path = tiny_gguf(say=lambda writer: writer.add_eot_token_id(3))
        ends = {3, VOCABULARY.index("<|im_end|>")}
        assert read_header(path).end_ids == ends
        assert declared_ends(converted(path, tmp_path)) == ends

    def test_an_id_that_no_token_has(self, tiny_gguf):
        with pytest.raises(
            UnsupportedModel, match=rf"names token {PADDED + 40} as its pad token, and holds {PADDED} tok"
        ):
            read_header(tiny_gguf("pad.gguf", say=lambda writer: writer.add_pad_token_id(PADDED + 40)))
        path = tiny_gguf("eot.gguf", say=lambda writer: writer.add_eot_token_id(PADDED))
        assert read_header(path).end_ids == {VOCABULARY.index("<|im_end|>")}

    def test_without_types_every_token_is_one(self, tiny_gguf):
        path = tiny_gguf(say=lambda writer: writer.kv_data[0].pop("tokenizer.ggml.token_type"))
        assert read_header(path).vocabulary == PADDED


class TestRotary:
    @pytest.fixture
    def scaling(self, tiny_gguf, tmp_path):
        def of(**how):
            return open_checkpoint(converted(tiny_gguf(**how), tmp_path)).config.rope_parameters

        return of

    def test_none(self, scaling):
        assert scaling()["rope_type"] == "default"

    def test_linear(self, scaling):
        def say(writer):
            writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            writer.add_rope_scaling_factor(4.0)

        said = scaling(say=say)
        assert (said["rope_type"], said["factor"], said["rope_theta"]) == ("linear", 4.0, 10_000.0)

    def test_yarn(self, scaling):
        def say(writer):
            writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
            writer.add_rope_scaling_factor(4.0)
            writer.add_rope_scaling_orig_ctx_len(64)

        said = scaling(say=say)
        assert (said["rope_type"], said["factor"], said["original_max_position_embeddings"]) == ("yarn", 4.0, 64)

    def test_frequencies_of_llama_3(self, scaling):
        divisors = np.array(llama3_divisors(10_000.0, PAIRS, 8.0, 2048), dtype=np.float32)
        assert 1 < divisors[-1] < 8 or divisors[-1] == 8
        said = scaling(extra={"rope_freqs.weight": divisors})
        assert (said["rope_type"], said["factor"], said["original_max_position_embeddings"]) == ("llama3", 8.0, 2048)

    def test_frequencies_that_change_nothing(self, scaling):
        assert scaling(extra={"rope_freqs.weight": np.ones(PAIRS, dtype=np.float32)})["rope_type"] == "default"

    def test_frequencies_of_nobody_known(self, scaling):
        with pytest.raises(UnsupportedModel, match=r"in a way \(rope_freqs\) that is not read"):
            scaling(extra={"rope_freqs.weight": np.array([1, 3, 2, 5], dtype=np.float32)})

    def test_other_kinds(self, scaling):
        with pytest.raises(UnsupportedModel, match=r"in a way \(longrope\)"):
            scaling(say=lambda writer: writer.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE))

    def test_the_divisors_are_those_of_transformers(self):
        from transformers import LlamaConfig
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        scaling = {
            "rope_type": "llama3",
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
            "rope_theta": 500_000.0,
        }
        config = LlamaConfig(hidden_size=512, num_attention_heads=8, rope_parameters=scaling)
        frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
        plain = [500_000.0 ** (-pair / 32) for pair in range(32)]
        ours = llama3_divisors(500_000.0, 32, 32.0, 8192)
        got = [a / b for a, b in zip(plain, frequencies.tolist(), strict=True)]
        assert all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(ours, got, strict=True))
