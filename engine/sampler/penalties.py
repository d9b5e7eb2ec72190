"""Repetition, presence and frequency penalties: what a row has said changes what it says next.

At a position inside a draft, the drafts before it count as said. So each distribution is that of plain decoding at
the same place, and speculation stays lossless.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.contract import Sampling


def has_penalty(sampling: Sampling) -> bool:
    return sampling.repetition_penalty != 1 or sampling.presence_penalty != 0 or sampling.frequency_penalty != 0


class Said:
    """How often each id occurs in a row's answer; ids of its prompt only count 0 times, but count as seen."""

    def __init__(self, prompt: Sequence[int], answer: list[int]):
        """``answer`` grows elsewhere, and this keeps up with it."""
        self._answer = answer
        self._counts = dict.fromkeys(prompt, 0)
        self._known = 0  # tokens of the answer that are counted
        self._listed: tuple[Tensor, Tensor] | None = None

    def counts(self) -> dict[int, int]:
        """Times in the answer, by id that was seen at all."""
        for token in self._answer[self._known :]:
            self._counts[token] = self._counts.get(token, 0) + 1
        if self._known < len(self._answer):
            self._known, self._listed = len(self._answer), None
        return self._counts

    def listed(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Ids and their counts, int64 ``[S]`` each."""
        counts = self.counts()
        if self._listed is None:
            self._listed = _tensors(counts, device)
        ids, times = self._listed
        return ids.to(device), times.to(device)


def penalised(logits: Tensor, places: Sequence[tuple[Sampling, Said | None, Sequence[int]]]) -> Tensor:
    """A copy of ``logits`` ``[T, V]`` after the penalties of each position: its sampling, what was said, what is ahead.

    Only ids that were seen are touched. Ids at or above V are another model's and are left out.
    """
    changed = logits.clone()
    for row, out, (sampling, said, ahead) in zip(logits, changed, places, strict=True):
        if said is None or not has_penalty(sampling):
            continue
        _write(out, row, *said.listed(logits.device), sampling)
        if ahead:
            counts = said.counts()
            again = {id_: counts.get(id_, 0) + list(ahead).count(id_) for id_ in ahead}
            _write(out, row, *_tensors(again, logits.device), sampling)
    return changed


def _write(out: Tensor, logits: Tensor, ids: Tensor, times: Tensor, sampling: Sampling) -> None:
    """Penalise ``ids`` ``[S]`` that occur ``times`` in the answer: from ``logits`` ``[V]`` into ``out`` ``[V]``."""
    inside = ids < len(logits)
    ids, times = ids[inside], times[inside]
    seen = logits[ids]
    seen = torch.where(seen > 0, seen / sampling.repetition_penalty, seen * sampling.repetition_penalty)
    out[ids] = seen - sampling.frequency_penalty * times - sampling.presence_penalty * (times > 0)


def _tensors(counts: dict[int, int], device: torch.device) -> tuple[Tensor, Tensor]:
    return (
        torch.tensor(list(counts), dtype=torch.long, device=device),
        torch.tensor(list(counts.values()), dtype=torch.long, device=device),
    )
