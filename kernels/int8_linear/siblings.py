"""Layers that read the same input (q, k and v; gate and up) as one product: four per transformer layer, not seven.

The swap is generic. One pass over the model shows which layers of one parent were given the very same tensor; the
first of them that is called then computes all, and the others return their part of it.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

from kernels.int8_linear.module import Int8Linear
from kernels.int8_linear.product import int8_linear, pack

_Module = TypeVar("_Module", bound=nn.Module)


class SharedProduct:
    """The product of one input with the weights of several layers, computed once for all of them."""

    def __init__(self, layers: list[Int8Linear]):
        quantized, scales = zip(*(layer.packed.unpack() for layer in layers), strict=True)
        self.packed = pack(torch.cat(quantized), torch.cat(scales))
        self.widths = [layer.out_features for layer in layers]
        self._input: torch.Tensor | None = None
        self._parts: list[torch.Tensor] = []

    def part(self, index: int, x: torch.Tensor) -> torch.Tensor:
        """Float32 ``[..., out]`` of layer ``index``: a view of the whole product, for this layer to keep."""
        if x is not self._input:
            self._parts = list(int8_linear(x, self.packed).split(self.widths, dim=-1))
            self._input = x  # held, so that no other tensor can take its place in memory
        part = self._parts[index]
        if index == len(self.widths) - 1:  # layers are called in order; what was read is let go
            self._input, self._parts = None, []
        return part


class Int8Sibling(nn.Module):
    """One of several layers with a product in common; stands where an ``Int8Linear`` stood, and gives the same bits."""

    bias: torch.Tensor | None

    def __init__(self, product: SharedProduct, index: int, layer: Int8Linear):
        super().__init__()
        self.product, self.index = product, index
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.register_buffer("bias", layer.bias, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Float32 ``[..., in]`` to float32 ``[..., out]``."""
        part = self.product.part(self.index, x)
        return part if self.bias is None else part.add_(self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, of={self.product.widths}"


def join_siblings(model: _Module, run: Callable[[], object]) -> _Module:
    """Give layers of one parent that read the same input a common product; ``model`` is changed and returned.

    ``run`` calls the model once, on anything: what it reads does not matter, only who reads what.
    """
    for parent, names in _families(model, run):
        layers = [getattr(parent, name) for name in names]
        product = SharedProduct(layers)
        for index, (name, layer) in enumerate(zip(names, layers, strict=True)):
            setattr(parent, name, Int8Sibling(product, index, layer))
    return model


def _families(model: nn.Module, run: Callable[[], object]) -> list[tuple[nn.Module, list[str]]]:
    """Parents, and the names of their layers that were given one and the same tensor, in the order of the calls."""
    named = [
        (parent, name, layer)
        for parent in model.modules()
        for name, layer in parent.named_children()
        if isinstance(layer, Int8Linear)
    ]
    calls: list[tuple[int, torch.Tensor]] = []  # index into ``named``, and the input itself: ids of the dead are reused
    hooks = [
        layer.register_forward_pre_hook(lambda _, args, index=index: calls.append((index, args[0])))
        for index, (_, _, layer) in enumerate(named)
    ]
    try:
        with torch.inference_mode():
            run()
    finally:
        for hook in hooks:
            hook.remove()
    readers: defaultdict[tuple[int, int], list[int]] = defaultdict(list)  # by input and parent
    for index, tensor in calls:
        readers[id(tensor), id(named[index][0])].append(index)
    once = {index for index, _ in calls if sum(index == other for other, _ in calls) == 1}
    return [
        (named[indices[0]][0], [named[index][1] for index in indices])
        for indices in readers.values()
        if len(indices) > 1 and once.issuperset(indices)
    ]
