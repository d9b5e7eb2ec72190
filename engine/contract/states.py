"""What becomes of a candidate and of a run, by an engine's word. ``--json`` and the history hold the values."""

from enum import StrEnum


class CandidateState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"  # it ended by itself
    CUT = "cut"  # by length or budget
    STOPPED = "stopped"  # by the user
    FAILED = "failed"


ENDED = frozenset((CandidateState.DONE, CandidateState.CUT, CandidateState.STOPPED, CandidateState.FAILED))
FINISHED = frozenset((CandidateState.DONE, CandidateState.CUT))  # neither stopped nor failed


class StopReason(StrEnum):
    NONE = ""  # it has not ended
    STOP = "stop"
    LENGTH = "length"
    BUDGET = "budget"
    CANCELLED = "cancelled"
    ERROR = "error"


class RunOutcome(StrEnum):
    NONE = ""  # it has not ended
    FINISHED = "finished"
    STOPPED = "stopped"
    BUDGET = "budget"
    REFUSED = "refused"
    FAILED = "failed"


STATE_AFTER = {
    StopReason.STOP: CandidateState.DONE,
    StopReason.LENGTH: CandidateState.CUT,
    StopReason.BUDGET: CandidateState.CUT,
    StopReason.CANCELLED: CandidateState.STOPPED,
    StopReason.ERROR: CandidateState.FAILED,
}
# Why candidates end that still run when the run does.
LEFT_BY = {
    RunOutcome.STOPPED: StopReason.CANCELLED,
    RunOutcome.BUDGET: StopReason.BUDGET,
    RunOutcome.REFUSED: StopReason.ERROR,
    RunOutcome.FAILED: StopReason.ERROR,
}
