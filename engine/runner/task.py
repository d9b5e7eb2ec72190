"""What a box is asked to do: it crosses into the box as one JSON object. The standard library only."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    """The one task of a box.

    ``solution``: the candidate's text, empty where the candidate has a box of its own, None to list the tests only.
    ``tests``: a file of tests as ``forms.TestSource.to_data`` has it; empty in the candidate's box. ``ids``: the tests
    to run now, ``every``: all of the file, ``canaries``: names of tests that must fail. ``entry``: the function that
    ``check(candidate)`` is about. ``limit_s``: what one test may take; ``seconds``: what the box may compute.
    ``key`` signs its records.
    """

    solution: str | None
    tests: dict[str, Any] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    every: tuple[str, ...] = ()
    canaries: tuple[str, ...] = ()
    entry: str = ""
    limit_s: float = 0.0
    key: str = ""
    seconds: float = 0.0

    def to_bytes(self) -> bytes:
        """ASCII, so that lone surrogates in a model's text survive the trip."""
        return json.dumps(vars(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Task":
        fields: dict[str, Any] = json.loads(data)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**{**fields, **lists})
