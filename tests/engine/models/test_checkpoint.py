"""Whatever a folder holds: every weight of the model comes from its files, or the model is refused."""

import pytest
import torch

from engine.models.checkpoint import dequantised, open_checkpoint
from engine.models.errors import UnsupportedModel, WrongFile
from kernels.int8_linear import available
from tests.engine.models.conftest import LAYERS, PADDED, WIDTH
from tests.engine.models.rewriting import far, float_logits, int8_logits, rewrite, under, without

READERS = [
    pytest.param(float_logits, id="float32"),
    pytest.param(int8_logits, id="int8", marks=pytest.mark.skipif(not available(), reason="no FBGEMM")),
]
PREFIXES = {
    "compiled": lambda name: f"_orig_mod.{name}",
    "distributed": lambda name: f"module.{name}",
    "both": lambda name: f"module._orig_mod.{name}",
    "layers compiled one by one": lambda name: name.replace(".mlp.", "._orig_mod.mlp."),
    "sharded": lambda name: f"_fsdp_wrapped_module.{name.replace('.mlp.', '.mlp._fsdp_wrapped_module.')}",
    "a model around the model": lambda name: f"model.{name}",
    "a trainer's": lambda name: f"policy.actor.{name}",
    "an adapter's, merged": lambda name: f"base_model.model.{name}",
}


@pytest.mark.parametrize("read", READERS)
class TestMissing:
    @pytest.mark.parametrize(
        ("ends", "named"),
        [
            (("lm_head.weight",), r"lm_head\.weight is in none"),
            (("layers.1.mlp.down_proj.weight",), r"model\.layers\.1\.mlp\.down_proj\.weight is in none"),
            (("model.norm.weight",), r"model\.norm\.weight is in none"),
            (("embed_tokens.weight",), r"model\.embed_tokens\.weight is in none"),
            (("layernorm.weight",), rf"and {2 * LAYERS - 1} more are in none"),
        ],
    )
    def test_what_is_missing_is_named(self, tiny_folder, read, ends, named):
        with pytest.raises(WrongFile, match=rf"weights of tiny are not all there: .*{named}"):
            read(rewrite(tiny_folder(), without(*ends)))

    def test_a_config_with_more_layers_than_the_file(self, tiny_folder, read):
        with pytest.raises(WrongFile, match=rf"model\.layers\.{LAYERS}\."):
            read(rewrite(tiny_folder(), num_hidden_layers=LAYERS + 1))

    def test_names_that_mean_nothing_here(self, tiny_folder, read):
        with pytest.raises(WrongFile, match=r"the files name theirs like blk\.embed_tokens"):
            read(rewrite(tiny_folder(), under(lambda name: name.replace("model.", "blk.").replace("proj", "p"))))

    def test_neither_head_nor_embedding_of_a_tied_model(self, tiny_folder, read):
        with pytest.raises(WrongFile, match="and 1 more are in none"):
            read(rewrite(tiny_folder(), without("lm_head.weight", "embed_tokens.weight"), tie_word_embeddings=True))


@pytest.mark.parametrize("read", READERS)
class TestNames:
    @pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES.keys())
    def test_a_prefix_that_a_program_left_is_taken_off(self, tiny_folder, read, prefix):
        plain = float_logits(tiny_folder("plain"))
        assert far(read(rewrite(tiny_folder(), under(prefix))), plain) < (1e-6 if read is float_logits else 0.1)

    def test_a_model_saved_without_its_head_is_whole_where_they_are_tied(self, tiny_folder, read):
        tied = float_logits(rewrite(tiny_folder("plain"), without("lm_head.weight"), tie_word_embeddings=True))
        bare = rewrite(tiny_folder(), without("lm_head.weight"), tie_word_embeddings=True)
        rewrite(bare, under(lambda name: name.removeprefix("model.")))
        assert far(read(bare), tied) < (1e-6 if read is float_logits else 0.1)

    def test_two_models_in_one_file_are_not_chosen_from(self, tiny_folder, read):
        def twice(tensors):
            return {f"{side}.{name}": t.clone() for side in ("student", "teacher") for name, t in tensors.items()}

        with pytest.raises(WrongFile, match="not all there"):
            read(rewrite(tiny_folder(), twice))

    def test_another_model_beside_the_model_is_left_out(self, tiny_folder, read):
        def averaged(tensors):
            return tensors | {f"ema.{name}": torch.zeros_like(tensor) for name, tensor in tensors.items()}

        plain = float_logits(tiny_folder("plain"))
        assert far(read(rewrite(tiny_folder(), averaged)), plain) < (1e-6 if read is float_logits else 0.1)


@pytest.mark.parametrize("read", READERS)
class TestTies:
    """The head that a file holds is the model's head, in every precision."""

    def test_a_head_of_its_own_although_the_config_ties_it(self, tiny_folder, read):
        untied = float_logits(tiny_folder("plain"))
        assert far(read(rewrite(tiny_folder(), tie_word_embeddings=True)), untied) < 0.1

    def test_the_config_then_says_so_too(self, tiny_folder, read):
        """Whoever reads it next, an older transformers too, must not tie what the files hold apart."""
        checkpoint = open_checkpoint(rewrite(tiny_folder(), tie_word_embeddings=True))
        assert not checkpoint.config.tie_word_embeddings
        assert not checkpoint.model.config.tie_word_embeddings

    def test_the_same_head_twice(self, tiny_folder, read):
        def same(tensors):
            return tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"].clone()}

        plain = float_logits(rewrite(tiny_folder("plain"), same))
        assert far(read(rewrite(tiny_folder(), same, tie_word_embeddings=True)), plain) < 0.1

    def test_only_the_head_is_stored(self, tiny_folder, read):
        def same(tensors):
            return tensors | {"model.embed_tokens.weight": tensors["lm_head.weight"].clone()}

        plain = float_logits(rewrite(tiny_folder("plain"), same))
        only = rewrite(tiny_folder(), without("embed_tokens.weight"), tie_word_embeddings=True)
        assert far(read(only), plain) < 0.1

    @pytest.mark.parametrize("architecture", ["opt", "gpt2", "gpt_neox"])
    def test_heads_and_embeddings_by_other_names(self, tmp_path, read, architecture):
        from transformers import AutoConfig, AutoModelForCausalLM

        options = {
            "opt": {"hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
            | {"word_embed_proj_dim": 32},
            "gpt2": {"n_embd": 32, "n_layer": 1, "n_head": 4, "bos_token_id": 1, "eos_token_id": 2},
            "gpt_neox": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4},
        }[architecture]
        config = AutoConfig.for_model(architecture, vocab_size=64, tie_word_embeddings=True, **options)
        torch.manual_seed(1)
        stock = AutoModelForCausalLM.from_config(config).eval()
        for parameter in stock.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.25)
        stock.save_pretrained(tmp_path / "other")
        byte_tokenizer().save_pretrained(tmp_path / "other")
        from tests.engine.models.rewriting import IDS

        with torch.inference_mode():
            want = stock(IDS).logits[0]
        assert far(read(tmp_path / "other"), want) < (1e-5 if read is float_logits else 0.15)


def byte_tokenizer():
    from tests.engine.models.test_chat import byte_tokenizer

    return byte_tokenizer()


@pytest.mark.parametrize("read", READERS)
class TestUnexpected:
    @pytest.mark.parametrize(
        "extra",
        [
            {"model.layers.0.self_attn.q_proj.bias": (WIDTH,)},
            {"model.layers.1.self_attn.q_norm.weight": (WIDTH // 4,)},
            {"model.layers.2.input_layernorm.weight": (WIDTH,)},
            {"model.norm.bias": (WIDTH,)},
            {"lm_head.bias": (PADDED,)},
        ],
        ids=lambda extra: next(iter(extra)),
    )
    def test_weights_that_the_config_has_no_place_for_are_refused(self, tiny_folder, read, extra):
        (name,) = extra
        folder = rewrite(tiny_folder(), lambda tensors: tensors | {n: torch.ones(s) for n, s in extra.items()})
        with pytest.raises(UnsupportedModel, match=rf"no place, {name} first"):
            read(folder)

    def test_an_adapter_that_is_not_merged(self, tiny_folder, read):
        extra = {"model.layers.0.self_attn.q_proj.lora_A.weight": torch.ones(2, WIDTH)}
        with pytest.raises(UnsupportedModel, match="an adapter that is not merged"):
            read(rewrite(tiny_folder(), lambda tensors: tensors | extra))

    def test_what_serves_another_purpose_is_left_out(self, tiny_folder, read):
        extra = {
            "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
            "v_head.summary.weight": torch.ones(1, WIDTH),
            "visual.blocks.0.attn.qkv.weight": torch.ones(8, 8),
            "mtp.layers.0.mlp.up_proj.weight": torch.ones(8, 8),
        }
        plain = float_logits(tiny_folder("plain"))
        got = read(rewrite(tiny_folder(), lambda tensors: tensors | extra))
        assert far(got, plain) < (1e-6 if read is float_logits else 0.1)

    def test_another_shape_is_told_in_numbers(self, tiny_folder, read):
        with pytest.raises(UnsupportedModel, match=r"mlp\.\w+\.weight is .* in the file and .* by config\.json"):
            read(rewrite(tiny_folder(), intermediate_size=80))


@pytest.mark.parametrize("read", READERS)
class TestFp8:
    """Weights as 8-bit floats with scales are made whole: number times scale."""

    @staticmethod
    def scaled(by, suffix="_scale_inv", keep=True, whole=False):
        """``whole``: what the quantised weights mean, as floats."""

        def change(tensors):
            torch.manual_seed(0)
            made = {}
            for name, tensor in tensors.items():
                if not name.endswith("_proj.weight"):
                    made[name] = tensor
                    continue
                scale = by(tensor)
                numbers = (tensor / dequantised(torch.ones_like(tensor), scale, None, (16, 16))).to(torch.float8_e4m3fn)
                made[name] = dequantised(numbers, scale, None, (16, 16)) if whole else numbers
                if keep and not whole:
                    made[name + suffix] = scale
            return made

        return change

    @pytest.mark.parametrize(
        ("by", "suffix", "declared"),
        [
            (
                lambda t: torch.rand(-(-t.shape[0] // 16), -(-t.shape[1] // 16)) / 50 + 0.01,
                "_scale_inv",
                {"quant_method": "fp8", "weight_block_size": [16, 16]},
            ),
            (lambda t: torch.tensor(0.02), "_scale", {"quant_method": "fp8", "activation_scheme": "static"}),
            (lambda t: torch.rand(t.shape[0], 1) / 50 + 0.01, "_scale", {"quant_method": "fbgemm_fp8"}),
            (
                lambda t: torch.rand(t.shape[0], 1) / 50 + 0.01,
                "_scale",
                {"quant_method": "compressed-tensors", "format": "float-quantized"},
            ),
            (lambda t: torch.tensor([0.02]), "_scale", None),
        ],
        ids=["blocks", "tensor", "rows", "compressed-tensors", "not declared"],
    )
    def test_it_is_read_with_its_scales(self, tiny_folder, read, by, suffix, declared):
        meant = float_logits(rewrite(tiny_folder("meant"), self.scaled(by, whole=True)))
        folder = rewrite(tiny_folder(), self.scaled(by, suffix), quantization_config=declared)
        assert far(read(folder), meant) < (1e-6 if read is float_logits else 0.1)

    def test_without_its_scales_it_is_refused(self, tiny_folder, read):
        declared = {"quant_method": "fp8", "weight_block_size": [16, 16]}
        folder = rewrite(tiny_folder(), self.scaled(lambda t: torch.tensor(0.02), keep=False))
        with pytest.raises(UnsupportedModel, match=r"scale of model\.layers\.0\.\S+ is not in its files"):
            read(rewrite(folder, quantization_config=declared))

    def test_a_scale_of_another_shape_is_refused(self, tiny_folder, read):
        def odd(tensors):
            made = self.scaled(lambda t: torch.tensor(0.02))(tensors)
            return {name: torch.ones(5, 7) if name.endswith("_scale_inv") else t for name, t in made.items()}

        with pytest.raises(UnsupportedModel, match="does not fit it"):
            read(rewrite(tiny_folder(), odd, quantization_config={"quant_method": "fp8"}))

    def test_numbers_of_eight_bits_without_any_scale_are_what_they_say(self, tiny_folder, read):
        def cast(tensors):
            return {n: t.to(torch.float8_e4m3fn) if n.endswith("_proj.weight") else t for n, t in tensors.items()}

        plain = float_logits(tiny_folder("plain"))
        assert far(read(rewrite(tiny_folder(), cast)), plain) < 0.25  # which is FP8's own

    def test_what_a_config_says_of_weights_that_are_floats_again_is_nothing(self, tiny_folder, read):
        plain = float_logits(tiny_folder("plain"))
        folder = rewrite(tiny_folder(), quantization_config={"quant_method": "gptq", "bits": 4})
        assert far(read(folder), plain) < 0.1

    def test_integers_with_scales_and_zero_points(self, tiny_folder, read):
        def integers(tensors):
            made = {}
            for name, tensor in tensors.items():
                if not name.endswith("_proj.weight"):
                    made[name] = tensor
                    continue
                scale = tensor.abs().amax(1, keepdim=True) / 100
                made[name] = (tensor / scale + 7).round().to(torch.int8)
                made |= {name + "_scale": scale, name + "_zero_point": torch.full_like(scale, 7, dtype=torch.int8)}
            return made

        declared = {"quant_method": "compressed-tensors", "format": "int-quantized"}
        plain = float_logits(tiny_folder("plain"))
        assert far(read(rewrite(tiny_folder(), integers, quantization_config=declared)), plain) < 0.1


class TestDequantised:
    WEIGHT = torch.arange(1.0, 25.0).reshape(4, 6)

    @pytest.mark.parametrize(
        ("scale", "block", "want"),
        [
            (torch.tensor(2.0), None, WEIGHT * 2),
            (torch.tensor([2.0]), None, WEIGHT * 2),
            (torch.tensor([1.0, 2.0, 3.0, 4.0]), None, WEIGHT * torch.tensor([[1.0], [2.0], [3.0], [4.0]])),
            (torch.tensor([[1.0, 2.0]]), (4, 4), WEIGHT * torch.tensor([1.0, 1.0, 1.0, 1.0, 2.0, 2.0])),
            (torch.tensor([[1.0, 2.0]]), None, WEIGHT * torch.tensor([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])),
        ],
    )
    def test_by_all_row_and_block(self, scale, block, want):
        assert torch.equal(dequantised(self.WEIGHT, scale, None, block), want)

    def test_each_expert_for_itself(self):
        experts = torch.ones(3, 4, 6)
        assert dequantised(experts, torch.tensor([1.0, 2.0, 3.0]), None, None)[:, 0, 0].tolist() == [1, 2, 3]
        blocks = torch.arange(1.0, 7.0).reshape(3, 2, 1)
        assert dequantised(experts, blocks, None, (2, 6))[:, ::2, 0].tolist() == [[1, 2], [3, 4], [5, 6]]

    @pytest.mark.parametrize("scale", [torch.ones(3, 4), torch.ones(4, 6, dtype=torch.uint8), torch.ones(5)])
    def test_no_guess_at_other_shapes(self, scale):
        with pytest.raises(ValueError):
            dequantised(self.WEIGHT, scale, None, None)


def test_an_expert_that_is_missing(tmp_path):
    """Transformers joins experts as it loads them: also there nothing is made up."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from tests.engine.sampler.tiny import GLU

    config = AutoConfig.for_model("mixtral", **GLU, vocab_size=64, num_local_experts=4, num_experts_per_tok=2)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "moe")
    whole = open_checkpoint(tmp_path / "moe")
    assert whole.load(torch.float32) is not None
    expert = next(name for name in whole.stored if ".experts." in name)
    with pytest.raises((WrongFile, UnsupportedModel), match="moe"):
        open_checkpoint(rewrite(tmp_path / "moe", without(expert))).load(torch.float32)


def test_a_padding_token_that_no_embedding_has(tiny_folder):
    plain = float_logits(tiny_folder("plain"))
    assert torch.equal(float_logits(rewrite(tiny_folder(), pad_token_id=PADDED + 7)), plain)
    assert torch.equal(float_logits(rewrite(tiny_folder("minus"), pad_token_id=-1)), plain)
