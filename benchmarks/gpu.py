"""Everything that only a GPU can tell, in one run of at most eight minutes.

    python -m benchmarks.gpu [--json FILE] [--seconds 480] [--only SECTION ...] [--dry]

Nothing is downloaded: models have the published shapes and random weights, made on the device, and acceptance is
replayed from recorded answers of a real model (``benchmarks/traces``) or forced to a rate; every line says which. Each
section has a budget in seconds and fails alone. A run that is cut short, by a budget, Ctrl+C or SIGTERM, keeps what it
has found. ``--dry`` runs all of it on the CPU at toy size, to see that it runs: its figures mean nothing.
"""

import argparse
import gc
import json
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import Any

if "--dry" in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported


from benchmarks.on_gpu import attention, decoding, exactness, passes, stock
from benchmarks.on_gpu.stage import OverBudget, Stage, measure_ceilings
from benchmarks.on_gpu.targets import targets
from engine.backends import registry


@dataclass(frozen=True)
class Section:
    """``name`` on the command line; ``run`` prints its lines and returns what belongs in the JSON file."""

    name: str
    title: str
    seconds: int
    run: Callable[[Stage], dict[str, Any]]


# In the order of what would be missed most.
SECTIONS = (
    Section("ceilings", "What the machine can do", 20, measure_ceilings),
    Section("numbers", "Kernels against float64", 40, exactness.numbers),
    Section(
        "decoding", "7B shape, bf16: regular (graph) against suffix drafts, acceptance replayed", 150, decoding.replayed
    ),
    Section("lossless", "Speculation changes no token, in float32", 40, exactness.lossless),
    Section("rejection", "The rejection rule's distribution", 10, exactness.rejection),
    Section("lengths", "Graphs replayed at lengths 5, 500, 5", 15, exactness.replay_lengths),
    Section("shapes", "Every precision, head size and grouping against float64", 60, exactness.shapes),
    Section("attention", "Attention of one layer against SDPA", 60, attention.against_others),
    Section("long-prompt", "Many candidates behind a long prompt", 40, passes.long_prompt),
    Section("draft-model", "7B shape with a 0.5B-shaped draft, acceptance forced", 60, decoding.draft_model),
    Section("generate", "Stock generate", 30, stock.generate),
    Section("small-card", "7B int4 under an 8 GB cap", 40, passes.small_card),
    Section("tilings", "Other tiles", 40, attention.tilings),
    Section("flex", "Flex attention", 40, attention.flex),
    Section("vllm", "vLLM", 90, stock.vllm),
)


class CutShort(BaseException):
    """Somebody ends the whole run: what it has found is written down, and the rest skipped."""


def _cut_short(number: int, frame: FrameType | None) -> None:
    raise CutShort


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if not options.dry and registry.accelerators()[0].why_not_in_torch():
        print("This torch finds no GPU; --dry shows that the benchmark runs.", file=sys.stderr)
        return 2
    stage, end = Stage(options.dry), time.monotonic() + options.seconds
    results: dict[str, Any] = {"machine": facts(options.dry), "sections": {}}
    stage.say("; ".join(f"{key}: {value}" for key, value in results["machine"].items()))
    before = signal.signal(signal.SIGTERM, _cut_short)
    try:
        failed = run_all(options, stage, end, results)
    finally:
        signal.signal(signal.SIGTERM, before)
    stage.say("\n## Targets" + (", of a dry run: they mean nothing" if options.dry else ""))
    for target in targets(results["sections"]):
        stage.say(str(target))
    write(options.json, results, stage)
    return 1 if failed else 0


def run_all(options: argparse.Namespace, stage: Stage, end: float, results: dict[str, Any]) -> bool:
    """Every section that was asked for, into ``results``; whether one failed, or somebody ended the run."""
    failed, sections = False, results["sections"]
    for section in SECTIONS:
        if options.only and section.name not in options.only:
            continue
        if stage.is_ended:
            sections[section.name] = {"skipped": True}
            continue
        stage.say(f"\n## {section.title}")
        result = sections[section.name] = attempt(section, stage, end)
        failed |= "error" in result or stage.is_ended
        write(options.json, results, stage)  # after every section: whoever kills the run leaves what it has
    return failed


def write(path: str | None, results: dict[str, Any], stage: Stage) -> None:
    """All of it or, if that is cut short too, what was there before."""
    if path:
        part = Path(f"{path}.part")
        part.write_text(json.dumps(results | {"lines": stage.lines}, indent=1), encoding="utf-8")
        part.replace(path)


def attempt(section: Section, stage: Stage, end: float) -> dict[str, Any]:
    """Run one section inside its budget and the whole run's; whatever happens to it stays in it.

    One that would get less than half its seconds is not begun: not every section can be cut short at once.
    """
    start = time.monotonic()
    if end - start < section.seconds / 2:
        stage.say("skipped: the run's time is used up")
        return {"skipped": True}
    stage.begin(min(start + section.seconds, end))
    try:
        result = section.run(stage)
    except OverBudget:
        stage.say("cut short: the section's time is used up")
        result = {"cut": True, **stage.kept}
    except (CutShort, KeyboardInterrupt):
        stage.say("cut short: the run was ended")
        stage.is_ended, result = True, {"cut": True, **stage.kept}
    except Exception as error:
        stage.say(f"failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        result = {"error": traceback.format_exc(), **stage.kept}
    gc.collect()  # caches and their layers know each other
    stage.say(f"({time.monotonic() - start:.0f} s)")
    return result | {"wall_s": time.monotonic() - start}


def facts(dry: bool) -> dict[str, str]:
    """What a figure was measured on, and with what."""
    packages = []
    for name in ("torch", "transformers", "triton"):
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"{name} missing")
    device = "dry run on a CPU: figures mean nothing" if dry else registry.accelerators()[0].place()
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return {"device": device, "python": platform.python_version(), "packages": ", ".join(packages), "date": now}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", help="write everything measured to this file")
    parser.add_argument("--seconds", type=int, default=480, help="for the whole run")
    parser.add_argument("--only", nargs="+", choices=[section.name for section in SECTIONS], help="these sections")
    parser.add_argument("--dry", action="store_true", help="on the CPU at toy size, to see that everything runs")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
