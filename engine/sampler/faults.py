"""What an unforeseen exception means for the user: one sentence, and a kind by which the window offers a remedy."""

import gc

import torch

from engine.models.child import is_disk_full
from engine.models.errors import OutOfMemory

OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")


def sentence_for(error: BaseException, doing: str) -> str:
    """``doing``: what was going on, as the beginning of a sentence ("Loading the model")."""
    if is_out_of_memory(error):
        return f"{doing} ran out of memory; take fewer candidates, fewer tokens or a smaller model."
    if is_disk_full(error):
        return f"{doing} found the disk full; make room, then try again."
    return f"{doing} failed: {type(error).__name__}: {first_line(error)}. The details are worth a report."


def kind_of(error: BaseException) -> str:
    """``LoadFailed.kind`` and ``RunFinished.kind``: out-of-memory, disk-full, or empty for anything else."""
    if is_out_of_memory(error):
        return "out-of-memory"
    return "disk-full" if is_disk_full(error) else ""


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


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def release_cached_memory() -> None:
    """What a GPU's allocator holds back, so that the next try finds it."""
    gc.collect()  # a cache and its layers know each other
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
