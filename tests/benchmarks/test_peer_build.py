"""llama.cpp is built for this processor, tried, and built again without AMX where the machine does not allow it."""

import signal
import subprocess
import sys
from pathlib import Path

import gguf
import pytest

from benchmarks.peers import build as peers
from benchmarks.peers.build import NATIVE, BuildFailed, build, install, try_out, without_amx

FLAGS = frozenset({"avx2", "fma", "f16c", "avx512f", "avx512_vnni", "amx_int8", "amx_tile"})


def played(*codes: int) -> tuple[list[str], str]:
    """What was built, and what ``build`` chose, when the trials end with ``codes``."""
    made: list[str] = []
    left = list(codes)
    chosen = build(made.append, lambda: left.pop(0), FLAGS)
    assert not left
    return made, chosen


def test_a_build_that_runs_is_kept() -> None:
    assert played(0) == ([NATIVE], NATIVE)


@pytest.mark.parametrize("number", [signal.SIGILL, signal.SIGSEGV])
def test_one_that_dies_is_built_again_without_amx(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    options = without_amx(FLAGS)
    assert played(-number, 0) == ([NATIVE, options], options)
    assert f"signal {number:d}" in capsys.readouterr().out


def test_one_that_dies_without_amx_too_is_an_error() -> None:
    with pytest.raises(BuildFailed, match=r"died \(signal 4\)"):
        played(-4, -4)


def test_an_error_that_it_told_itself_is_shown_and_no_reason_to_build_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert played(1) == ([NATIVE], NATIVE)
    assert "failed (exit code 1)" in capsys.readouterr().out


def test_without_amx_all_else_that_the_processor_has_stays() -> None:
    options = without_amx(FLAGS).split()
    assert "-DGGML_NATIVE=OFF" in options
    assert {f"-DGGML_{name}=ON" for name in ("AVX2", "FMA", "F16C", "AVX512", "AVX512_VNNI")} <= set(options)
    assert "-DGGML_AVX512_BF16=OFF" in options
    assert not any("AMX" in option for option in options)


def test_pip_builds_with_the_options_and_past_its_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def run(command: list[str], **how: object) -> "subprocess.CompletedProcess[str]":
        asked.update(how, command=command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(BuildFailed, match="compiler"):
        install(Path("peer/python"), NATIVE)
    command, environment = asked["command"], asked["env"]
    assert isinstance(command, list)
    assert isinstance(environment, dict)
    assert {"--no-cache-dir", "--no-binary", "--force-reinstall"} <= set(command)
    assert environment["CMAKE_ARGS"] == NATIVE


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals of this kind")
@pytest.mark.parametrize(("body", "code"), [("kill -ILL $$", -signal.SIGILL), ("cat > asked; exit 3", 3)])
def test_the_trial_tells_how_the_peer_ended(tmp_path: Path, body: str, code: int, monkeypatch) -> None:
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{body}\n")
    python.chmod(0o755)
    assert try_out(python) == code


def test_the_tiny_model_can_be_read(tmp_path: Path) -> None:
    peers.write_tiny_model(tmp_path / "tiny.gguf")
    read = gguf.GGUFReader(tmp_path / "tiny.gguf")
    kinds = {tensor.name: tensor.tensor_type.name for tensor in read.tensors}
    assert (len(kinds), kinds["blk.0.ffn_down.weight"], kinds["output_norm.weight"]) == (12, "Q8_0", "F32")
