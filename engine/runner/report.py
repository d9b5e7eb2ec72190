"""The verdict on one candidate, and the evidence for it."""

from dataclasses import asdict, dataclass, field
from typing import Any

from engine.runner.verdicts import Outcome, Verdict

_STORED = {"isolation": "lamps"}  # the name under which journals, exports and --json have it
_NAMES = {stored: name for name, stored in _STORED.items()}


@dataclass(frozen=True)
class TestResult:
    """One test: ``why`` is the first failing assert with its values, or empty.

    A test that the file itself skips, by a mark that needs no candidate, is *skipped* and does not count.
    """

    id: str
    outcome: Outcome
    why: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """One candidate against one test file.

    ``mode``: split, in-process or command.
    ``isolation``: layer name (files, network, memory, processes, verdict) -> sentence that says what holds.
    ``weak``: names of the layers that hold less than they should.
    ``output``: what the candidate printed, the first 64 KiB; ``output_bytes`` is how much it was in all.
    """

    verdict: Verdict
    mode: str
    why: str = ""
    tests: tuple[TestResult, ...] = ()
    isolation: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_mib: float | None = None
    output: str = ""
    output_bytes: int = 0
    weak: tuple[str, ...] = ()

    @property
    def passed(self) -> int:
        return sum(test.outcome == Outcome.PASSED for test in self.tests)

    @property
    def failed(self) -> int:
        return len(self.tests) - self.passed

    def to_dict(self) -> dict[str, Any]:
        fields = asdict(self) | {"passed": self.passed, "failed": self.failed}
        return {_STORED.get(name, name): value for name, value in fields.items()}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Report":
        fields = {_NAMES.get(name, name): value for name, value in fields.items()}
        known = {name: value for name, value in fields.items() if name in cls.__dataclass_fields__}
        known["verdict"] = Verdict(known["verdict"])
        tests = (test | {"outcome": Outcome(test["outcome"])} for test in known.get("tests", ()))
        known["tests"] = tuple(TestResult(**test) for test in tests)
        known["weak"] = tuple(known.get("weak", ()))
        return cls(**known)
