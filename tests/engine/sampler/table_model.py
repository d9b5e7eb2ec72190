"""A target without a network: its logits are looked up by the last two tokens, so that a thousand runs take a second.

It keeps what each row was told, as a cache does, and refuses what a cache could not serve: a gap, or a row that was
never there.
"""

from types import SimpleNamespace

import torch

from engine.sampler.forward_pass import NO_FEATURES, Pass
from engine.sampler.verdict import HostVerifier

CONTEXTS = 61


class TableModel:
    """Stands in for a ``RaggedModel``. ``sharpness``: spread of the logits, in nats."""

    device = torch.device("cpu")
    has_kernels, verifier = False, HostVerifier()

    def __init__(self, vocabulary, sharpness=2.0, seed=0):
        self.vocabulary = vocabulary
        embeddings = SimpleNamespace(num_embeddings=vocabulary)
        self.module = SimpleNamespace(get_input_embeddings=lambda: embeddings)
        generator = torch.Generator().manual_seed(seed)
        self._table = torch.randn(CONTEXTS, vocabulary, generator=generator).double() * sharpness
        self._prompt: list[int] = []
        self._rows: list[list[int]] = []

    def prefill(self, prompt, between_chunks=lambda done: True, features=NO_FEATURES):
        self._prompt, self._rows = list(prompt), []
        return Pass(self.logits_after([*prompt])[None])

    def forward(self, tokens, starts, *, last_only=False, features=NO_FEATURES):
        self._rows += [[] for _ in range(len(tokens) - len(self._rows))]
        logits = []
        for row, fresh, start in zip(self._rows, tokens, starts, strict=False):
            known = start - len(self._prompt)
            assert 0 <= known <= len(row), "a token would be written behind a gap"
            del row[known:]
            for token in fresh:
                row.append(token)
                logits.append(self.logits_after(self._prompt + row))
        ends = torch.tensor([len(fresh) for fresh in tokens]).cumsum(0) - 1
        stacked = torch.stack(logits)
        return Pass(stacked[ends] if last_only else stacked)

    def keep(self, rows):
        self._rows = [self._rows[at] if at < len(self._rows) else [] for at in rows]

    def remember(self, row, tokens):
        known = self._rows[row] if row < len(self._rows) else []
        assert known[: len(tokens) - 1] == tokens[:-1], "what is remembered was never read"

    def logits_after(self, tokens):
        """``[V]``."""
        before, last = tokens[-2] if len(tokens) > 1 else 0, tokens[-1]
        return self._table[(7 * before + 13 * last + len(tokens) // 16) % CONTEXTS]
