"""Memory with guards: what a compiled loop writes beside its output is seen, and what it reads beside its input counts.

A loop that writes past its row ends the process some time later, somewhere else, or never; here it fails a test.
"""

import math
from contextlib import contextmanager

import torch

GUARD = 64  # elements on both sides
PATTERN = 0xA5


@contextmanager
def guarded_output(monkeypatch):
    """What the loops allocate meanwhile has guards around it, which must be whole at the end."""
    allocate, given = torch.empty, []

    def empty(*size, dtype=torch.float32, **options):
        shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        count = math.prod(shape)
        whole = allocate(count + 2 * GUARD, dtype=dtype, **options)
        whole.view(torch.uint8).fill_(PATTERN)
        given.append(whole)
        return whole[GUARD : GUARD + count].view(shape)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "empty", empty)
        yield
    assert given, "nothing was allocated here"
    for whole in given:
        for guard in (whole[:GUARD], whole[-GUARD:]):
            assert (guard.view(torch.uint8) == PATTERN).all(), "a loop wrote outside its output"


def guarded_input(values):
    """A copy of ``values`` with NaN on both sides, which spoils whatever is computed from it."""
    whole = torch.full((values.numel() + 2 * GUARD,), math.nan, dtype=values.dtype)
    inside = whole[GUARD : GUARD + values.numel()].view(values.shape)
    return inside.copy_(values)
