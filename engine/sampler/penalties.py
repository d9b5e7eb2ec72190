"""Repetition, presence and frequency penalties: the tokens that a row has written change what it writes next.

At a position inside a draft, the drafts before it count as written. So each distribution is that of plain decoding at
the same place, and speculation stays lossless.
"""

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.contract import Sampling
from engine.sampler.streams import to_device


def has_penalty(sampling: Sampling) -> bool:
    return sampling.repetition_penalty != 1 or sampling.presence_penalty != 0 or sampling.frequency_penalty != 0


class TokenCounts:
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

    def listed(self) -> tuple[Tensor, Tensor]:
        """Ids and their counts, int64 ``[S]`` each, on the host."""
        counts = self.counts()
        if self._listed is None:
            self._listed = torch.tensor(list(counts)), torch.tensor(list(counts.values()))
        return self._listed


def penalised(logits: Tensor, places: Sequence[tuple[Sampling, TokenCounts | None, Sequence[int]]]) -> Tensor:
    """A copy of ``logits`` ``[T, V]`` after the penalties of each position: its sampling, what was said, what is ahead.

    In float32 or wider. Only ids that were seen are touched. Ids at or above V are another model's and are left out.
    What was said is listed on the host and sent, so that a GPU is asked nothing.
    """
    changed = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
    strengths = [(s.repetition_penalty, s.frequency_penalty, s.presence_penalty) for s, _, _ in places]
    on_device = to_device(torch.tensor(strengths, dtype=changed.dtype), logits.device)
    # The drafts ahead come second: where they repeat what was said before, theirs is the count that holds.
    for entries in (_count_tokens(places), _ahead(places)):
        inside = entries[:, entries[1] < logits.shape[1]]
        if inside.shape[1]:
            at, ids, times = to_device(inside.contiguous(), logits.device)
            _write(changed, logits, at, ids, times, on_device)
    return changed


def _write(out: Tensor, logits: Tensor, at: Tensor, ids: Tensor, times: Tensor, strengths: Tensor) -> None:
    """Penalise ``ids`` ``[N]`` at positions ``at`` that occur ``times`` in the answer: from ``logits`` into ``out``."""
    repetition, frequency, presence = strengths[at].unbind(1)
    seen = logits[at, ids].to(out.dtype)
    seen = torch.where(seen > 0, seen / repetition, seen * repetition)
    out[at, ids] = seen - (frequency * times + presence * (times > 0))


def _count_tokens(places: Sequence[tuple[Sampling, TokenCounts | None, Sequence[int]]]) -> Tensor:
    """Position, id and count of all that rows have said: int64 ``[3, N]``, once for each of a row's positions."""
    parts = [torch.empty(3, 0, dtype=torch.long)]
    for at, (sampling, counted, _) in enumerate(places):
        if counted is not None and has_penalty(sampling):
            ids, times = counted.listed()
            parts.append(torch.stack([torch.full_like(ids, at), ids, times]))
    return torch.cat(parts, dim=1)


def _ahead(places: Sequence[tuple[Sampling, TokenCounts | None, Sequence[int]]]) -> Tensor:
    """The same of the drafts ahead of each position: counts with what was said before."""
    entries = []
    for at, (sampling, counted, ahead) in enumerate(places):
        if counted is not None and has_penalty(sampling):
            counts = counted.counts()
            entries += [(at, id_, counts.get(id_, 0) + times) for id_, times in Counter(ahead).items()]
    return torch.tensor(entries, dtype=torch.long).reshape(-1, 3).T
