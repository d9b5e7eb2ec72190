"""Conversions that end badly: nothing half-made under a final name, one sentence, and the next start works."""

import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
import torch

from engine.contract import LoadCancelled
from engine.models import child, conversion, conversion_process, preparation
from engine.models.conversion import convert, read_manifest
from engine.models.errors import ConversionFailed, DiskFull, DownloadFailed, OutOfMemory, UnsupportedModel, WrongFile
from engine.models.gguf_file import read_header
from engine.models.preparation import prepare
from tests.engine.models.test_sources import gone


def never():
    return False


def quiet(_):
    pass


def prepare_quietly(path, progress=quiet):
    return prepare(str(path), precision="float32", device="cpu", progress=progress, cancelled=never)


def left(home: Path) -> list[str]:
    """What there is of converted copies."""
    folder = home / "models" / "converted"
    return [p.name for p in folder.iterdir() if not p.name.endswith(".lock")] if folder.exists() else []


def test_cancelled_at_once_and_nothing_left(tiny_gguf, home):
    stages = []
    start = time.monotonic()
    with pytest.raises(LoadCancelled):
        prepare(
            str(tiny_gguf()), precision="float32", device="cpu", progress=stages.append, cancelled=lambda: bool(stages)
        )
    assert stages[0].stage == "convert"
    assert time.monotonic() - start < 10
    assert left(home) == []


def test_remains_of_a_killed_start_are_swept(tiny_gguf, home):
    path = tiny_gguf()
    folder = prepare(str(path), precision="float32", device="cpu", progress=quiet, cancelled=never).folder
    unfinished = folder.with_name(folder.name + ".unfinished")
    folder.rename(unfinished)
    (unfinished / "stale").touch()
    prepare(str(path), precision="float32", device="cpu", progress=quiet, cancelled=never)
    assert left(home) == [folder.name]
    assert not (folder / "stale").exists()


def test_unknown_architecture(tiny_gguf, home):
    with pytest.raises(UnsupportedModel, match="'imaginary' model"):
        prepare_quietly(tiny_gguf(architecture="imaginary"))
    assert left(home) == []


def test_cut_off_file(tiny_gguf, home):
    path = tiny_gguf()
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(WrongFile, match="incomplete"):
        prepare_quietly(path)
    assert left(home) == []


def test_a_child_that_dies_is_reported(tiny_gguf, home, monkeypatch, tmp_path):
    monkeypatch.setattr(child, "_CHECKOUT", tmp_path)  # where there is no such module
    with pytest.raises(ConversionFailed, match=r"ended unexpectedly: .*No module named"):
        convert(tiny_gguf(), home / "out", "float32", quiet, never)
    assert not (home / "out").exists()


def test_room_is_looked_for_first(tiny_gguf, monkeypatch, tmp_path):
    path = tiny_gguf()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1})())
    with pytest.raises(DiskFull, match="only 0 MB are free"):
        conversion_process._check_room(read_header(path).parameters, tmp_path, "int8")


def test_two_starts_at_once_convert_once(tiny_gguf, home, monkeypatch):
    path = tiny_gguf()
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        convert(*arguments)

    monkeypatch.setattr(preparation, "convert", counted)

    def start() -> None:
        prepare(str(path), precision="float32", device="cpu", progress=quiet, cancelled=never)

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert len(left(home)) == 1


def test_kill_takes_the_child_along_and_the_next_start_works(tiny_gguf, home):
    path = tiny_gguf()
    program = (
        "import os, signal, sys, psutil\n"
        "from engine.models.preparation import prepare\n"
        "def progress(event):\n"
        "    if event.stage == 'convert':\n"
        "        print(*(child.pid for child in psutil.Process().children()), flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "prepare(sys.argv[1], precision='float32', device='cpu', progress=progress, cancelled=lambda: False)\n"
    )
    checkout = Path(conversion.__file__).parents[2]
    killed = subprocess.run(
        [sys.executable, "-c", program, str(path)], cwd=checkout, timeout=120, check=False, capture_output=True
    )
    assert killed.returncode == -9, killed.stderr
    (pid,) = killed.stdout.split()
    gone(int(pid), within_s=10)
    assert read_manifest(prepare_quietly(path).folder) is not None
    assert len(left(home)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_child_that_the_system_ends_is_a_lack_of_memory(tiny_gguf, home):
    def kill(_):
        for process in psutil.Process().children():
            process.send_signal(signal.SIGKILL)

    with pytest.raises(OutOfMemory, match="ended by the system, most likely for lack of memory"):
        prepare_quietly(tiny_gguf(), progress=kill)
    assert left(home) == []


def test_the_disk_runs_full(tiny_gguf, home, small_disk):
    """There is room for the weights, but not for the tokenizer as well."""
    path = tiny_gguf()
    room = 4 * read_header(path).parameters
    small_disk(home / "models" / "converted", -(-room // 4096) * 4096 + 4096)
    with pytest.raises(DiskFull, match="disk is full; make room"):
        prepare_quietly(path)
    assert left(home) == []
    small_disk(home / "models" / "converted", 10 * room)
    assert read_manifest(prepare_quietly(path).folder) is not None


def test_a_read_only_cache_folder(tiny_gguf, home, small_disk):
    folder = home / "models" / "converted"
    small_disk(folder, 1_000_000)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    with pytest.raises(DownloadFailed, match=r"converted cannot be written: Read-only file system"):
        prepare_quietly(tiny_gguf())


def test_folders_with_names_of_all_kinds(tiny_gguf, tmp_path, monkeypatch):
    """Of the file, of the cache and of temporary files."""
    name = "with blank, Umlaut-ü, Кириллица, 模型 and 🎵"
    for variable in ("BASSLINE_HOME", "TMPDIR"):
        folder = tmp_path / f"{variable} {name}"
        folder.mkdir()
        monkeypatch.setenv(variable, str(folder))
    path = tiny_gguf(f"{name}/{name}.gguf")
    folder = prepare_quietly(path).folder
    assert folder.name.startswith(name)
    assert read_manifest(folder) is not None


def test_weights_under_other_names_are_translated(tiny_folder, home):
    """As some publishers save them: without the prefix of the whole model."""
    from transformers import AutoModelForCausalLM

    from engine.models.loader import load

    folder = tiny_folder()
    stock = AutoModelForCausalLM.from_pretrained(folder)
    stock.config.tie_word_embeddings = True
    stock.tie_weights()
    stock.model.config = stock.config
    (folder / "model.safetensors").unlink()
    stock.model.save_pretrained(folder)
    int8 = load(str(folder), precision="int8", device="cpu", progress=quiet, cancelled=never)
    ids = torch.arange(40)[None]
    with torch.inference_mode():
        want, got = stock(ids).logits, int8.module(ids).logits
    assert (got - want).norm() / want.norm() < 0.1
