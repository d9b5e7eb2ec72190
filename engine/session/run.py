"""One run, from prompt to verdicts: what the window shows and the command line prints.

No thread, no clock and no file in here. Whoever owns a run hands it every event and every report, in the order
in which they arrive, and asks it what to do next. Times are seconds since the run started.
"""

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from engine.contract import (
    CandidateFinished,
    CandidateState,
    Event,
    Metrics,
    PromptProgress,
    Request,
    RunFinished,
    RunOutcome,
    RunStarted,
    StepDone,
    StopReason,
    TextAdded,
)
from engine.contract.request import MAX_CANDIDATES
from engine.contract.states import LEFT_BY, STATE_AFTER
from engine.elicitation.standings import Compared, Standing
from engine.runner.report import Report
from engine.runner.verdicts import Verdict
from engine.selection.grouping import Fingerprint, Likeness, first_alike, groups, same_failure
from engine.selection.ranking import RankedCandidate, rank
from engine.selection.variety import offer_of_heat
from engine.session.candidate import ONCE, Candidate, Origin, around, as_dict, test_state
from engine.session.provenance import Provenance
from engine.session.states import IN_TEST, OVER, RunState, TestState

NO_OTHERS: Mapping[int, Origin] = MappingProxyType({})
_STATES = {
    RunOutcome.FINISHED: RunState.FINISHED,
    RunOutcome.BUDGET: RunState.FINISHED,
    RunOutcome.STOPPED: RunState.STOPPED,
    RunOutcome.REFUSED: RunState.FAILED,
    RunOutcome.FAILED: RunState.FAILED,
}
# Of candidates that never began: after a finish, they were asked for when the last of the others had just ended.
_LEFT_OVER = {**LEFT_BY, RunOutcome.FINISHED: StopReason.CANCELLED}
_test_numbers = itertools.count(1)  # a test that was cancelled and one that follows it are never taken for each other
_METRICS = (
    *("steps", "device", "precision", "drafter", "policy", "acceptance"),
    *("plain_step_share", "mean_draft_length", "speedup", "width", "tokens_read"),
)


class Run:
    """The state of one run.

    ``outcome``, ``reason`` and ``details`` are those of the engine's RunFinished. ``provenance`` is for whoever starts
    the run to set.
    """

    def __init__(self, name: str, request: Request, tests: str = ""):
        self.name, self.request, self.tests = name, request, tests
        self.provenance = Provenance()
        self.state, self.outcome = RunState.WAITING, RunOutcome.NONE
        self.reason = self.details = ""
        self.candidates = {n: Candidate(n, request.seed, around=around(request)) for n in request.numbers}
        self.prompt_tokens = self.prompt_done = 0
        self.totals: StepDone | None = None
        self.metrics: Metrics | None = None
        self.first_passing_s: float | None = None
        self.comparison = Compared()  # by what the candidates do on inputs; empty where nobody looked
        self.decisions: list[dict[str, Any]] = []  # of a search, as session/search.py records them
        self._fingerprints: dict[int, Fingerprint] = {}
        self._tests_on_their_way: dict[str, int] = {}  # name -> candidate

    @classmethod
    def restored(cls, name: str, request: Request, tests: str, candidates: Iterable[Candidate]) -> "Run":
        """A run of the past that has ended, from what was kept of it; who is like whom is found again."""
        run = cls(name, request, tests)
        run.state = RunState.STOPPED
        run.candidates = {candidate.number: candidate for candidate in candidates}
        run._compare_all()
        return run

    @property
    def ended(self) -> bool:
        """The engine has said its last word; tests may still go on."""
        return self.state in OVER

    @property
    def tested(self) -> bool:
        """Nothing is left to test: every candidate that ended has its verdict."""
        busy = any(c.test_state in IN_TEST for c in self.candidates.values())
        return not busy and not self.next_to_test()

    # What the engine says.

    def apply(self, event: Event) -> None:
        """Take in one event. Events of other runs and of loading are none of ours and change nothing."""
        if getattr(event, "run", None) != self.name or self.ended:
            return
        match event:
            case RunStarted():
                self.prompt_tokens = event.prompt_tokens
                self._advance(RunState.READING_PROMPT)
                for number in event.candidates:
                    self._candidate(number)
            case PromptProgress():
                self.prompt_done, self.prompt_tokens = event.done, event.total
                self._advance(RunState.READING_PROMPT)
            case TextAdded():
                self._advance(RunState.GENERATING)
                self._text_added(event)
            case StepDone():
                self._advance(RunState.GENERATING)
                self.totals = event
            case CandidateFinished():
                self._candidate_finished(event)
            case RunFinished():
                self._finish(event)

    def stop(self) -> None:
        """The user asked for an end; the run is over when the engine says so."""
        if not self.ended:
            self.state = RunState.STOPPING

    def _advance(self, state: RunState) -> None:
        if self.state != RunState.STOPPING:
            self.state = state

    def _candidate(self, number: int) -> Candidate:
        if number not in self.candidates:
            self.candidates[number] = Candidate(number, self.request.seed, around=around(self.request))
        return self.candidates[number]

    def _text_added(self, event: TextAdded) -> None:
        candidate = self._candidate(event.candidate)
        if candidate.ended:
            return
        if candidate.started_s is None:
            candidate.state, candidate.started_s = CandidateState.RUNNING, event.at_s
        candidate.tokens = event.tokens
        candidate.add(event.text)

    def _candidate_finished(self, event: CandidateFinished) -> None:
        candidate = self._candidate(event.candidate)
        candidate.state, candidate.stop_reason, candidate.finished_s = event.state, event.stop_reason, event.at_s
        candidate.tokens, candidate.proposed, candidate.accepted = event.tokens, event.proposed, event.accepted
        candidate.mean_logprob = event.mean_logprob
        candidate.end(event.text)
        self._take_code(candidate)

    def _take_code(self, candidate: Candidate) -> None:
        if candidate.state != CandidateState.FAILED and candidate.code.strip():
            self._compare(candidate)

    def _compare_all(self) -> None:
        """Find out again who is like whom, in the order in which they finished."""
        self._fingerprints.clear()
        for candidate in sorted(self.candidates.values(), key=lambda c: (c.finished_s is None, c.finished_s or 0.0)):
            candidate.same_as, candidate.fails_like, candidate.group = None, None, 0
            self._take_code(candidate)
        self._compare_failures()

    def _compare(self, candidate: Candidate) -> None:
        """Find an earlier candidate that says the same; one with the very same code lends its verdict."""
        fingerprint = Fingerprint.of(candidate.code, python=candidate.block.maybe_python)
        candidate.same_as = first_alike(fingerprint, self._fingerprints.items())
        candidate.group = self.candidates[candidate.same_as.number].group if candidate.same_as else candidate.number
        self._fingerprints[candidate.number] = fingerprint
        if candidate.same_as and candidate.same_as.exact:
            twin = self.candidates[candidate.same_as.number]
            candidate.report, candidate.test_state = twin.report, twin.test_state
            candidate.tests_done, candidate.tests_total = twin.tests_done, twin.tests_total

    def _finish(self, event: RunFinished) -> None:
        self.state, self.outcome = _STATES[event.outcome], event.outcome
        self.metrics, self.reason, self.details = event.metrics, event.reason, event.details
        for candidate in self.candidates.values():
            if not candidate.ended:  # the run ended before this one began, or was refused altogether
                candidate.stop_reason = _LEFT_OVER[event.outcome]
                candidate.state = STATE_AFTER[candidate.stop_reason]
                candidate.end(candidate.text)

    # Going on.

    def more(self, count: int) -> Request:
        """What to ask the engine for so that ``count`` further candidates join those of this run.

        A candidate's text depends on the seed and its number alone, so these are the ones that a larger run would
        have had. Raises BadRequest when the run would grow beyond what one may ask for.
        """
        return replace(self.request, candidates=count, first_candidate=max(self.candidates, default=0) + 1)

    def reopen(self, request: Request, origin: Origin = ONCE, others: Mapping[int, Origin] = NO_OTHERS) -> None:
        """A run that has ended goes on with ``request``, as ``more`` gave it. What there is stays, whatever happens."""
        assert self.ended, "a run that goes on takes further candidates by Add"
        self.state, self.outcome = RunState.WAITING, RunOutcome.NONE
        self.reason = self.details = ""
        self.expect(request, origin, others)

    def expect(self, request: Request, origin: Origin = ONCE, others: Mapping[int, Origin] = NO_OTHERS) -> None:
        """Further candidates, as ``more`` gave them, are queued from now on; the engine takes them up when it can.

        ``others``: those that come from elsewhere than ``origin``, by number.
        """
        for number in request.numbers:
            own = others.get(number, origin)
            self.candidates[number] = Candidate(number, request.seed, around=around(request), origin=own)
        self.request = replace(self.request, candidates=min(len(self.candidates), MAX_CANDIDATES))

    def retake(self, request: Request) -> list[str]:
        """The candidates of ``request`` were not written to their end: nothing of them counts until they are.

        The names of their tests that are still on their way; others with the same code are *not run* again.
        """
        tests = self._forget_tests(request.numbers)
        for number in request.numbers:
            again = Candidate(number, request.seed, around=around(request), origin=self.candidates[number].origin)
            again.state, again.stop_reason = CandidateState.STOPPED, StopReason.CANCELLED
            self.candidates[number] = again
        self._compare_all()
        return tests

    def never_began(self) -> list[int]:
        """Candidates that were asked for when the run was ended, and of which nothing was written."""
        return [
            number
            for number, c in self.candidates.items()
            if c.started_s is None and c.stop_reason == StopReason.CANCELLED and not c.text
        ]

    def withdraw(self, numbers: Iterable[int]) -> None:
        """These were expected, and never began."""
        for number in numbers:
            del self.candidates[number]
        self.request = replace(self.request, candidates=min(len(self.candidates), MAX_CANDIDATES))

    # What the tests say.

    def change_tests(self, tests: str) -> list[str]:
        """Other tests: every verdict so far is void, and reports that are still on their way no longer count.

        The names of the tests that are still on their way.
        """
        left = self.forget_queued_tests()
        self.tests, self.first_passing_s = tests, None
        for candidate in self.candidates.values():
            candidate.report, candidate.test_state, candidate.fails_like = None, TestState.NOT_RUN, None
            candidate.tests_done = candidate.tests_total = 0
        return left

    def next_to_test(self) -> list[int]:
        """Candidates that ended with some code (failed ones aside) and were not handed to the tests yet.

        Of candidates with the same code, byte for byte, only the first is tested; ``record`` gives all its verdict.
        """
        if not self.tests.strip():
            return []
        return [
            number
            for number, candidate in self.candidates.items()
            if candidate.test_state == TestState.NOT_RUN
            and number in self._fingerprints
            and not (candidate.same_as and candidate.same_as.exact)
        ]

    def queue_test(self, number: int) -> str:
        """Mark as handed over; the name to give the test, which ``number_of`` reads."""
        for candidate in self._sharing(number):
            candidate.test_state, candidate.report, candidate.tests_done = TestState.QUEUED, None, 0
        name = f"{self.name}/{number}/{next(_test_numbers)}"
        self._tests_on_their_way[name] = number
        return name

    def number_of(self, test: str) -> int | None:
        """The candidate that a test's name belongs to; None for another run's, and for one that no longer counts."""
        return self._tests_on_their_way.get(test)

    def test_progress(self, number: int, done: int, total: int) -> None:
        for candidate in self._sharing(number):
            if candidate.test_state in IN_TEST:  # progress may arrive after the verdict
                candidate.test_state = TestState.RUNNING
                candidate.tests_done, candidate.tests_total = done, total

    def record(self, number: int, report: Report, at_s: float) -> None:
        """Take in a verdict, ``at_s`` seconds after the run started. The last one counts."""
        for candidate in self._sharing(number):
            candidate.report, candidate.test_state = report, test_state(report)
            candidate.tests_done = candidate.tests_total = len(report.tests)
        self._compare_failures()
        if report.verdict == Verdict.PASS and (self.first_passing_s is None or at_s < self.first_passing_s):
            self.first_passing_s = at_s

    def forget_queued_tests(self) -> list[str]:
        """Tests were cancelled: candidates without a verdict are *not run* again. The names of those tests."""
        return self._forget_tests(self.candidates)

    def _forget_tests(self, numbers: Collection[int]) -> list[str]:
        tests = {name: number for name, number in self._tests_on_their_way.items() if number in numbers}
        left = [name for name, number in tests.items() if self.candidates[number].test_state in IN_TEST]
        for name, number in tests.items():
            del self._tests_on_their_way[name]
            for candidate in self._sharing(number):
                if candidate.test_state in IN_TEST:
                    candidate.test_state, candidate.tests_done = TestState.NOT_RUN, 0
        return left

    def _sharing(self, number: int) -> list[Candidate]:
        """The candidate, and those with the same code byte for byte."""
        exact = self._fingerprints[number].exact if number in self._fingerprints else None
        alike = [n for n, print_ in self._fingerprints.items() if print_.exact == exact]
        return [self.candidates[n] for n in alike or [number]]

    def _compare_failures(self) -> None:
        """Different code that fails the same tests in the same way: the last rule by which candidates are alike."""
        failing = [(n, c) for n, c in sorted(self.candidates.items()) if c.report is not None and c.same_as is None]
        for at, (_, candidate) in enumerate(failing):
            assert candidate.report is not None
            earlier = ((n, other.report) for n, other in failing[:at] if other.report is not None)
            candidate.fails_like = same_failure(candidate.report, earlier)

    # What they do.

    def compared(self, comparison: Compared) -> None:
        """Candidates were called with the same inputs: it ranks them, and tells who is like whom."""
        self.comparison = comparison
        for number, standing in self.standings.items():
            candidate, first = self.candidates[number], min(standing.group)
            reason = f"same behaviour on {standing.inputs} inputs"
            candidate.behaves_like = Likeness(first, reason) if first != number else None
            candidate.suggested = standing.suggested

    @property
    def standings(self) -> Mapping[int, Standing]:
        return self.comparison.standings

    # What comes of it.

    def ranking(self) -> list[int]:
        """Numbers of the candidates that ended with some code, best first."""
        alike = groups(self._fingerprints)
        return rank(
            [
                RankedCandidate(number, c.state, alike[number], c.mean_logprob, c.report, self._standing(number))
                for number, c in self.candidates.items()
                if number in alike
            ]
        )

    def _standing(self, number: int) -> tuple[float, ...]:
        return self.standings[number].key if number in self.standings else ()

    def best(self) -> int | None:
        return next(iter(self.ranking()), None)

    def advice(self) -> str:
        """A sentence when the candidates came out alike for want of temperature; empty otherwise."""
        compared = self._fingerprints
        sizes = sorted(groups(compared).values())
        return offer_of_heat(len(compared), sizes[-1] if sizes else 0, self.request.sampling.temperature)

    def result(self) -> dict[str, Any]:
        """The run as one JSON object: ``candidates`` and ``metrics``. What is not known is null."""
        return {
            "candidates": [as_dict(c) for _, c in sorted(self.candidates.items())],
            "metrics": self._metrics_dict(),
            **({"behaviour": self.comparison.record} if self.comparison.record is not None else {}),
            **({"decisions": self.decisions} if self.decisions else {}),
        }

    def _metrics_dict(self) -> dict[str, Any]:
        def known(name: str) -> Any:
            return getattr(self.metrics, name) if self.metrics else None

        return {
            "time_to_first_token_s": known("time_to_first_token_s"),
            "time_to_first_finished_s": known("time_to_first_finished_s"),
            "time_to_first_passing_s": self.first_passing_s,
            "total_s": known("total_s"),
            "tokens_per_second": known("tokens_per_second"),
            "ms_per_token": {which: known(f"ms_per_token_{which}") for which in ("first", "last", "mean")},
            "acceptance_rate": known("acceptance_rate"),
            **{name: known(name) for name in _METRICS},
        }
