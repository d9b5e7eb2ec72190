"""Conducts one run: what follows from what the engine, the test runner and the user say.

Events go in, effects come out, in the order in which they are to be carried out. No thread, no file and no Qt in here,
and the clock is handed in: the window, the command line and the benchmarks only carry messages to and fro.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from engine.contract import Add, Cancel, CandidateFinished, Event, Generate, Message, Request
from engine.runner.forms import BrokenTests, parse
from engine.runner.protocol import (
    Answer,
    CancelTest,
    ConsentNeeded,
    Lamps,
    Test,
    TestFinished,
    TestProgress,
    TestStarted,
)
from engine.runner.report import Report
from engine.session.provenance import Provenance
from engine.session.run import IN_TEST, Run


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


Effect = Message | Test | CancelTest | ConsentQuestion | RefusedTests | FirstPass


@dataclass(frozen=True)
class TestPolicy:
    """``as_finished``: candidates are tested as they finish. ``stop_at_first_pass``: so they are, until one passes."""

    __test__ = False  # not a test class, whatever pytest makes of the name

    as_finished: bool = False
    stop_at_first_pass: bool = False


@dataclass(frozen=True)
class Leg:
    """A part of a run: what was asked at once, and of which models."""

    request: Request
    provenance: Provenance


class RunDriver:
    """Every method returns what is to be done next, and has brought ``run`` up to date.

    ``legs`` are the parts of the run that were handed to the engine.
    """

    def __init__(
        self,
        run: Run,
        policy: Callable[[], TestPolicy],
        *,
        tests: Callable[[], str] | None = None,
        consents: set[str] | None = None,
        environment: str = "",
        clock: Callable[[], float] = time.monotonic,
    ):
        """``policy`` and ``tests`` give what the user wants at the moment of the call; without ``tests`` those of the
        run are used. ``consents``: kinds that the user has agreed to, shared by all runs of a session. ``environment``:
        whose packages the tests may use.
        """
        self.run = run
        self.legs: list[Leg] = []
        self._policy = policy
        self._tests = tests or (lambda: run.tests)
        self._consents = set[str]() if consents is None else consents
        self._environment = environment
        self._clock, self._started_at = clock, clock()
        self._all = self._none = False  # of this run is tested, whatever the policy says
        self._waiting: list[int] = []  # candidates whose tests need consent
        self._question = ""  # the kind that was asked for
        self._looked_at, self._objection = (
            "",
            "",
        )  # tests, and what is wrong with them

    @property
    def testing(self) -> bool:
        """Some candidate is in test, or waits for it."""
        return any(candidate.test_state in IN_TEST for candidate in self.run.candidates.values())

    @property
    def over(self) -> bool:
        """Nothing more comes by itself: the engine has said its last word, and no test is on its way."""
        return self.run.ended and not self.testing

    # What the user asks for.

    def begin(self) -> list[Effect]:
        self._started_at = self._clock()
        return self._generate(self.run.request)

    def more(self, count: int) -> list[Effect]:
        """``count`` further candidates, whether the run goes on or has ended. Raises BadRequest."""
        request = self.run.more(count)
        if self.run.ended:
            self.run.reopen(request)
            return self._generate(request)
        self.run.expect(request)
        return [Add(self.run.name, count)]

    def stop(self) -> list[Effect]:
        """End the run and its tests. The run has ended when the engine says so."""
        effects: list[Effect] = []
        if not self.run.ended:
            self.run.stop()
            effects.append(Cancel(self.run.name))
        return effects + self.cancel_tests()

    def run_tests(self) -> list[Effect]:
        """Test all candidates of this run that have no verdict on these tests: those that ended now, others as they do.

        Tests other than the run's void its verdicts.
        """
        self._all, self._none, self._looked_at = True, False, ""
        return self._hand_over()

    def policy_changed(self) -> list[Effect]:
        """Candidates that ended before are tested too, if that is what the user wants now."""
        return self._hand_over() if self._wanted else []

    def cancel_tests(self) -> list[Effect]:
        """End every test at once; candidates without a verdict are *not run* again."""
        self._all, self._waiting = False, []
        return [CancelTest(name) for name in self.run.forget_queued_tests()]

    def answer_consent(self, given: bool) -> list[Effect]:
        """To the last ConsentQuestion. After a no nothing is tested any more until the user asks for it."""
        waiting, self._waiting = self._waiting, []
        if not given:
            self._none = True
            return self.cancel_tests()
        self._consents.add(self._question)
        return [self._test(number) for number in waiting]

    # What the engine and the test runner say.

    def engine_event(self, event: Event) -> list[Effect]:
        self.run.apply(event)
        ours = isinstance(event, CandidateFinished) and event.run == self.run.name
        return self._hand_over() if ours and self._wanted else []

    def runner_answer(self, answer: Answer) -> list[Effect]:
        """The last words of a test that was cancelled are no verdict, nor are those on tests that have changed."""
        number = None if isinstance(answer, Lamps) else self.run.number_of(answer.id)
        if number is None:
            return []
        candidate = self.run.candidates[number]
        match answer:
            case TestStarted():
                self.run.test_progress(number, 0, answer.total)
            case TestProgress():
                self.run.test_progress(number, candidate.tests_done + 1, candidate.tests_total)
            case TestFinished():
                return self._verdict(number, answer.report)
            case ConsentNeeded():
                return self._consent_needed(number, answer)
        return []

    # What follows.

    @property
    def _wanted(self) -> bool:
        """Whether candidates are tested without being asked for; never what a stop has cut off a moment ago."""
        policy = self._policy()
        wanted = policy.as_finished or policy.stop_at_first_pass or self._all
        return wanted and not self._none and self.run.state != "stopping"

    def _generate(self, request: Request) -> list[Effect]:
        self.legs.append(Leg(request, self.run.provenance))
        return [Generate(self.run.name, request)]

    def _hand_over(self) -> list[Effect]:
        tests = self._tests()
        if not tests.strip():
            return []
        again = tests == self._looked_at
        if not again:
            self._looked_at, self._objection = tests, objection(tests)
        if self._objection:
            return [] if again else [RefusedTests(self._objection)]
        effects: list[Effect] = []
        if tests != self.run.tests:
            self._waiting = []
            effects += [CancelTest(name) for name in self.run.change_tests(tests)]
        return effects + [self._test(number) for number in self.run.next_to_test()]

    def _test(self, number: int) -> Test:
        return Test(
            self.run.queue_test(number),
            self.run.candidates[number].code,
            self.run.tests,
            consent="consent" in self._consents,
            same_process="same_process" in self._consents,
            environment=self._environment,
        )

    def _verdict(self, number: int, report: Report) -> list[Effect]:
        self.run.record(number, report, self._clock() - self._started_at)
        if not (self._policy().stop_at_first_pass and self.run.candidates[number].passed):
            return []
        if self.run.ended or self.run.state == "stopping":
            return [FirstPass(number, stopped=False)]
        self.run.stop()
        return [Cancel(self.run.name), FirstPass(number, stopped=True)]

    def _consent_needed(self, number: int, answer: ConsentNeeded) -> list[Effect]:
        if answer.kind in self._consents:
            return [self._test(number)]
        self._waiting.append(number)
        if len(self._waiting) > 1:
            return []
        self._question = answer.kind
        return [ConsentQuestion(answer.kind, answer.sentence)]


def objection(tests: str) -> str:
    """Why these tests cannot be used, in a sentence; empty when they can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a "\d" in somebody's tests
            parse(tests)
    except BrokenTests as error:
        return str(error)
    except RecursionError:
        return "Your tests are nested too deeply."
    return ""
