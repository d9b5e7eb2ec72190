"""Repetition, presence and frequency penalties: what a row has said changes what it says next.

At a position inside a draft, the drafts before it count as said. So each distribution is that of plain decoding at
the same place, and speculation stays lossless.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

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
    start = 0
    # Positions of one row share what it has said; only the drafts ahead of them differ.
    for _, group in groupby(places, lambda place: id(place[1])):
        of_row = list(group)
        (sampling, said, _), rows = of_row[0], slice(start, start + len(of_row))
        start += len(of_row)
        if said is None or not has_penalty(sampling):
            continue
        _write(changed[rows], logits[rows], *said.listed(logits.device), sampling)
        counts = said.counts()
        for at, (_, _, ahead) in zip(range(rows.start, rows.stop), of_row, strict=True):
            if ahead:
                times = Counter(ahead)
                times.update({id_: counts[id_] for id_ in times if id_ in counts})
                _write(changed[at : at + 1], logits[at : at + 1], *_tensors(times, logits.device), sampling)
    return changed


def _write(out: Tensor, logits: Tensor, ids: Tensor, times: Tensor, sampling: Sampling) -> None:
    """Penalise ``ids`` ``[S]`` that occur ``times`` in the answer: from ``logits`` ``[T, V]`` into ``out``."""
    inside = ids < logits.shape[1]
    ids, times = ids[inside], times[inside]
    seen = logits[:, ids]
    seen = torch.where(seen > 0, seen / sampling.repetition_penalty, seen * sampling.repetition_penalty)
    out[:, ids] = seen - (sampling.frequency_penalty * times + sampling.presence_penalty * (times > 0))


def _tensors(counts: Mapping[int, int], device: torch.device) -> tuple[Tensor, Tensor]:
    return (
        torch.tensor(list(counts), dtype=torch.long, device=device),
        torch.tensor(list(counts.values()), dtype=torch.long, device=device),
    )
