"""One of the n answers: its text and code, the engine's counts, the test results, and which others it resembles."""

from dataclasses import asdict, dataclass, field
from typing import Any

from engine.contract import CandidateState, Request, StopReason
from engine.contract.states import ENDED
from engine.runner.report import Report
from engine.runner.verdicts import Outcome, Verdict
from engine.selection.code_blocks import CodeBlock, parse_python, solution
from engine.selection.grouping import Likeness
from engine.selection.thoughts import without_thoughts
from engine.session.states import STATE_OF_VERDICT, TestState, label_of


@dataclass(frozen=True)
class Origin:
    """Where a candidate comes from: the ``arm`` that proposed it (see session/arms.py), the title of the ``model``,
    and the candidate that it corrects (``of``, 0 for none). Empty for one of a run that asks once."""

    arm: str = ""
    model: str = ""
    of: int = 0


ONCE = Origin()
FILE = "file"  # the arm of a file of the user's own, which is there to be corrected


@dataclass
class Candidate:
    """One of the n answers.

    ``same_as`` names an earlier candidate with the same code, ``group`` the first of all that say the same;
    ``fails_like`` an earlier one with other code that fails in the same way, ``behaves_like`` one that did the same on
    every input; ``suggested``: with how many suggested tests it agrees, of how many. ``mean_logprob`` is the target's
    own; ``started_s`` and ``finished_s`` are None until then.
    ``around``: the text that the answer goes on from, and the text it leads to, where it is no chat's; they are part of
    its code.
    """

    number: int
    seed: int
    state: CandidateState = CandidateState.QUEUED
    tokens: int = 0
    proposed: int = 0
    accepted: int = 0
    mean_logprob: float | None = None
    stop_reason: StopReason = StopReason.NONE
    started_s: float | None = None
    finished_s: float | None = None
    report: Report | None = None
    test_state: TestState = TestState.NOT_RUN
    tests_done: int = 0
    tests_total: int = 0
    same_as: Likeness | None = None
    fails_like: Likeness | None = None
    behaves_like: Likeness | None = None
    suggested: tuple[int, int] = (0, 0)
    group: int = 0
    around: tuple[str, str] = ("", "")
    origin: Origin = ONCE
    _pieces: list[str] = field(default_factory=list, repr=False)
    _block: CodeBlock | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The whole answer as far as it has come."""
        if len(self._pieces) > 1:
            self._pieces[:] = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def block(self) -> CodeBlock:
        """The code block that answers the prompt. Looked for again at each call while the text still grows."""
        return self._block or self._solution()

    @property
    def code(self) -> str:
        return self.block.code

    @property
    def has_no_code(self) -> bool:
        """It ended with words, or a thought, and nothing that could be run."""
        return self.ended and not self.code.strip() and bool(self.text.strip())

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def passed(self) -> bool:
        """A confirmed pass alone. One that rests on the candidate's own ``==`` is for a user to judge."""
        return self.report is not None and self.report.verdict == Verdict.PASS

    @property
    def why(self) -> str:
        """The first failing assert with its values, or why there is no verdict; empty when all is well."""
        if self.report is None or self.passed:
            return ""
        failing = (test.why for test in self.report.tests if test.outcome != Outcome.PASSED and test.why)
        return self.report.why or next(failing, "")

    @property
    def likeness(self) -> str:
        """Whom it is like, and by which rule: "same AST as 4", "fails the same tests as 2"; empty if like none."""
        like = self.same_as or self.fails_like
        if like is None and self.behaves_like is not None:
            reason, _, inputs = self.behaves_like.reason.partition(" on ")
            return f"{reason} as {self.behaves_like.number} on {inputs}"
        return f"{like.reason} as {like.number}" if like else ""

    @property
    def agreement(self) -> str:
        """With the tests that a model suggested: "agrees with 5 of 6 suggested tests"; empty where there are none."""
        agreed, count = self.suggested
        return f"agrees with {agreed} of {count} suggested test{'s' * (count != 1)}" if count else ""

    @property
    def tests_label(self) -> str:
        """The tests in a few words, as a tab shows them: "passed 3 of 3", "failed 1 of 3", "running 2 of 3"."""
        if self.test_state == TestState.RUNNING and self.tests_total:
            return f"running {self.tests_done} of {self.tests_total}"
        if self.report is not None and self.report.tests:
            passed, failed = self.report.passed, self.report.failed
            counts = {TestState.PASSED: passed, TestState.PASSED_SOFT: passed, TestState.FAILED: failed}
            if (count := counts.get(self.test_state)) is not None:
                return f"{label_of(self.test_state)} {count} of {len(self.report.tests)}"
        return label_of(self.test_state)

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def end(self, text: str) -> None:
        self._pieces[:] = [text]
        self._block = self._solution()

    def _solution(self) -> CodeBlock:
        if self.origin.arm == FILE:
            return CodeBlock(self.text, "python", fenced=False)
        before, after = self.around
        block = solution(self.text)
        if not (before or after) or not self.text.strip():
            return block
        whole = before + without_thoughts(self.text) + after
        if parse_python(whole):
            return CodeBlock(whole, fenced=False)
        begun = solution(before + without_thoughts(self.text))  # prose behind it is no code
        if not begun.fenced and begun.code.startswith(before) and parse_python(begun.code + after):
            return CodeBlock(begun.code + after, fenced=False)
        # A base model may chat anyway and put everything into a block.
        return block if block.fenced else CodeBlock(whole, fenced=False)


def test_state(report: Report) -> TestState:
    outcomes = {test.outcome for test in report.tests} - {Outcome.PASSED}
    if report.verdict == Verdict.FAIL and outcomes == {Outcome.TIMEOUT}:
        return TestState.TIMED_OUT
    if report.verdict == Verdict.FAIL and outcomes and outcomes <= {Outcome.KILLED, Outcome.MISSING}:
        return TestState.KILLED
    return STATE_OF_VERDICT[report.verdict]


def as_dict(candidate: Candidate) -> dict[str, Any]:
    report = candidate.report
    return {
        "id": candidate.number,
        "seed": candidate.seed,
        "state": candidate.state,
        "text": candidate.text,
        "code": candidate.code,
        "tokens": candidate.tokens,
        "proposed": candidate.proposed,
        "accepted": candidate.accepted,
        "mean_logprob": candidate.mean_logprob,
        "stop_reason": candidate.stop_reason,
        "tests": report
        and {"verdict": report.verdict, "passed": report.passed, "failed": report.failed, "why": candidate.why},
        **({"origin": asdict(candidate.origin)} if candidate.origin != ONCE else {}),
    }


def around(request: Request) -> tuple[str, str]:
    """What the code of an answer to ``request`` begins and ends with."""
    return ("", "") if request.mode == "chat" else (request.prompt, request.suffix)
