"""Processor, memory, GPU: where models run, and what fits."""

import re
import sys

from engine.backends import registry
from engine.backends.device import Gpu
from engine.device import Machine, inspect_machine
from engine.doctor.finding import BAD, GOOD, NOTE, WEAK, Finding
from engine.models import notes
from engine.models.catalog import DEFAULT, catalog
from engine.models.memory_plan import MemoryPlan, ModelPart
from engine.models.names import choose_device, choose_precision, find_entry
from kernels import llvm

_LITTLE = 2_000_000_000  # bytes: Qwen2.5-Coder 0.5B, the smallest default, with one candidate


def machine() -> list[Finding]:
    found = inspect_machine()
    return [_system(found), _processor(found), _memory(found), *_gpus(found), *_notes(), _default_model()]


def _system(found: Machine) -> Finding:
    text = f"{found.system}, Python {sys.version.split()[0]}"
    if found.system.startswith("Linux"):
        return Finding("system", GOOD, text)
    return Finding("system", WEAK, text, "Test runs are sealed on Linux only; on Windows, start Bassline inside WSL2.")


def _processor(found: Machine) -> Finding:
    text = f"{found.processor}, {found.cores} cores" + "".join(f", {name}" for name in found.instructions)
    if not re.fullmatch(r"x86_64|amd64", found.processor.lower()):
        return Finding("processor", WEAK, text, "int8 needs an x86 processor; models run in float32 here.")
    if "avx2" not in found.instructions:
        return Finding("processor", WEAK, text, "Without AVX2 int8 is slow; a newer machine or a server helps.")
    if why := llvm.why_not():
        return Finding("processor", WEAK, text, f"Steps take about twice as long as they could: {why}.")
    return Finding("processor", GOOD, text)


def _memory(found: Machine) -> Finding:
    text = f"{found.memory_free / 1e9:.1f} of {found.memory_total / 1e9:.1f} GB free"
    if found.memory_free < _LITTLE:
        return Finding("memory", WEAK, text, "Close other programs, or choose a smaller model.")
    return Finding("memory", GOOD, text)


def _gpus(found: Machine) -> list[Finding]:
    if not found.gpus:
        return [Finding("GPU", NOTE, "no NVIDIA GPU; models run on the processor")]
    return [_gpu(number, gpu) for number, gpu in enumerate(found.gpus)]


def _gpu(number: int, gpu: Gpu) -> Finding:
    text = f"{gpu.name}, {gpu.memory_free / 1e9:.1f} of {gpu.memory_total / 1e9:.1f} GB free, driver {gpu.driver}"
    device = registry.named(gpu.kind)
    if why := device.why_no_build():
        return Finding(f"GPU {number}", BAD, text, why)
    if why := device.why_unused():
        return Finding(f"GPU {number}", BAD, text, f"{why} Models run on the processor.")
    if why := device.why_no_kernels():
        return Finding(f"GPU {number}", WEAK, text, why)
    return Finding(f"GPU {number}", GOOD, text)


def _notes() -> list[Finding]:
    """What came out when a model was loaded: that it runs without captured graphs, say, and why."""
    return [Finding("models", NOTE, f"{model}: {note}") for model, note in sorted(notes.kept().items())]


def _default_model() -> Finding:
    entry = find_entry(DEFAULT) or catalog().model[0]
    kind = choose_device("auto")
    plan = MemoryPlan(
        ModelPart(entry.shape, choose_precision("auto", kind), kind), free=registry.named(kind).memory_free()
    )
    text = f"{entry.title} on {kind}: {plan.sentence()}"
    if plan.largest_width(most=1) == 0:
        return Finding("default model", BAD, text, "Close other programs, or use a server (`servers add`).")
    return Finding("default model", GOOD, text)
