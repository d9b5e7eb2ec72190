"""Every way that random numbers can fall, one world after another, each with its chance: exact where sampling is not.

In a world a draw by one counter from one distribution is decided once, however often it is asked for, as the numbers
behind a seed are. Coins take one of a few values, between which no decision of the test lies.
"""

import math
from contextlib import contextmanager
from itertools import pairwise

import torch

from kernels.acceptance import torch as acceptance


class Worlds:
    """``for chance in worlds: ...``: once for every world. ``cuts``: all probabilities that coins are compared with."""

    def __init__(self, cuts):
        edges = sorted({0.0, 1.0, *cuts})
        self._coins = [((low + high) / 2, high - low) for low, high in pairwise(edges)]
        self._path: list[int] = []

    def __iter__(self):
        while True:
            self._known, self._sizes, self._chance = {}, [], 1.0
            yield self
            del self._path[len(self._sizes) :]
            while self._path and self._path[-1] == self._sizes[len(self._path) - 1] - 1:
                self._path.pop()
            if not self._path:
                return
            self._path[-1] += 1

    @property
    def chance(self):
        """Of this world, as far as it was asked."""
        return self._chance

    def _decide(self, key, options):
        """One of ``options``, pairs of a value and its chance."""
        if key not in self._known:
            options = [option for option in options if option[1] > 0]
            at = len(self._sizes)
            self._sizes.append(len(options))
            if at == len(self._path):
                self._path.append(0)
            value, chance = options[self._path[at]]
            self._known[key], self._chance = value, self._chance * chance
        return self._known[key]

    def draw(self, ids, log_weights, counter, purpose):
        """In the place of ``kernels.acceptance.torch.draw``."""
        weights = log_weights.double().softmax(-1)
        drawn = []
        for at, own in enumerate(weights.tolist()):
            options = list(zip(ids[at].tolist(), own, strict=True))
            place = tuple(int(part[at]) for part in counter)
            drawn.append(self._decide((purpose, place, tuple(round(p, 9) for p in own)), options))
        return torch.tensor(drawn)

    def uniform(self, seed, candidate, position, index, purpose):
        """In the place of ``kernels.philox.torch.uniform``, for coins."""
        counters = zip(seed.tolist(), candidate.tolist(), position.tolist(), strict=True)
        return torch.tensor([self._decide((purpose, place), self._coins) for place in counters])

    @contextmanager
    def decide(self, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(acceptance, "draw", self.draw)
            patch.setattr(acceptance, "uniform", self.uniform)
            yield


def total_variation(found, want):
    """Between two dictionaries of chances."""
    return math.fsum(abs(found.get(key, 0.0) - want.get(key, 0.0)) for key in {*found, *want}) / 2
