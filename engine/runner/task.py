"""What a box is asked to do: it crosses into the box as one JSON object. The standard library only."""

import json
from dataclasses import dataclass, field
from typing import Any, TypeVar

AnyTask = TypeVar("AnyTask", bound="BoxTask")


@dataclass(frozen=True)
class BoxTask:
    """What every task has. ``key`` signs its records; ``seconds``: what the box may compute."""

    key: str = field(default="", kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)

    def to_bytes(self) -> bytes:
        """ASCII, so that lone surrogates in a model's text survive the trip."""
        return json.dumps(vars(self)).encode()

    @classmethod
    def from_bytes(cls: type[AnyTask], data: bytes) -> AnyTask:
        fields: dict[str, Any] = json.loads(data)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**{**fields, **lists})


@dataclass(frozen=True)
class Task(BoxTask):
    """Tests, or the candidate that they are about.

    ``solution``: the candidate's text, empty where the candidate has a box of its own, None to list the tests only.
    ``tests``: a file of tests as ``forms.TestSource.to_data`` has it; empty in the candidate's box. ``ids``: the tests
    to run now, ``every``: all of the file, ``canaries``: names of tests that must fail. ``entry``: the function that
    ``check(candidate)`` is about. ``limit_s``: what one test may take.
    """

    solution: str | None
    tests: dict[str, Any] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    every: tuple[str, ...] = ()
    canaries: tuple[str, ...] = ()
    entry: str = ""
    limit_s: float = 0.0


@dataclass(frozen=True)
class Observation(BoxTask):
    """A candidate's text, ``solution``, and inputs to call it with.

    ``inputs``: each ``{"calls": [[name, [argument, ...]], ...]}`` or ``{"given": text}``; ``setup``: lines that import
    what arguments are written with; ``twice``: call it again, to see what depends on chance. ``call_s`` is for each
    input, ``total_s`` for all.
    """

    solution: str
    inputs: tuple[dict[str, Any], ...]
    setup: str = ""
    twice: bool = True
    call_s: float = 1.0
    total_s: float = 10.0
