"""What goes in, what comes out, and who answers. Frozen dataclasses; no torch, no Qt.

Three engines obey this contract (sampler, server, scripted) and two callers use it (window, command
line), so an engine can become another process without a change above it.
"""

from engine.contract.api import Emit, Engine, Mailbox
from engine.contract.errors import BadRequest, BasslineError, LoadCancelled
from engine.contract.events import (
    CandidateFinished,
    Closed,
    Event,
    LoadFailed,
    Loading,
    Metrics,
    PromptProgress,
    Ready,
    RunFinished,
    RunStarted,
    StepDone,
    TextAdded,
)
from engine.contract.request import (
    Add,
    Cancel,
    Close,
    Generate,
    Load,
    Message,
    ModelChoice,
    Request,
    Sampling,
    Speculation,
    Turn,
)
from engine.contract.states import CandidateState, RunOutcome, StopReason

__all__ = [
    "Add",
    "BadRequest",
    "BasslineError",
    "Cancel",
    "CandidateFinished",
    "CandidateState",
    "Close",
    "Closed",
    "Emit",
    "Engine",
    "Event",
    "Generate",
    "Load",
    "LoadCancelled",
    "LoadFailed",
    "Loading",
    "Mailbox",
    "Message",
    "Metrics",
    "ModelChoice",
    "PromptProgress",
    "Ready",
    "Request",
    "RunFinished",
    "RunOutcome",
    "RunStarted",
    "Sampling",
    "Speculation",
    "StepDone",
    "StopReason",
    "TextAdded",
    "Turn",
]
