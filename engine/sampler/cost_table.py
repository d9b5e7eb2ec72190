"""T(M, context): what one verify pass of M tokens costs here, behind so much context. All that goodput, and the choice
of a batch width, know about hardware."""

import json
import os
import platform
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import torch

from engine.contract import Sampling
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.verdict import choose

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 64)
ROWS = 8  # the calibration spreads its tokens over at most so many rows
CONTEXT, FAR = 32, 1024  # tokens of prompt in front of them: next to none, and so many that attention shows
FAR_SIZES = (1, 8, 32)
REPEATS = 3  # the fastest counts: what disturbs a pass only makes it slower
ARITHMETIC = 3  # how passes compute here: raised when that changes, so that times of another way are not believed
TRUST = 8  # passes of one size seen while running that weigh as much as the calibration


class CostTable:
    """Seconds by number of tokens and context: measured once, interpolated between, refined while running.

    ``seconds``: by number of tokens, behind ``CONTEXT`` tokens of prompt; ``far``: behind ``FAR``, of some numbers.
    Refinement learns a factor per size and pulls it towards the factor of all sizes together, so that one disturbed
    pass cannot make a size look expensive for good. ``context`` is that of the step at hand.
    """

    def __init__(self, seconds: dict[int, float], far: dict[int, float] | None = None):
        self._near, self._far = _rising(seconds), _rising(far or {})
        self._seen: dict[int, tuple[float, int]] = {}  # size -> mean factor, passes
        self._overall = 1.0
        self.context = CONTEXT

    def seconds(self, tokens: int) -> float:
        """Expected seconds of a pass over ``tokens`` tokens."""
        factor, count = self._seen.get(tokens, (self._overall, 0))
        return self._calibrated(tokens) * (self._overall + (factor - self._overall) * count / (count + TRUST))

    def refine(self, tokens: int, seconds: float) -> None:
        """A pass of ``tokens`` tokens took ``seconds``."""
        factor = seconds / self._calibrated(tokens)
        self._overall += (factor - self._overall) / 16
        mean, count = self._seen.get(tokens, (factor, 0))
        count = min(count + 1, 64)  # older passes fade
        self._seen[tokens] = (mean + (factor - mean) / count, count)

    def as_dict(self) -> dict[str, dict[int, float]]:
        return {"near": self._near, "far": self._far}

    def _calibrated(self, tokens: int) -> float:
        near = _between(self._near, tokens)
        if not self._far:
            return near
        # What a token of context adds depends on the tokens that look at it.
        per_token = max(0.0, _between(self._far, tokens) - near) / (FAR - CONTEXT)
        return near + per_token * max(0, self.context - CONTEXT)


def _rising(seconds: dict[int, float]) -> dict[int, float]:
    """Fewer tokens never cost more. Where measurement says so it was disturbed, and that only makes passes slower."""
    falling = sorted(seconds, reverse=True)
    least = accumulate((seconds[size] for size in falling), min)
    return dict(sorted(zip(falling, least, strict=True)))


def _between(known: dict[int, float], size: int) -> float:
    sizes = list(known)
    at = min(bisect_left(sizes, size), len(sizes) - 1)
    if at == 0 or sizes[at] == size:
        return known[sizes[at]]
    low, high = sizes[at - 1], sizes[at]
    slope = (known[high] - known[low]) / (high - low)
    return known[low] + slope * (size - low)  # beyond the last size: on along the last slope


def measure(model: RaggedModel, context: int, between: Callable[[], None] = lambda: None) -> CostTable:
    """Time passes of every size; about three seconds for a small model on two cores. Forgets what the model held.

    ``context``: tokens that the model can read; one that cannot read ``FAR`` of them is measured near only.
    ``between`` is called between passes and may raise to stop.
    """
    try:
        near = _fastest(model, CONTEXT, SIZES, between)
        far = _fastest(model, FAR, FAR_SIZES, between) if context >= FAR + max(FAR_SIZES) else {}
    finally:
        model.clear()
    return CostTable(near, far)


def _fastest(model: RaggedModel, context: int, sizes: Sequence[int], between: Callable[[], None]) -> dict[int, float]:
    model.prefill(list(range(1, CONTEXT + 1)))
    model.cache.stretch_prefix(context)
    seconds = dict.fromkeys(sizes, float("inf"))
    for size in list(sizes) * REPEATS:  # round after round, so that a disturbance does not hit one size only
        between()
        seconds[size] = min(seconds[size], _time(model, size))
    return seconds


def _time(model: RaggedModel, size: int) -> float:
    rows = min(size, ROWS)
    counts = [size // rows + (row < size % rows) for row in range(rows)]
    tokens = [list(range(1, count + 1)) for count in counts]
    start = time.perf_counter()
    logits = model.forward(tokens, [model.prompt_length] * rows)
    # A pass is paid for up to the chosen tokens: over a large vocabulary that is a good part of it. These tokens mean
    # nothing, so anything may follow them; a low temperature makes the choice as narrow as real text does.
    choose(logits, Sampling(temperature=0.2), has_kernels=model.has_kernels)  # also waits for the device
    return time.perf_counter() - start


def _a_time(value: float) -> float:
    if not 0 < float(value) < float("inf"):
        raise ValueError("not a time")
    return float(value)


def measured_once(
    model: RaggedModel,
    name: str,
    precision: str,
    context: int,
    folder: Path,
    between: Callable[[], None] = lambda: None,
) -> CostTable:
    """The table of this model on this machine from ``folder``, or measured now and kept there."""
    kind = f"{precision}-{model.place}-{ARITHMETIC}"
    key = f"{name}-{kind}-{platform.node()}-{torch.get_num_threads()}-{torch.__version__}"
    path = folder / ("".join(c if c.isalnum() or c in "-._" else "_" for c in key) + ".json")
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        near = {size: _a_time(kept["near"][str(size)]) for size in SIZES}
        far = {int(size): _a_time(value) for size, value in kept["far"].items()}
        return CostTable(near, far)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        table = measure(model, context, between)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(table.as_dict()), encoding="utf-8")
        part.replace(path)
    except OSError:
        pass  # a cache folder that cannot be written costs two seconds a start, no more
    return table
