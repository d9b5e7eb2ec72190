"""How large a model is, from whatever describes it."""

import json

import pytest

from engine.models.catalog import catalog
from engine.models.shape_readers import shape_of_config, shape_of_folder, shape_of_gguf
from tests.engine.models.conftest import HEADS, HIDDEN, KEYS, LAYERS, PADDED, WIDTH


@pytest.mark.parametrize("entry", catalog().model, ids=lambda entry: entry.name)
def test_the_catalogs_shapes_add_up(entry):
    """Linear layers, norms and (in Qwen) the biases of q, k and v are all there is beside embedding and head."""
    shape = entry.shape
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    linear = 2 * shape.hidden * queries + 2 * shape.hidden * keys + 3 * shape.hidden * shape.intermediate
    biases = queries + 2 * keys if entry.name.startswith("qwen") else 0
    assert shape.layer_weights == shape.layers * (linear + biases + 2 * shape.hidden) + shape.hidden


def of_the_tiny_one(shape):
    assert (shape.layers, shape.hidden, shape.intermediate) == (LAYERS, WIDTH, HIDDEN)
    assert (shape.heads, shape.kv_heads, shape.head_dim) == (HEADS, KEYS, WIDTH // HEADS)
    assert (shape.vocabulary, shape.context) == (PADDED, 256)
    return True


@pytest.mark.parametrize("tied", [False, True])
def test_a_gguf(tiny_gguf, tied):
    shape = shape_of_gguf(tiny_gguf(tied=tied))
    assert of_the_tiny_one(shape)
    assert shape.tied is tied
    narrow = WIDTH * KEYS // HEADS
    assert shape.layer_weights == LAYERS * (2 * WIDTH**2 + 2 * WIDTH * narrow + 3 * WIDTH * HIDDEN + 2 * WIDTH) + WIDTH


def test_a_folder_says_the_same(tiny_folder, tiny_gguf):
    shape = shape_of_folder(tiny_folder())
    assert of_the_tiny_one(shape)
    assert shape == shape_of_gguf(tiny_gguf())


def test_other_names_for_the_same():
    codegen = {"n_embd": 1024, "n_layer": 20, "n_head": 16, "n_positions": 2048, "vocab_size": 51200}
    shape = shape_of_config(codegen, 350_000_000, tied=False)
    assert (shape.hidden, shape.layers, shape.kv_heads, shape.head_dim) == (1024, 20, 16, 64)
    assert (shape.intermediate, shape.context, shape.tied) == (4096, 2048, False)


def test_a_model_of_pictures_and_text_counts_its_text():
    text = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 100}
    assert shape_of_config({"hidden_size": 9, "text_config": text}, 10**6, tied=True).layers == 3


def test_what_no_config_says_is_not_made_up(tiny_folder):
    folder = tiny_folder()
    (folder / "config.json").write_text(json.dumps({"model_type": "imaginary"}))
    assert shape_of_folder(folder) is None
    (folder / "config.json").write_text("{")
    assert shape_of_folder(folder) is None
