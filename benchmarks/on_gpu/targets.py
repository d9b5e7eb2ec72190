"""The performance targets, compared with what was measured."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Target:
    """``found``: None where the section that measures it did not run."""

    what: str
    found: float | None
    bound: float
    at_least: bool = True

    @property
    def holds(self) -> bool | None:
        return None if self.found is None else (self.found >= self.bound) == self.at_least or self.found == self.bound

    def __str__(self) -> str:
        verdict = {None: "not measured", True: "holds", False: "MISSED"}[self.holds]
        found = "" if self.found is None else f"{self.found:.2f}, "
        return f"{self.what} {'>=' if self.at_least else '<='} {self.bound:g}: {found}{verdict}"


def targets(sections: Mapping[str, Mapping[str, Any]]) -> Iterator[Target]:
    """Of a whole run's results, by section. All are those of the 7B shape in bf16."""
    rows = sections.get("decoding", {}).get("rows", [])

    def replayed(key: str, sizes: tuple[int, ...], temperature: float | None = None, way: str = "") -> list[float]:
        return [
            (row[way] if way else row)[key]
            for row in rows
            if row["b"] in sizes and temperature in (None, row["temperature"])
        ]

    every = tuple(row["b"] for row in rows)
    yield Target("b = 8, T = 0.8, times regular", min(replayed("ratio", (8,), 0.8), default=None), 2.0)
    yield Target("b = 8, T = 0.2, times regular", min(replayed("ratio", (8,), 0.2), default=None), 3.0)
    yield Target(
        "b = 8, T = 0.8, ms/token/seq", max(replayed("ms", (8,), 0.8, "speculative"), default=None), 1.9, False
    )
    yield Target("b = 16 and 32, times regular", min(replayed("ratio", (16, 32)), default=None), 1.4)
    yield Target("any b and T, times regular", min(replayed("ratio", every), default=None), 1.0)
    long = sections.get("long-prompt", {}).get("l0", {})
    yield Target("8192 x 32 in steps of one candidate, l = 0", long.get("ratio"), 1.3, False)
    reached = [row["of_copy"] for row in sections.get("attention", {}).get("rows", []) if row["prompt"] == 8192]
    yield Target("attention at 8192, share of the copy's bandwidth", min(reached, default=None), 0.7)
