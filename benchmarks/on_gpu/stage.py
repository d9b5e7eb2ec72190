"""What every section uses: the device, sizes, random models, clocks and a budget."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from engine.backends import registry
from engine.backends.device import Device
from engine.models.causal_lm import CausalLM
from engine.models.room import Room
from engine.sampler.device_model import FIRST_ROOM, DeviceModel

# Published shapes of Qwen2.5-Coder; weights are random. "toy" is for a dry run.
SHAPES: dict[str, dict[str, Any]] = {
    "7B": {
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "vocab_size": 152_064,
        "tie_word_embeddings": False,
    },
    "0.5B": {
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "vocab_size": 151_936,
        "tie_word_embeddings": True,
    },
    "toy": {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 512,
        "tie_word_embeddings": False,
    },
}


class OverBudget(Exception):
    """The section has used its seconds; what it has is kept."""


@dataclass
class Stage:
    """One run of the benchmark. ``dry``: on the CPU at toy size, to see that everything runs; its figures mean nothing.

    ``copy_bandwidth`` in bytes/s (read and written together) and ``matmul_rate`` in FLOP/s are measured first.
    """

    dry: bool
    deadline: float = 0.0
    copy_bandwidth: float = float("nan")
    matmul_rate: float = float("nan")
    is_ended: bool = False  # by somebody, before its time
    lines: list[str] = field(default_factory=list)
    # What the section at hand has found so far, and the rows of its table: kept if it is cut short.
    found: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    _modules: dict[tuple[str, torch.dtype], CausalLM] = field(default_factory=dict)

    @property
    def backend(self) -> Device:
        return registry.named(registry.HOST if self.dry else registry.accelerators()[0].kind)

    @property
    def device(self) -> torch.device:
        return torch.device(str(self.backend))

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32 if self.dry else torch.bfloat16

    def say(self, line: str) -> None:
        print(line, flush=True)
        self.lines.append(line)

    def begin(self, deadline: float) -> None:
        """A new section, which has until then."""
        self.deadline, self.found, self.rows = deadline, {}, []

    @property
    def kept(self) -> dict[str, Any]:
        """All that this section has found so far."""
        return self.found | ({"rows": self.rows} if self.rows else {})

    def check(self) -> None:
        if time.monotonic() > self.deadline:
            raise OverBudget

    def module(self, shape: str, dtype: torch.dtype | None = None) -> CausalLM:
        """A model of that shape with random weights, made on the device; kept for the next section that asks."""
        dtype, shape = dtype or self.dtype, "toy" if self.dry else shape
        key = (shape, dtype)
        if key not in self._modules:
            torch.manual_seed(0)
            config = AutoConfig.for_model("qwen2", max_position_embeddings=65_536, **SHAPES[shape])
            with torch.device(self.device):
                module = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager")
            self._modules[key] = module.eval().requires_grad_(False)
        return self._modules[key]

    def forget(self, shape: str) -> None:
        """Let a model's memory go."""
        for key in [key for key in self._modules if key[0] == shape]:
            del self._modules[key]
        self.backend.release_cached_memory()

    def open(self, module: CausalLM, room: Room = FIRST_ROOM) -> DeviceModel:
        """The model behind the product's own door for a GPU; a dry run has plain attention and no graphs there."""
        attention, capture = self.backend.attention(), self.backend.capture()
        return DeviceModel(module, module.config.vocab_size, attention, capture, room=room)

    def synchronize(self) -> None:
        self.backend.synchronize()

    def seconds(self, work: Callable[[], object], repeats: int = 20) -> float:
        """Median seconds of ``work``, by events on the device; launch gaps included where there are any."""
        if self.dry:
            return _host_seconds(work)
        for _ in range(3):
            work()
        marks = [self.backend.event(timing=True) for _ in range(repeats + 1)]
        marks[0].record()
        for mark in marks[1:]:
            work()
            mark.record()
        self.synchronize()
        return float(median(a.elapsed_time(b) for a, b in pairwise(marks))) / 1e3

    def graphed(self, work: Callable[[], Tensor]) -> Callable[[], object]:
        """``work`` as one captured graph, so that a short kernel's time is not its launch's."""
        capture = self.backend.capture()
        return work if capture is None else capture(work)[0]


def _host_seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure_ceilings(stage: Stage) -> dict[str, Any]:
    """Two ceilings of this very machine: a large copy, and a large matrix product on random numbers."""
    size = 1 << (20 if stage.dry else 32)
    source = torch.randint(0, 255, (size,), dtype=torch.uint8, device=stage.device)
    target = torch.empty_like(source)
    stage.copy_bandwidth = 2 * size / stage.seconds(lambda: target.copy_(source))
    side = 128 if stage.dry else 8192
    a, b = (torch.randn(side, side, device=stage.device, dtype=stage.dtype) for _ in range(2))
    stage.matmul_rate = 2 * side**3 / stage.seconds(lambda: a @ b)
    stage.say(f"copy {stage.copy_bandwidth / 1e12:.2f} TB/s, matrix product {stage.matmul_rate / 1e12:.0f} TFLOP/s")
    return {"copy_bytes_per_s": stage.copy_bandwidth, "matmul_flop_per_s": stage.matmul_rate}
