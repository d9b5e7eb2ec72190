"""What tests can come to. The values stand in ``--json`` and in the history. The standard library only."""

from enum import StrEnum


class Verdict(StrEnum):
    """Of one candidate against one test file. INFRA is an error of ours, never a fail and never a pass."""

    PASS = "pass"
    PASS_SOFT = "pass-soft"  # an unconfirmed pass: it rests on the candidate's own ==
    FAIL = "fail"
    TAMPERED = "tampered"
    NEEDS_IN_PROCESS = "needs-in-process"
    INFRA = "infra"


PASSES = frozenset((Verdict.PASS, Verdict.PASS_SOFT))


class Outcome(StrEnum):
    """Of one test."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    TIMEOUT = "timeout"
    KILLED = "killed"
    SKIPPED = "skipped"
    MISSING = "missing"
