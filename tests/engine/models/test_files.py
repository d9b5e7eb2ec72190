"""Files that are not what they should be: one sentence each, before anything is converted."""

import json

import gguf
import pytest

from engine.models.errors import UnsupportedModel, WrongFile
from engine.models.folders import check_weights_folder
from engine.models.gguf_file import read_header
from tests.engine.models.conftest import PADDED, VOCABULARY

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 491400064\n"


def test_header_of_a_whole_file(tiny_gguf):
    path = tiny_gguf()
    header = read_header(path)
    assert header.architecture == "llama"
    assert header.bytes <= path.stat().st_size < header.bytes + 32  # the writer pads the end
    assert header.vocabulary == len(VOCABULARY) < PADDED
    assert header.parameters == sum(int(tensor.n_elements) for tensor in gguf.GGUFReader(path).tensors)


def test_last_tensor_cut_off(tiny_gguf):
    path = tiny_gguf()
    whole = path.read_bytes()
    path.write_bytes(whole[: read_header(path).bytes - 1])
    with pytest.raises(WrongFile, match="incomplete: 0 of 0 MB"):
        read_header(path)


@pytest.mark.parametrize("kept", [5, 23, 100, 2000])
def test_cut_off_within_the_header(tiny_gguf, kept):
    path = tiny_gguf()
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(WrongFile, match=r"tiny\.gguf is damaged or cut off"):
        read_header(path)


def test_pointer_in_place_of_weights(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(POINTER)
    with pytest.raises(WrongFile, match=r"Git LFS pointer.*run git lfs pull"):
        read_header(path)


def test_another_kind_of_file(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK\x03\x04" * 100)
    with pytest.raises(WrongFile, match=r"model\.gguf is not a GGUF file"):
        read_header(path)


def test_unknown_tensor_type(tiny_gguf):
    path = tiny_gguf()
    data = bytearray(path.read_bytes())
    name = b"output_norm.weight"
    at = data.index(name) + len(name) + 4 + 8  # one dimension: its count, its size, then the type
    data[at : at + 4] = (999).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(UnsupportedModel, match=r"output_norm\.weight has type 999"):
        read_header(path)


class TestFolders:
    def test_whole(self, tiny_folder):
        folder = tiny_folder("Ordner mit 模型")
        assert check_weights_folder(folder) == [folder / "model.safetensors"]

    @pytest.mark.parametrize(("kept", "said"), [(4, "cut off"), (300, "cut off"), (-1, "incomplete")])
    def test_cut_at_three_places(self, tiny_folder, kept, said):
        file = tiny_folder() / "model.safetensors"
        file.write_bytes(file.read_bytes()[:kept])
        with pytest.raises(WrongFile, match=said):
            check_weights_folder(file.parent)

    @pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
    def test_pointer_in_place_of_a_file(self, tiny_folder, name):
        folder = tiny_folder()
        (folder / name).write_bytes(POINTER)
        with pytest.raises(WrongFile, match=r"Git LFS pointer.*run git lfs pull"):
            check_weights_folder(folder)

    def test_garbage(self, tiny_folder):
        folder = tiny_folder()
        (folder / "model.safetensors").write_bytes((40).to_bytes(8, "little") + b"\xff" * 60)
        with pytest.raises(WrongFile, match="damaged"):
            check_weights_folder(folder)

    def test_no_config(self, tiny_folder):
        folder = tiny_folder()
        (folder / "config.json").unlink()
        with pytest.raises(WrongFile, match=r"no config\.json"):
            check_weights_folder(folder)

    def test_a_shard_that_is_missing(self, tiny_folder):
        folder = tiny_folder()
        shards = {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
        with pytest.raises(WrongFile, match="model-00002-of-00002"):
            check_weights_folder(folder)
