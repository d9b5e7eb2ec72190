"""Layers that read one input share one product, and nobody can tell from the result."""

import pytest
import torch
from torch import nn

from kernels.int8_linear import Int8Linear, available, join_siblings, replace_linears
from kernels.int8_linear.siblings import Int8Sibling

pytestmark = pytest.mark.skipif(not available(), reason="this torch has no FBGEMM")


class Block(nn.Module):
    """Three readers of one input, one of another, and one that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(32, 48), nn.Linear(32, 8), nn.Linear(32, 8, bias=False)
        self.out, self.again = nn.Linear(48, 32), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = self.q(x) + torch.cat([self.k(x), self.v(x)] * 3, dim=-1)
        return self.again(self.again(self.out(mixed)))


class Tower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


@pytest.fixture
def tower() -> nn.Module:
    torch.manual_seed(3)
    return replace_linears(Tower()).eval()


@torch.inference_mode()
def test_the_same_bits_alone_and_in_a_batch(tower: nn.Module) -> None:
    inputs = [torch.randn(1, 5, 32), torch.randn(1, 1, 32), torch.zeros(2, 3, 32)]
    before = [tower(x) for x in inputs]
    join_siblings(tower, lambda: tower(inputs[0]))
    assert [torch.equal(tower(x), y) for x, y in zip(inputs, before, strict=True)] == [True] * 3


def test_only_readers_of_the_same_input_are_joined(tower: nn.Module) -> None:
    join_siblings(tower, lambda: tower(torch.randn(1, 2, 32)))
    for block in tower.blocks:
        kinds = {name: type(layer) for name, layer in block.named_children()}
        assert kinds == dict.fromkeys("qkv", Int8Sibling) | {"out": Int8Linear, "again": Int8Linear}
        assert block.q.product is block.k.product is block.v.product


@torch.inference_mode()
def test_a_product_is_of_its_own_input_even_when_not_all_parts_were_read(tower: nn.Module) -> None:
    block = tower.blocks[0]
    lone = {name: getattr(block, name) for name in "qkv"}
    x, y = torch.randn(1, 4, 32), torch.randn(1, 4, 32)
    want = {name: (layer(x), layer(y)) for name, layer in lone.items()}
    join_siblings(tower, lambda: tower(x))
    block.q(x)  # k and v of x are never asked for
    assert torch.equal(block.k(y), want["k"][1])
    assert torch.equal(block.v(y), want["v"][1])
    assert torch.equal(block.v(x), want["v"][0])


@torch.inference_mode()
def test_nothing_of_a_pass_is_kept(tower: nn.Module) -> None:
    join_siblings(tower, lambda: tower(torch.randn(1, 2, 32)))
    tower(torch.randn(1, 64, 32))
    assert all(b.q.product._input is None and b.q.product._parts == [] for b in tower.blocks)
