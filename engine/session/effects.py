"""What a run's driver wants done: a message to the engine, a test to be run or ended, or something for the user."""

from dataclasses import dataclass

from engine.contract import Message
from engine.runner.protocol import CancelTests, RunTests


@dataclass(frozen=True)
class ConsentQuestion:
    """Ask the user before any candidate is tested; ``kind`` as in ConsentNeeded. Asked once for all that wait."""

    kind: str
    sentence: str


@dataclass(frozen=True)
class RefusedTests:
    """The tests cannot be used, and why; said once for a text."""

    sentence: str


@dataclass(frozen=True)
class FirstPass:
    """The run was to end with its first pass, and ``candidate`` is it; ``stopped``: others were still being written."""

    candidate: int
    stopped: bool


Effect = Message | RunTests | CancelTests | ConsentQuestion | RefusedTests | FirstPass


@dataclass(frozen=True)
class TestPolicy:
    """``as_finished``: candidates are tested as they finish. ``stop_at_first_pass``: so they are, until one passes."""

    as_finished: bool = False
    stop_at_first_pass: bool = False
