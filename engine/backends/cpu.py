"""The processor."""

import platform
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine import device as machine
from engine.backends.device import Device

if TYPE_CHECKING:
    from torch import Tensor


class HostEvent:
    """When the host was there: what was asked of the processor before is done."""

    def __init__(self) -> None:
        self._at = 0.0

    def record(self) -> None:
        self._at = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: Any) -> float:
        return 1e3 * float(end._at - self._at)


class Cpu(Device):
    """What this process may use of the processor, and of the machine's memory."""

    kind = "cpu"
    precisions = ("int8", "float32", "bfloat16")
    overhead = 800_000_000  # interpreter, torch and tokenizer
    memory = "main"
    is_host = True

    def memory_free(self) -> int | None:
        return machine.memory_free()

    def automatic_precision(self) -> str:
        return "int8" if _has_int8() else "float32"

    def why_not_precision(self, precision: str) -> str:
        if precision == "int8" and not _has_int8():
            return "int8 needs an x86 processor; choose float32."
        if precision == "int4":
            return "int4 is for GPUs; on a CPU int8 is faster, so choose int8 or auto."
        return super().why_not_precision(precision)

    def event(self, *, timing: bool = False) -> HostEvent:
        return HostEvent()

    def attention(self) -> "Callable[..., Tensor]":
        from kernels.attention.torch import packed_attention

        return packed_attention


def _has_int8() -> bool:
    """FBGEMM, which multiplies int8, exists for x86 alone."""
    return platform.machine().lower() in ("x86_64", "amd64")
