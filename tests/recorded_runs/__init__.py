"""Thirty runs whose texts, token counts and verdicts were recorded: what no rename and no refactoring may change.

``python -m tests.recorded_runs`` records them again, after a change that is meant to change texts.
"""
