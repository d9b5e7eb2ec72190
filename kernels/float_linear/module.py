"""The product as the forward of a model's own linear layers, whose weights stay as and where they are."""

from typing import TypeVar

from torch import Tensor, nn

from kernels.float_linear.native import float_linear, serves

_Module = TypeVar("_Module", bound=nn.Module)


class RowLinear(nn.Linear):
    """``nn.Linear`` whose rows do not depend on each other, to the bit."""

    def forward(self, input: Tensor) -> Tensor:
        return float_linear(input, self.weight, self.bias)


def make_rows_independent(model: _Module) -> _Module:
    """Have all plain linear layers of ``model`` compute by the loop; it is changed and returned.

    Weights that layers share, as embedding and output do, stay shared.
    """
    for module in model.modules():
        if type(module) is nn.Linear and serves(module.weight):
            module.__class__ = RowLinear
    return model
