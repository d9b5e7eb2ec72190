"""Drafts from a table of n-grams: what models of the target's family mostly wrote next, counted in their own answers.

It costs no pass and next to no memory, and has a guess where nothing of the prompt or a sibling repeats. A guess is
only a guess: the target decides what stays, so a poor table costs time and never a word. ``benchmarks/ngrams.py``
makes the tables in ``resources/ngrams``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

LONGEST = 4  # tokens of context
CLASSES = 10  # of how often the most frequent token followed
EMPTY = 0xFFFFFFFF  # in the place of tokens before a context shorter than LONGEST
TABLES = Path(__file__).resolve().parents[3] / "resources" / "ngrams"


@dataclass(frozen=True)
class NgramKind:
    """A guess of ``context`` tokens' context. ``prior``: share of guesses of its kind that were right."""

    context: int
    share: int
    prior: float


@dataclass(frozen=True)
class Ngrams:
    """``contexts`` uint32 ``[N, LONGEST]``, right-aligned; ``following`` uint32 ``[N]``, what mostly followed;
    ``shares`` uint8 ``[N]``, classes of how often; ``right`` float32 ``[LONGEST, CLASSES]``, how often that was so in
    answers to prompts that were not counted. ``probe_ids`` and ``probe_texts`` tell the vocabulary.
    """

    contexts: np.ndarray
    following: np.ndarray
    shares: np.ndarray
    right: np.ndarray
    probe_ids: np.ndarray
    probe_texts: np.ndarray

    @classmethod
    def read(cls, path: Path) -> "Ngrams":
        with np.load(path) as file:
            return cls(**{name: file[name] for name in file.files})

    def save(self, path: Path) -> None:
        np.savez_compressed(path, **vars(self))

    def fits(self, tokenizer: PreTrainedTokenizerBase) -> bool:
        """Whether the ids mean the same texts there. Probes suffice: a vocabulary is the same or quite another."""
        ids = self.probe_ids.tolist()
        return bool(max(ids) < len(tokenizer) and tokenizer.convert_ids_to_tokens(ids) == self.probe_texts.tolist())

    def next(self, line: Sequence[int]) -> tuple[int, NgramKind] | None:
        """The token that mostly follows the longest known end of ``line``."""
        for length in range(min(LONGEST, len(line)), 0, -1):
            if found := self._known.get(tuple(line[-length:])):
                return found
        return None

    @cached_property
    def _known(self) -> dict[tuple[int, ...], tuple[int, NgramKind]]:
        lengths = (self.contexts != EMPTY).sum(axis=1).tolist()
        habits = {
            (length, share): NgramKind(length, share, float(self.right[length - 1, share]))
            for length in range(1, LONGEST + 1)
            for share in range(CLASSES)
        }
        rows = zip(self.contexts.tolist(), lengths, self.following.tolist(), self.shares.tolist(), strict=True)
        return {
            tuple(context[LONGEST - length :]): (token, habits[length, share]) for context, length, token, share in rows
        }


def table_for(tokenizer: PreTrainedTokenizerBase) -> Ngrams | None:
    """The table that was counted with this vocabulary, if there is one."""
    return next((table for table in map(Ngrams.read, sorted(TABLES.glob("*.npz"))) if table.fits(tokenizer)), None)
