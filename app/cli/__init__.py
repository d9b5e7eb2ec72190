"""The headless commands. Nothing here imports Qt, and torch only when a model is loaded."""

from app.cli.commands import guarded, main

__all__ = ["guarded", "main"]
