"""T(M): what one verify pass of M tokens costs on this machine. The only thing goodput knows about hardware."""

import json
import os
import platform
import time
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import torch

from engine.contract import Sampling
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.sampling import distributions

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 64)
ROWS = 8  # the calibration spreads its tokens over at most so many rows
CONTEXT = 32  # tokens of prompt in front of them
REPEATS = 3  # the fastest counts: what disturbs a pass only makes it slower
TRUST = 8  # passes of one size seen while running that weigh as much as the calibration


class CostTable:
    """Seconds by number of tokens: measured once, interpolated between, refined while running.

    Refinement learns a factor per size and pulls it towards the factor of all sizes together, so that one disturbed
    pass cannot make a size look expensive for good.
    """

    def __init__(self, seconds: dict[int, float]):
        self._sizes = sorted(seconds)
        # Fewer tokens never cost more. Where measurement says so it was disturbed, and that only makes passes slower.
        falling = (seconds[size] for size in reversed(self._sizes))
        self._seconds = list(accumulate(falling, min))[::-1]
        self._seen: dict[int, tuple[float, int]] = {}  # size -> mean factor, passes
        self._overall = 1.0

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

    def as_dict(self) -> dict[int, float]:
        return dict(zip(self._sizes, self._seconds, strict=True))

    def _calibrated(self, tokens: int) -> float:
        at = min(bisect_left(self._sizes, tokens), len(self._sizes) - 1)
        if at == 0 or self._sizes[at] == tokens:
            return self._seconds[at]
        low, high = self._sizes[at - 1], self._sizes[at]
        slope = (self._seconds[at] - self._seconds[at - 1]) / (high - low)
        return self._seconds[at - 1] + slope * (tokens - low)  # beyond the last size: on along the last slope


def measure(model: RaggedModel, between: Callable[[], None] = lambda: None) -> CostTable:
    """Time passes of every size; about two seconds for a small model on two cores. Forgets what the model held.

    ``between`` is called between passes and may raise to stop.
    """
    model.prefill(list(range(1, CONTEXT + 1)))
    seconds = dict.fromkeys(SIZES, float("inf"))
    try:
        for size in SIZES * REPEATS:  # round after round, so that a disturbance does not hit one size only
            between()
            seconds[size] = min(seconds[size], _time(model, size))
    finally:
        model.clear()
    return CostTable(seconds)


def _time(model: RaggedModel, size: int) -> float:
    rows = min(size, ROWS)
    counts = [size // rows + (row < size % rows) for row in range(rows)]
    tokens = [list(range(1, count + 1)) for count in counts]
    start = time.perf_counter()
    logits = model.forward(tokens, [CONTEXT] * rows)
    # A pass is paid for up to the chosen tokens: over a large vocabulary that is a good part of it.
    distributions(logits, Sampling()).log_probs.argmax(-1).tolist()  # also waits for the device
    logits.logsumexp(-1).tolist()
    return time.perf_counter() - start


def measured_once(
    model: RaggedModel, name: str, precision: str, folder: Path, between: Callable[[], None] = lambda: None
) -> CostTable:
    """The table of this model on this machine from ``folder``, or measured now and kept there."""
    key = f"{name}-{precision}-{model.device.type}-{platform.node()}-{torch.get_num_threads()}-{torch.__version__}"
    path = folder / ("".join(c if c.isalnum() or c in "-._" else "_" for c in key) + ".json")
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        seconds = {size: float(kept[str(size)]) for size in SIZES}
        if not all(0 < value < float("inf") for value in seconds.values()):
            raise ValueError("not times")
        return CostTable(seconds)
    except (OSError, ValueError, LookupError, TypeError):
        table = measure(model, between)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(table.as_dict()), encoding="utf-8")
        part.replace(path)
    except OSError:
        pass  # a cache folder that cannot be written costs two seconds a start, no more
    return table
