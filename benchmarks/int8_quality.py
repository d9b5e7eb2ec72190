"""What does int8 cost in quality? Perplexity of code and agreement of the likeliest token, int8 against float32.

    python -m benchmarks.int8_quality [MODEL ...]

The text is this Python's own standard library: 512 tokens from the middle of each of a dozen modules. Nothing is
timed, so other programs do not disturb the figures.
"""

import argparse
import math
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.target_models import loaded
from engine.contract import Request
from engine.device import prepare_environment
from engine.models.loader import LoadedModel

MODELS = ("smollm2-135m", "qwen2.5-coder-0.5b")
MODULES = (
    "argparse",
    "ast",
    "calendar",
    "configparser",
    "dataclasses",
    "difflib",
    "fractions",
    "heapq",
    "inspect",
    "shutil",
    "statistics",
    "tokenize",
)
WINDOW = 512  # tokens
GATE = 0.02  # perplexity may rise by so much


@dataclass(frozen=True)
class Quality:
    """Over all windows: perplexities, and the share of positions where both models like the same token best."""

    float32: float
    int8: float
    agreement: float
    tokens: int

    @property
    def rise(self) -> float:
        return self.int8 / self.float32 - 1


def windows(model: LoadedModel, modules: tuple[str, ...] = MODULES) -> Iterator[torch.Tensor]:
    """Token ids ``[1, WINDOW]`` from the middle of each module."""
    folder = Path(sysconfig.get_path("stdlib"))
    for name in modules:
        ids = model.encode(Request((folder / f"{name}.py").read_text(encoding="utf-8"), seed=0, mode="completion"))
        start = max(0, (len(ids) - WINDOW) // 2)
        yield torch.tensor([ids[start : start + WINDOW]])


@torch.inference_mode()
def compare(int8: LoadedModel, float32: LoadedModel, modules: tuple[str, ...] = MODULES) -> Quality:
    losses = [0.0, 0.0]
    agreed = tokens = 0
    for ids in windows(float32, modules):
        logits = [model.module(ids).logits[0, :-1].float() for model in (float32, int8)]
        for place, scores in enumerate(logits):
            losses[place] += torch.nn.functional.cross_entropy(scores, ids[0, 1:], reduction="sum").item()
        agreed += int((logits[0].argmax(-1) == logits[1].argmax(-1)).sum())
        tokens += ids.shape[1] - 1
    return Quality(math.exp(losses[0] / tokens), math.exp(losses[1] / tokens), agreed / tokens, tokens)


def main() -> None:
    prepare_environment()
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("models", nargs="*", default=MODELS)
    print(f"| model | tokens | perplexity float32 | int8 | rise | within {GATE:.0%} | same likeliest token |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.parse_args().models:
        int8, float32 = (loaded(name, precision, "cpu") for precision in ("int8", "float32"))
        found = compare(int8, float32)
        print(
            f"| {float32.name} | {found.tokens:,} | {found.float32:.3f} | {found.int8:.3f} | {found.rise:+.1%} "
            f"| {'yes' if found.rise <= GATE else 'no'} | {found.agreement:.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
