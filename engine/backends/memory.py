"""Memory that does not suffice, on whatever device: how it is told from other faults, and what makes room."""

import gc

import torch

from engine.backends import registry
from engine.models.errors import OutOfMemory

OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the memory of the machine or of the GPU did not suffice, whoever says so."""
    known = isinstance(error, MemoryError | torch.OutOfMemoryError | OutOfMemory)
    # The allocator of a CPU says it in a plain RuntimeError.
    return known or (isinstance(error, RuntimeError) and any(words in str(error).lower() for words in OUT_OF_MEMORY))


def lack_of_memory(error: BaseException) -> BaseException | None:
    """The lack of memory that ``error`` is, or that it came from: cleaning up after one often fails in turn."""
    seen: BaseException | None = error
    while seen is not None and not is_out_of_memory(seen):
        seen = seen.__cause__ or seen.__context__
    return seen


def release_cached_memory() -> None:
    """What allocators hold back, so that the next try finds it, and the driver calls it free."""
    gc.collect()  # a cache and its layers know each other
    for device in registry.accelerators():
        device.release_cached_memory()
