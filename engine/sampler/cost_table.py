"""T(M, context): what one verify pass of M tokens costs here, behind so much context. All that goodput, and the choice
of a batch width, know about hardware."""

import json
import logging
import os
import platform
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from engine.contract import Sampling
from engine.sampler.disturbance import Disturbance, glance, is_busy
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.verdict import choose

_log = logging.getLogger(__name__)

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 64)
ROWS = 8  # the calibration spreads its tokens over at most so many rows
CONTEXT, FAR = 32, 1024  # tokens of prompt in front of them: next to none, and so many that attention shows
FAR_SIZES = (1, 8, 32)
REPEATS = 3  # the fastest counts: what disturbs a pass only makes it slower
FORMAT = 2  # of the file
ARITHMETIC = 3  # how passes compute here: raised when that changes, so that times of another way are not believed
TRUST = 8  # passes of one size seen while running that weigh as much as the calibration


@dataclass(frozen=True)
class Lessons:
    """What running steps taught: how many times as long as measured they take.

    ``overall``: all of them, lately; ``seen``: by number of tokens, the mean and how many passes stand behind it.
    """

    overall: float = 1.0
    seen: Mapping[int, tuple[float, int]] = field(default_factory=dict)


class CostTable:
    """Seconds by number of tokens and context: measured once, interpolated between, refined while running.

    ``seconds``: by number of tokens, behind ``CONTEXT`` tokens of prompt; ``far``: behind ``FAR``, of some numbers.
    Refinement learns a factor per size and pulls it towards the factor of all sizes together, so that one disturbed
    pass cannot make a size look expensive for good. ``context`` is that of the step at hand. ``disturbed``: the share
    of the processor that others took while it was measured, None if that is not known; ``path``: where it is kept.
    """

    def __init__(self, seconds: dict[int, float], far: dict[int, float] | None = None, disturbed: float | None = None):
        self._near, self._far, self.disturbed = _rising(seconds), _rising(far or {}), disturbed
        self.lessons = Lessons()
        self.context = CONTEXT
        self.path: Path | None = None

    @property
    def lessons(self) -> Lessons:
        """Of the steps so far; may be set back to what was known before some of them."""
        return Lessons(self._overall, dict(self._seen))

    @lessons.setter
    def lessons(self, lessons: Lessons) -> None:
        self._overall, self._seen = lessons.overall, dict(lessons.seen)

    @property
    def is_doubtful(self) -> bool:
        """It was measured while the machine had other things to do, and should be measured again."""
        return is_busy(self.disturbed)

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

    def as_dict(self) -> dict[str, Any]:
        """What a file holds. Of what was learned no more is kept than a few new passes outweigh."""
        seen = {size: (factor, min(count, TRUST)) for size, (factor, count) in self._seen.items()}
        lessons = {"overall": self._overall, "seen": seen}
        parts = {"near": self._near, "far": self._far, "disturbed": self.disturbed, "lessons": lessons}
        return {"format": FORMAT, **parts}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> "CostTable":
        """Raises ValueError, LookupError, TypeError or AttributeError for what ``as_dict`` never wrote.

        A table of format 1 says nothing about the machine at that time, and is taken for one of a busy machine.
        """
        near = {size: _a_time(kept["near"][str(size)]) for size in SIZES}
        far = {int(size): _a_time(value) for size, value in kept["far"].items()}
        if (version := kept.get("format", 1)) not in (1, FORMAT):
            raise ValueError(f"a table of format {version}")
        if version == 1:
            return cls(near, far, disturbed=1.0)
        disturbed = kept["disturbed"]
        table = cls(near, far, None if disturbed is None else float(disturbed))
        lessons = kept["lessons"]
        seen = {int(size): (_a_time(factor), int(count)) for size, (factor, count) in lessons["seen"].items()}
        table.lessons = Lessons(_a_time(lessons["overall"]), seen)
        return table

    def keep(self) -> None:
        """Write it down, if there is a place for it. A folder that cannot be written costs a measurement a start."""
        if self.path is None:
            return
        part = self.path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(self.as_dict()), encoding="utf-8")
            part.replace(self.path)
        except OSError:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: Path) -> "CostTable | None":
        """The table that was kept at ``path``; None if there is none that can be read."""
        try:
            table = cls.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None
        table.path = path
        return table

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
    watch = Disturbance()
    try:
        near = _fastest(model, CONTEXT, SIZES, between)
        far = _fastest(model, FAR, FAR_SIZES, between) if context >= FAR + max(FAR_SIZES) else {}
    finally:
        model.clear()
    return CostTable(near, far, watch.share())


def better(old: CostTable, new: CostTable) -> CostTable:
    """What is known of a machine that was measured twice, the first time disturbed.

    An undisturbed measurement stands alone. Two disturbed ones are each too slow somewhere, and never too fast.
    """
    if not new.is_doubtful:
        return new
    tables = [(old.as_dict()[part], new.as_dict()[part]) for part in ("near", "far")]
    near, far = ({size: min(a[size], b[size]) for size in a.keys() & b.keys()} for a, b in tables)
    disturbed = [table.disturbed for table in (old, new) if table.disturbed is not None]
    return CostTable(near, far, min(disturbed))


def _fastest(model: RaggedModel, context: int, sizes: Sequence[int], between: Callable[[], None]) -> dict[int, float]:
    model.prefill(list(range(1, CONTEXT + 1)))
    model.cache.extend_prefix(context)
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
    logits = model.forward(tokens, [model.prompt_length] * rows).logits
    # A pass is paid for up to the chosen tokens: over a large vocabulary that is a good part of it. These tokens mean
    # nothing, so anything may follow them; a low temperature makes the choice as narrow as real text does.
    choose(logits, Sampling(temperature=0.2), model.verifier)  # also waits for the device
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
    """The table of this model on this machine from ``folder``, or measured now and kept there.

    One that was measured while the machine was busy is measured again as soon as it is not.
    """
    kind = f"{precision}-{model.place}-{ARITHMETIC}"
    key = f"{name}-{kind}-{platform.node()}-{torch.get_num_threads()}-{torch.__version__}"
    path = folder / ("".join(c if c.isalnum() or c in "-._" else "_" for c in key) + ".json")
    kept = CostTable.read(path)
    if kept is not None and not (kept.is_doubtful and not is_busy(glance())):
        _log.info("cost table read from %s: %s", path, kept.as_dict())
        return kept
    return measured_again(model, kept, context, path, between)


def measured_again(
    model: RaggedModel, kept: CostTable | None, context: int, path: Path, between: Callable[[], None]
) -> CostTable:
    """A new measurement, with what is of use of the one before; it is kept at ``path``."""
    table = measure(model, context, between)
    _log.info("cost table measured: %s", table.as_dict())
    if kept is not None:
        table = better(kept, table)
    table.path = path
    table.keep()
    return table
