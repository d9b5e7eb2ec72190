"""int8 and int4 weights on a GPU, through torchao: activations stay bfloat16, weights are unpacked inside the product.

So a small GPU can hold a larger model. Its tokens are those of a slightly different model than the unquantised one.
torchao is optional: nothing else needs it.
"""

import torch
from torch import nn

from engine.models.causal_lm import CausalLM
from engine.models.errors import PrecisionNotAvailable

GROUP = 128  # int4: weights along the input that share a scale and a zero


def quantize_weights(model: CausalLM, precision: str, device: torch.device) -> CausalLM:
    """Move a bfloat16 model to ``device``, linear layers as ``int8`` or ``int4``; it is changed and returned.

    Layer by layer, so that ``device`` never holds more than the result and one layer. Embeddings, norms, and a head
    that is tied to the embedding stay bfloat16; a head of its own is int8 at least, since it decides tokens alone.
    Raises PrecisionNotAvailable without torchao, or where a layer's width does not divide into groups.
    """
    try:
        from torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_
    except ImportError:
        raise PrecisionNotAvailable(
            f"{precision} on a GPU needs the package torchao: `pip install torchao`, or choose bfloat16."
        ) from None
    head = model.get_output_embeddings()
    tied = head is not None and head.weight is model.get_input_embeddings().weight

    def is_layer(module: nn.Module, name: str) -> bool:
        return isinstance(module, nn.Linear) and module is not head

    if precision == "int4":
        _check_groups(model, head)
        # The layout of torch's own int4 product, which every GPU from Ampere on has without a further package.
        config = Int4WeightOnlyConfig(group_size=GROUP, int4_packing_format="tile_packed_to_4d")
    else:
        config = Int8WeightOnlyConfig()
    quantize_(model, config, filter_fn=is_layer, device=device)
    if head is not None and not tied:
        quantize_(model, Int8WeightOnlyConfig(), filter_fn=lambda module, name: module is head, device=device)
    return model.to(device)


def _check_groups(model: CausalLM, head: nn.Module | None) -> None:
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and module is not head and module.in_features % GROUP:
            raise PrecisionNotAvailable(
                f"int4 needs layers whose width is a multiple of {GROUP}, and {name} has {module.in_features}; "
                "choose int8 or bfloat16."
            )
