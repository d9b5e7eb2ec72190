"""What an unforeseen exception means for the user: one sentence, and a kind by which the window offers a remedy."""

from engine.backends.memory import is_out_of_memory
from engine.models.child import is_disk_full


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


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]
