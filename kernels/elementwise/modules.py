"""The loops as modules that take the place of a model's own norms and activations, where those compute the same."""

from typing import TypeVar

import torch
from torch import Tensor, nn

from kernels.elementwise.native import rms_norm, serves, silu

_Module = TypeVar("_Module", bound=nn.Module)

_SAME = 1e-5  # how far two ways of adding up a row may differ


class Norm(nn.Module):
    """Stands where a root mean square norm stood."""

    weight: Tensor

    def __init__(self, weight: Tensor, eps: float):
        super().__init__()
        self.register_buffer("weight", weight, persistent=False)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps)


class Silu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return silu(x)


@torch.inference_mode()
def compile_elementwise(model: _Module) -> _Module:
    """Put compiled loops in the places of norms and SiLU activations; ``model`` is changed and returned.

    A module's name only makes it a candidate: it is replaced if it gives the same on a random input. Norms that add 1
    to their weight, or that do anything else, stay as they are.
    """
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            other = _compiled_twin(child)
            if other is not None:
                setattr(parent, name, other)
    return model


def _compiled_twin(module: nn.Module) -> nn.Module | None:
    kind, weight = type(module).__name__, getattr(module, "weight", None)
    eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    twin: nn.Module
    if kind.endswith("RMSNorm") and isinstance(weight, Tensor) and isinstance(eps, float):
        twin, probe = Norm(weight.detach().contiguous(), eps), torch.randn(3, *weight.shape)
    elif kind in ("SiLU", "SiLUActivation"):
        twin, probe = Silu(), torch.linspace(-100, 100, 4096)
    else:
        return None
    if weight is not None and (weight.dim() != 1 or not serves(weight)):
        return None
    return twin if torch.allclose(module(probe), twin(probe), rtol=_SAME, atol=_SAME) else None
