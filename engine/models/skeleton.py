"""A transformers module before it has weights, and the errors of a folder that cannot be read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from accelerate import init_empty_weights
from safetensors import SafetensorError
from torch import nn
from transformers import AutoModelForCausalLM, PretrainedConfig

from engine.contract import BasslineError
from engine.models.causal_lm import CausalLM
from engine.models.errors import UnsupportedModel, WrongFile


def empty_model(config: PretrainedConfig) -> CausalLM:
    """The module with parameters that take no memory yet; its buffers (rotary frequencies) are real."""
    with init_empty_weights(include_buffers=False):
        model: CausalLM = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    return model.eval()


def drop_strange_padding(config: PretrainedConfig) -> None:
    """A padding id that the embedding does not have means nothing to us, and keeps torch from making one."""
    pad, rows = getattr(config, "pad_token_id", None), getattr(config, "vocab_size", None)
    if isinstance(pad, int) and isinstance(rows, int) and not 0 <= pad < rows:
        config.pad_token_id = None


def ties_of(model: nn.Module) -> dict[str, str]:
    """Weights that are others under a second name, by that name: ``lm_head.weight`` for a tied head."""
    return dict(getattr(model, "all_tied_weights_keys", None) or {})


@contextmanager
def from_folder_errors(folder: Path) -> Iterator[None]:
    """Turn what transformers, tokenizers and safetensors raise about a bad folder into a sentence.

    They have no type for it: a tokenizer that cannot be read is a plain Exception. A lack of memory stays what it is.
    """
    try:
        yield
    except SafetensorError as error:
        raise WrongFile(f"The weights in {folder} are damaged or cut off; fetch them again.") from error
    except (BasslineError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        if "not enough memory" in str(error):  # torch's words on a CPU
            raise
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise UnsupportedModel(f"The model in {folder} cannot be loaded: {reason}") from error
