"""The prompts that decode benchmarks are run on, by name."""

import tomllib
from pathlib import Path

PROMPTS: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
