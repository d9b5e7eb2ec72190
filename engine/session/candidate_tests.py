"""The tests of one run's candidates: what is handed to the test runner, with whose consent, and what it answers.

As in ``driver.py``, which owns one, everything that is to be done is returned as effects.
"""

from collections.abc import Callable

from engine.contract import Request
from engine.runner.protocol import CancelTests, ConsentNeeded, RunTests, TestProgress, TestStarted
from engine.runner.verdicts import Verdict
from engine.session.checked_tests import check
from engine.session.effects import ConsentQuestion, Effect, RefusedTests, TestPolicy
from engine.session.run import Run
from engine.session.states import IN_TEST, RunState

_ENOUGH = 3  # tests in a row without a verdict: one may be an accident


class CandidateTests:
    """Arguments as those of ``RunDriver``. ``declined``: the user did not agree, so nothing is tested unless asked."""

    def __init__(
        self,
        run: Run,
        policy: Callable[[], TestPolicy],
        tests: Callable[[], str] | None,
        consents: set[str] | None,
        environment: str,
    ):
        self.declined = False
        self._run, self._policy, self._environment = run, policy, environment
        self._tests = tests or (lambda: run.tests)
        self._consents = set[str]() if consents is None else consents
        self._all = False  # of this run is tested, whatever the policy says
        self._waiting: list[int] = []  # candidates whose tests need consent
        self._question = ""  # the kind that was asked for
        self._refused = ""  # tests that cannot be used, which the user has been told of

    @property
    def under_way(self) -> bool:
        """Some candidate is in test, or waits for it."""
        return any(candidate.test_state in IN_TEST for candidate in self._run.candidates.values())

    def wanted(self, searching: bool) -> bool:
        """Whether candidates are tested without being asked for; never what a stop has cut off a moment ago."""
        policy = self._policy()
        wanted = policy.as_finished or policy.stop_at_first_pass or self._all or searching
        return wanted and not self.declined and self._run.state != RunState.STOPPING

    @property
    def objection(self) -> str:
        """Why the tests cannot be used, in a sentence; empty when they can, or when there are none."""
        tests = self._tests()
        return check(tests).objection if tests.strip() else ""

    @property
    def give_no_verdict(self) -> bool:
        """Whatever is tested, there is no verdict on it: more candidates would not tell more."""
        reports = [c.report for c in self._run.candidates.values() if c.report is not None]
        return len(reports) >= _ENOUGH and all(report.verdict == Verdict.INFRA for report in reports)

    def ask_for_all(self) -> None:
        """Of this run, whatever the policy says, and whatever was declined or refused before."""
        self._all, self.declined, self._refused = True, False, ""

    def hand_over(self) -> list[Effect]:
        """Every candidate that has ended and has no verdict on the present tests; tests that changed void verdicts."""
        tests = self._tests()
        if not tests.strip():
            return []
        if objection := self.objection:
            again, self._refused = tests == self._refused, tests
            return [] if again else [RefusedTests(objection)]
        self._refused = ""
        effects: list[Effect] = []
        if tests != self._run.tests:
            self._waiting = []
            effects += [CancelTests(name) for name in self._run.change_tests(tests)]
        return effects + [self._test(number) for number in self._run.next_to_test()]

    def retake(self, request: Request) -> list[Effect]:
        """The candidates of ``request`` are written once more: what is tested of them counts for nothing."""
        self._waiting = [number for number in self._waiting if number not in request.numbers]
        return [CancelTests(name) for name in self._run.retake(request)]

    def cancel(self) -> list[Effect]:
        """End every test at once; candidates without a verdict are *not run* again."""
        self._all, self._waiting = False, []
        return [CancelTests(name) for name in self._run.forget_queued_tests()]

    def note(self, number: int, answer: TestStarted | TestProgress) -> None:
        candidate = self._run.candidates[number]
        if isinstance(answer, TestStarted):
            self._run.test_progress(number, 0, answer.total)
        else:
            self._run.test_progress(number, candidate.tests_done + 1, candidate.tests_total)

    def need_consent(self, number: int, answer: ConsentNeeded) -> list[Effect]:
        if answer.kind in self._consents:
            return [self._test(number)]
        self._waiting.append(number)
        if len(self._waiting) > 1:
            return []
        self._question = answer.kind
        return [ConsentQuestion(answer.kind, answer.sentence)]

    def answer_consent(self, given: bool) -> list[Effect]:
        """To the last ConsentQuestion. After a no nothing is tested any more until the user asks for it."""
        waiting, self._waiting = self._waiting, []
        if not given:
            self.declined = True
            return self.cancel()
        self._consents.add(self._question)
        return [self._test(number) for number in waiting]

    def _test(self, number: int) -> RunTests:
        return RunTests(
            self._run.queue_test(number),
            self._run.candidates[number].code,
            self._run.tests,
            consent="consent" in self._consents,
            same_process="same_process" in self._consents,
            environment=self._environment,
        )
