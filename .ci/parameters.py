"""Writes docs/parameters.md from the table in engine/contract/parameters.py; a test fails where the two differ."""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.contract import parameters  # noqa: E402
from engine.sampler.names import REGISTRIES  # noqa: E402

PAGE = ROOT / "docs" / "parameters.md"
_HEAD = """\
# Parameters

Written by `python .ci/parameters.py`; change `engine/contract/parameters.py` instead. In the window those without a
star stand above the run, those with one under *Advanced*; the others are for the command line alone.

| In the window | Command line | What it does | Values | Default |
|---|---|---|---|---|
"""


def page() -> str:
    return _HEAD + "".join(f"| {' | '.join(_cells(parameter))} |\n" for parameter in parameters.PARAMETERS)


def _cells(parameter: "parameters.Parameter[Any]") -> tuple[str, ...]:
    title = f"{parameter.title} \\*" if parameter.place == parameters.ADVANCED else parameter.title
    default = parameter.default_words or f"`{parameter.default}`"
    return title if parameter.place else "", f"`{parameter.flag}`", f"{parameter.help}.", _values(parameter), default


def _values(parameter: "parameters.Parameter[Any]") -> str:
    registry = REGISTRIES.get(parameter.name)
    names = registry.forms if registry is not None else parameter.values
    return ", ".join(f"`{name}`" for name in names) or parameter.limits or "text"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
