"""Attention of ragged rows over one shared copy of the prompt's keys and values (bifurcated attention)."""

import importlib.util


def why_not() -> str:
    """Why the device kernels cannot run here, a sentence; empty if they can. Loads neither torch nor triton."""
    if importlib.util.find_spec("triton") is None:
        return (
            "Triton is not installed, so attention runs in plain PyTorch; install the package triton for the kernels."
        )
    return ""
