"""The random numbers are fixed for good: known answers, and equal bits in both twins."""

import os
import subprocess
import sys

import pytest
import torch

from kernels import philox
from kernels.philox.torch import gumbel, uniform
from kernels.philox.torch import philox as philox_words

KNOWN = [  # Random123's kat_vectors: counter, key, words
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]

FROZEN_BITS = [1062312510, 1036979282, 1063540553]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_known_answers(counter, key, words):
    got = philox_words(tuple(torch.tensor(c) for c in counter), tuple(torch.tensor(k) for k in key))
    assert tuple(int(word) for word in got) == words


def test_these_numbers_never_change():
    """Every seed ever written down depends on them."""
    seed, candidate, position = torch.tensor(2**62 + 12345), torch.tensor(3), torch.tensor(77)
    index = torch.tensor([0, 1, 151935])
    bits = uniform(seed, candidate, position, index, philox.TOKEN).view(torch.int32).tolist()
    assert bits == FROZEN_BITS


def test_uniform_is_inside_the_open_interval_and_even():
    n = 200_000
    values = uniform(torch.tensor(0), torch.tensor(1), torch.arange(n), torch.tensor(0), philox.ACCEPT).double()
    assert 0 < values.min() < 1e-4
    assert 1 - 1e-4 < values.max() < 1
    sorted_values = values.sort().values
    distance = (sorted_values - (torch.arange(n) + 0.5) / n).abs().max()  # Kolmogorov-Smirnov, 1 % level
    assert distance < 1.63 / n**0.5


def test_the_purposes_are_different_streams():
    at = (torch.tensor(5), torch.tensor(1), torch.arange(100), torch.tensor(7))
    draws = torch.stack([uniform(*at, p) for p in (philox.TOKEN, philox.DRAFT, philox.ACCEPT, philox.RESIDUAL)])
    assert draws.unique().numel() == 400


def test_gumbel_argmax_draws_from_p():
    p = torch.tensor([0.5, 0.3, 0.15, 0.05])
    n = 40_000
    noise = gumbel(torch.tensor(1), torch.tensor(0), torch.arange(n)[:, None], torch.arange(4), philox.TOKEN)
    counts = (p.log() + noise).argmax(-1).bincount(minlength=4)
    chi_square = ((counts - n * p) ** 2 / (n * p)).sum()
    assert chi_square < 16.3  # 3 degrees of freedom, 0.1 % level


TWIN = """
import torch
from kernels.philox import torch as plain, triton as device
g = torch.Generator().manual_seed(0)
for count in (1, 255, 257, 1000):
    seed = torch.randint(0, 2**63 - 1, (count,), generator=g)
    rest = [torch.randint(0, 2**32, (count,), generator=g) for _ in range(3)]
    for purpose in range(4):
        a, b = plain.uniform(seed, *rest, purpose), device.uniform(seed, *rest, purpose)
        assert torch.equal(a.view(torch.int32), b.view(torch.int32)), (count, purpose)
print("equal")
"""


def test_triton_twin_gives_the_same_bits():
    pytest.importorskip("triton", reason="triton has no wheel for this platform")
    environment = os.environ | {"TRITON_INTERPRET": "1"}  # read once, when triton is imported: so, a fresh process
    done = subprocess.run([sys.executable, "-c", TWIN], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "equal", done.stderr
