"""What an unforeseen exception means for the person: one sentence."""

import torch

OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")


def sentence_for(error: BaseException, doing: str) -> str:
    """``doing``: what was going on, as the beginning of a sentence ("Loading the model")."""
    text = str(error)
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(m in text.lower() for m in OUT_OF_MEMORY):
        return f"{doing} ran out of memory; take fewer candidates, fewer tokens or a smaller model."
    first_line = (text.splitlines() or [""])[0]
    return f"{doing} failed: {type(error).__name__}: {first_line}. The details are worth a report."
