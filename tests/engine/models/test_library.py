"""One list of models: what it says of each, and what removing and checking do to the disk."""

import json
import shutil
from dataclasses import replace

import huggingface_hub.constants
import pytest
import torch
from safetensors.torch import save_file

from engine.contract import Loading
from engine.models import library, names, preparation, sources
from engine.models.catalog import Catalog, CatalogEntry, DefaultRule
from engine.models.conversion import FORMAT
from engine.models.errors import ModelNotFound
from engine.models.preparation import prepare
from engine.models.shape_readers import shape_of_gguf
from engine.models.transfer import digest

NEVER = {"progress": lambda _: None, "cancelled": lambda: False}


@pytest.fixture
def small(index, tiny_gguf, home, tmp_path, monkeypatch):
    """A catalog of one tiny model, whose file lies where a download would have put it."""
    path = tiny_gguf("published.gguf")
    file = replace(index.file, name=path.name, bytes=path.stat().st_size, sha256=digest(path))
    entry = CatalogEntry("tiny", "Tiny", "MIT", shape_of_gguf(path), file=file)
    catalog = Catalog((DefaultRule("tiny"),), (entry,))
    monkeypatch.setattr(library, "catalog", lambda: catalog)
    monkeypatch.setattr(names, "catalog", lambda: catalog)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setattr(preparation, "convert", make_copy)
    place = sources.place(file)
    place.parent.mkdir(parents=True)
    shutil.copy(path, place)
    return entry


def make_copy(source, folder, precision, progress, cancelled):
    """What a conversion leaves behind, as far as the library looks at it."""
    folder.mkdir(parents=True)
    (folder / "bassline.json").write_text(json.dumps({"format": FORMAT, "precision": precision, "vocabulary": 7}))
    (folder / "config.json").write_text("{}")
    save_file({"weights": torch.zeros(1000)}, folder / "model.safetensors")


def only(**options):
    (row,) = library.listed("cpu", "float32", **options)
    return row


def test_what_is_said_before_and_after_conversion(small):
    row = only()
    assert (row.name, row.here, row.download_bytes, row.default) == ("tiny", True, 0, True)
    assert (row.original_bytes, row.converted_bytes) == (small.file.bytes, 0)
    assert (row.fits, row.removable) == (True, True)
    assert row.fit.startswith("fits, 8 candidates at a time (")
    prepare("tiny", precision="float32", device="cpu", offline=True, **NEVER)
    assert only().converted_bytes > 4000


def test_the_original_goes_and_the_copy_still_loads(small):
    folder = prepare("tiny", precision="float32", device="cpu", offline=True, **NEVER).folder
    assert library.remove("tiny", originals_only=True) == small.file.bytes
    row = only()
    assert (row.here, row.original_bytes) == (True, 0)
    assert prepare("tiny", precision="float32", device="cpu", offline=True, **NEVER).folder == folder
    (other,) = library.listed("cpu", "bfloat16")
    assert (other.here, other.download_bytes) == (False, small.file.bytes)  # for which there is no copy


def test_all_of_it_goes(small):
    prepare("tiny", precision="float32", device="cpu", offline=True, **NEVER)
    before = only()
    assert library.remove("tiny") == before.original_bytes + before.converted_bytes
    row = only()
    assert (row.here, row.removable, row.download_bytes) == (False, False, small.file.bytes)
    assert library.remove("tiny") == 0


def test_half_a_download_is_not_here_but_can_be_removed(small):
    place = sources.place(small.file)
    place.rename(place.with_name(place.name + ".part"))
    row = only()
    assert (row.here, row.removable, row.original_bytes) == (False, True, small.file.bytes)
    library.remove("tiny")
    assert only().removable is False


def test_check_reads_every_byte(small):
    seen: list[Loading] = []
    assert library.check("tiny", seen.append, lambda: False) == []
    assert seen[-1].done == seen[-1].total == small.file.bytes
    place = sources.place(small.file)
    data = bytearray(place.read_bytes())
    data[-1000] ^= 1
    place.write_bytes(data)
    (problem,) = library.check("tiny", seen.append, lambda: False)
    assert problem == "published.gguf does not hold the publisher's bytes; remove the model and fetch it again."
    assert place.exists()


def test_check_looks_at_converted_copies(small):
    folder = prepare("tiny", precision="float32", device="cpu", offline=True, **NEVER).folder
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    (problem,) = library.check("tiny", lambda _: None, lambda: False)
    assert "incomplete" in problem


class TestOthers:
    def test_lm_studios_file_is_listed_and_never_removed(self, small, tmp_path, tiny_gguf):
        folder = tmp_path / "person" / ".lmstudio" / "models" / "a" / "b"
        folder.mkdir(parents=True)
        path = tiny_gguf().rename(folder / "c.gguf")
        name = "lm-studio/a/b/c.gguf"
        row = library.listed("cpu", "float32")[-1]
        assert (row.name, row.source, row.here, row.removable) == (name, "LM Studio", True, False)
        assert row.original_bytes == path.stat().st_size
        prepare(name, precision="float32", device="cpu", **NEVER)
        row = library.listed("cpu", "float32")[-1]
        assert row.removable
        assert library.remove(name) == row.converted_bytes > 0
        assert path.exists()

    def test_a_hub_repository(self, small, tmp_path, tiny_folder):
        folder = tmp_path / "hub" / "models--some--one"
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text("abc")
        (folder / "snapshots").mkdir()
        tiny_folder().rename(folder / "snapshots" / "abc")
        row = library.listed("cpu", "float32")[-1]
        assert (row.name, row.source, row.context) == ("some/one", "Hub cache", 256)
        assert library.check("some/one", lambda _: None, lambda: False) == []
        assert library.remove("some/one") >= row.original_bytes
        assert not folder.exists()

    def test_the_copy_of_a_file_that_was_named_by_its_path(self, small, tiny_gguf):
        folder = prepare(str(tiny_gguf("mine.gguf")), precision="float32", device="cpu", **NEVER).folder
        row = library.listed("cpu", "float32")[-1]
        assert (row.name, row.title, row.source) == (str(folder), "mine", "Converted copy")
        assert library.remove(row.name) == row.converted_bytes
        assert not folder.exists()


@pytest.mark.parametrize("name", ["nothing-of-that-name", "/"])
def test_what_is_not_ours_cannot_be_removed(small, name):
    with pytest.raises(ModelNotFound):
        library.remove(name)


def test_a_persons_own_file_is_not_removed(small, tiny_gguf):
    path = tiny_gguf("mine.gguf")
    with pytest.raises(ModelNotFound, match="Nothing is kept of"):
        library.remove(str(path))
    assert path.exists()
