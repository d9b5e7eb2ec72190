"""The GPU benchmark runs end to end at toy size, with what a bare machine with a GPU has."""

import json
import os
import signal
import subprocess
import sys
import time
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
    assert all(case["holds"] for name, case in sections["shapes"].items() if name != "wall_s")
    assert {row["b"] for row in sections["decoding"]["rows"]} == {1, 4}


def test_a_section_that_fails_or_overruns_stays_alone(monkeypatch, capsys, tmp_path):
    from benchmarks import gpu
    from benchmarks.on_gpu.stage import Stage

    def late(stage: Stage) -> dict:
        stage.rows.append({"figure": 2})
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
    assert results["late"]["rows"] == [{"figure": 2}]
    assert results["works"]["figure"] == 1
    assert gpu.main(["--dry", "--json", str(out), "--seconds", "0"]) == 0
    assert json.loads(out.read_text())["sections"]["works"] == {"skipped": True}
    capsys.readouterr()


@pytest.mark.parametrize("end", [KeyboardInterrupt, signal.SIGTERM], ids=str)
def test_a_run_that_is_ended_keeps_what_it_has_found(monkeypatch, capsys, tmp_path, end):
    """Also what the section at hand had found; how the process deals with SIGTERM is as it was before."""
    from benchmarks import gpu
    from benchmarks.on_gpu.stage import Stage

    def ended(stage: Stage) -> dict:
        stage.found["prefill_s"] = 0.5
        stage.rows.append({"figure": 2})
        if end is signal.SIGTERM:
            signal.raise_signal(end)
        raise KeyboardInterrupt

    sections = [
        gpu.Section("works", "Works", 10, lambda stage: {"figure": 1}),
        gpu.Section("ended", "Ended", 10, ended),
        gpu.Section("never", "Never", 10, lambda stage: {"figure": 3}),
    ]
    monkeypatch.setattr(gpu, "SECTIONS", sections)
    before, out = signal.getsignal(signal.SIGTERM), tmp_path / "gpu.json"
    assert gpu.main(["--dry", "--json", str(out)]) == 1
    results = json.loads(out.read_text())["sections"]
    assert results["works"]["figure"] == 1
    assert results["ended"].items() >= {"cut": True, "prefill_s": 0.5, "rows": [{"figure": 2}]}.items()
    assert results["never"] == {"skipped": True}
    assert signal.getsignal(signal.SIGTERM) is before
    assert "Targets" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "parts"), [("long-prompt", 1), ("shapes", 2), ("decoding", 1), ("lossless", 0)])
def test_every_section_keeps_its_parts_as_it_finds_them(name, parts):
    """Cut short at the look at the clock that follows so many parts."""
    from benchmarks import gpu
    from benchmarks.on_gpu.stage import OverBudget, Stage

    class Short(Stage):
        looks = 0

        def check(self) -> None:
            self.looks += 1
            if self.looks > parts:
                raise OverBudget

    stage = Short(True)
    section = next(section for section in gpu.SECTIONS if section.name == name)
    result = gpu.attempt(section, stage, time.monotonic() + 1000)
    assert result.pop("cut")
    result.pop("wall_s")
    expected = {
        "long-prompt": {"prefill_s", "l0"},
        "shapes": {"torch.bfloat16"},
        "decoding": {"costs", "rows"},
        "lossless": set(),  # what was not compared to its end holds for nobody
    }[name]
    assert len(result) == (2 if name == "shapes" else len(expected))
    assert name == "shapes" or set(result) == expected


def test_targets_are_judged_by_what_was_measured():
    """A run in which all but one was reached, and one in which the figures are missing."""

    def row(b, temperature, ratio):
        return {"b": b, "temperature": temperature, "ratio": ratio, "speculative": {"ms": 1.9}}

    pairs = [row(b, temperature, 3.0) for b in (1, 2, 4, 8, 16) for temperature in (0.2, 0.8)]
    sections = {
        "decoding": {"rows": [*pairs, row(32, 0.2, 1.5), row(32, 0.8, 1.39)]},
        "long-prompt": {"l0": {"ratio": 1.31}},
        "attention": {"rows": [{"prompt": 8192, "of_copy": 0.7}, {"prompt": 128, "of_copy": 0.1}]},
    }
    from benchmarks.on_gpu.targets import targets

    found = list(targets(sections))
    assert [target.holds for target in found] == [True, True, True, False, True, False, True]
    assert str(found[3]) == "b = 16 and 32, times regular >= 1.4: 1.39, MISSED"
    assert {target.holds for target in targets({"decoding": {"cut": True}})} == {None}


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
