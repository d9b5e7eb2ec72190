"""The states of a run and of a candidate's tests, and what every state and verdict is called and looks like.

One table for window, command line and whatever else shows them. Exports and scripts have the plain value.
"""

from dataclasses import dataclass
from enum import StrEnum

from engine.contract.states import CandidateState, StopReason
from engine.runner.verdicts import Outcome, Verdict


class RunState(StrEnum):
    WAITING = "waiting"
    READING_PROMPT = "reading prompt"
    GENERATING = "generating"
    STOPPING = "stopping"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


OVER = frozenset((RunState.FINISHED, RunState.STOPPED, RunState.FAILED))


class TestState(StrEnum):
    __test__ = False  # to pytest

    NOT_RUN = "not run"
    QUEUED = "queued"
    RUNNING = "running"
    PASSED = "passed"
    PASSED_SOFT = "passed by its own =="  # in histories and scripts; ``label_of`` is what a user reads
    FAILED = "failed"
    TIMED_OUT = "timed out"
    KILLED = "killed"
    TAMPERED = "tampered"
    NEEDS_CONSENT = "needs consent"
    ERROR = "error"


IN_TEST = frozenset((TestState.QUEUED, TestState.RUNNING))
STATE_OF_VERDICT = {
    Verdict.PASS: TestState.PASSED,
    Verdict.PASS_SOFT: TestState.PASSED_SOFT,
    Verdict.FAIL: TestState.FAILED,
    Verdict.TAMPERED: TestState.TAMPERED,
    Verdict.NEEDS_IN_PROCESS: TestState.NEEDS_CONSENT,
    Verdict.INFRA: TestState.ERROR,
}


@dataclass(frozen=True)
class Display:
    """``word`` fits a badge, ``sentence`` is a heading. ``icon``: in resources/icons; ``tone``: a colour of the themes.

    Both texts are English; whoever shows them translates.
    """

    word: str
    icon: str
    tone: str
    sentence: str = ""


RUN_STATES = {
    RunState.WAITING: Display("Waiting for the model", "queued", "muted"),
    RunState.READING_PROMPT: Display("Reading the prompt", "running", "running"),
    RunState.GENERATING: Display("Generating", "running", "running"),
    RunState.STOPPING: Display("Stopping…", "stopped", "muted"),
    RunState.FINISHED: Display("Finished", "done", "text"),
    RunState.STOPPED: Display("Stopped", "stopped", "muted"),
    RunState.FAILED: Display("Failed", "failed", "failed"),
}
CANDIDATE_STATES = {
    CandidateState.QUEUED: Display("queued", "queued", "muted"),
    CandidateState.RUNNING: Display("running", "running", "running"),
    CandidateState.DONE: Display("finished", "done", "text"),
    CandidateState.CUT: Display("cut off", "cut", "warning"),
    CandidateState.STOPPED: Display("stopped", "stopped", "muted"),
    CandidateState.FAILED: Display("failed", "failed", "failed"),
}
VERDICTS = {
    Verdict.PASS: Display("passed", "passed", "passed", "Passed."),
    Verdict.PASS_SOFT: Display(
        "unconfirmed",
        "soft-pass",
        "warning",
        "Unconfirmed pass: a comparison by its own class, such as ==, decided. Look before you trust it.",
    ),
    Verdict.FAIL: Display("failed", "tests-failed", "failed", "Failed."),
    Verdict.TAMPERED: Display("tampered", "tests-error", "failed", "Tampered with its tests."),
    Verdict.NEEDS_IN_PROCESS: Display(
        "needs consent", "tests-error", "warning", "These tests need the candidate in their own process."
    ),
    Verdict.INFRA: Display("test error", "tests-error", "warning", "The tests could not be run."),
}
TEST_STATES = {
    TestState.NOT_RUN: Display("not tested", "queued", "muted"),
    TestState.QUEUED: Display("waiting", "tests-running", "muted"),
    TestState.RUNNING: Display("testing", "tests-running", "running"),
    TestState.TIMED_OUT: Display("timed out", "tests-error", "failed"),
    TestState.KILLED: Display("killed", "tests-error", "failed"),
    **{state: VERDICTS[verdict] for verdict, state in STATE_OF_VERDICT.items()},
}
OUTCOMES = {
    Outcome.PASSED: Display("passed", "passed", "passed"),
    Outcome.FAILED: Display("failed", "tests-failed", "failed"),
    Outcome.ERROR: Display("error", "tests-error", "failed"),
    Outcome.TIMEOUT: Display("timeout", "tests-error", "failed"),
    Outcome.KILLED: Display("killed", "tests-error", "failed"),
    Outcome.SKIPPED: Display("skipped", "queued", "muted"),
    Outcome.MISSING: Display("missing", "tests-error", "warning"),
}
STOP_REASONS = {
    StopReason.STOP: "ended by itself",
    StopReason.LENGTH: "reached max tokens",
    StopReason.BUDGET: "reached the time budget",
    StopReason.CANCELLED: "stopped by you",
    StopReason.ERROR: "an error ended it",
}


def label_of(state: TestState) -> str:
    """What a sentence calls it: its value, but for an unconfirmed pass, whose value is older than its name."""
    return TEST_STATES[state].word if state == TestState.PASSED_SOFT else state
