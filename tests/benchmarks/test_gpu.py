"""The GPU benchmark runs end to end at toy size, with what a bare machine with a GPU has."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="triton has no wheel for this platform")

ROOT = Path(__file__).parent.parent.parent
WITHOUT = ("PySide6", "qasync", "cattrs", "platformdirs", "gguf", "pygments", "httpx")  # a GPU machine may lack them
BARE = """
import runpy, sys
for name in {without}:
    sys.modules[name] = None
sys.argv = ["benchmarks.gpu", "--dry", "--json", {out!r}]
runpy.run_module("benchmarks.gpu", run_name="__main__")
"""


def test_a_dry_run_goes_through_every_section(tmp_path):
    from benchmarks.gpu import SECTIONS

    out = tmp_path / "gpu.json"
    command = [sys.executable, "-W", "error", "-c", BARE.format(without=WITHOUT, out=str(out))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, env=os.environ.copy())
    assert done.returncode == 0, done.stdout + done.stderr
    sections = json.loads(out.read_text())["sections"]
    assert list(sections) == [section.name for section in SECTIONS]
    assert not [name for name, result in sections.items() if {"error", "cut", "skipped"} & set(result)]
    assert all(value for name, value in sections["lossless"].items() if name != "wall_s")
    assert sections["numbers"]["random bits equal"]
    assert sections["lengths"]["worst"] < 1e-4
    assert {row["b"] for row in sections["decoding"]["rows"]} == {1, 4}


def test_a_section_that_fails_or_overruns_stays_alone(monkeypatch, capsys, tmp_path):
    from benchmarks import gpu
    from benchmarks.on_gpu.stage import Stage

    def late(stage: Stage) -> dict:
        stage.check()
        return {}

    sections = [
        gpu.Section("fails", "Fails", 10, lambda stage: {}["nothing"]),
        gpu.Section("late", "Late", -1, late),
        gpu.Section("works", "Works", 10, lambda stage: {"figure": 1}),
    ]
    monkeypatch.setattr(gpu, "SECTIONS", sections)
    out = tmp_path / "gpu.json"
    assert gpu.main(["--dry", "--json", str(out)]) == 1
    results = json.loads(out.read_text())["sections"]
    assert "KeyError" in results["fails"]["error"]
    assert results["late"]["cut"]
    assert results["works"]["figure"] == 1
    assert gpu.main(["--dry", "--json", str(out), "--seconds", "0"]) == 0
    assert json.loads(out.read_text())["sections"]["works"] == {"skipped": True}
    capsys.readouterr()


def test_without_a_gpu_it_says_so(capsys):
    import torch

    from benchmarks import gpu

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert gpu.main([]) == 2
    assert "--dry" in capsys.readouterr().err


def test_the_recorded_answers_serve_every_size():
    """What is replayed: three prompts at two temperatures, 32 answers each, ids of the published vocabulary."""
    traces = sorted((ROOT / "benchmarks" / "traces").glob("*.json"))
    assert len(traces) == 6
    for path in traces:
        trace = json.loads(path.read_text())
        assert len(trace["candidates"]) == 32
        assert all(0 < len(answer) <= trace["max_tokens"] for answer in trace["candidates"])
        assert max(map(max, trace["candidates"])) < 151_936
