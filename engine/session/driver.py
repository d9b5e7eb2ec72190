"""Drives one run: decides what follows from the engine's events, the test reports and the user's actions.

Events go in, effects come out, in the order in which they are to be carried out. No thread, no file and no Qt in here,
and the clock is handed in: the window, the command line and the benchmarks only carry messages to and fro.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from engine.contract import (
    Add,
    Cancel,
    CandidateFinished,
    Event,
    Generate,
    Load,
    LoadFailed,
    Ready,
    Request,
    RunFinished,
)
from engine.runner.protocol import Answer, ConsentNeeded, Isolation, TestFinished, TestProgress, TestStarted
from engine.runner.report import Report
from engine.runner.verdicts import Verdict
from engine.session.arms import REPAIR, Proposal
from engine.session.batches import openings_of, repairs_of_each
from engine.session.candidate import ONCE, Candidate, Origin
from engine.session.candidate_tests import CandidateTests
from engine.session.effects import Effect, FirstPass, RefusedTests, TestPolicy
from engine.session.legs import Leg
from engine.session.resume import elapsed_s
from engine.session.run import NO_OTHERS, Run
from engine.session.run_clock import RunClock
from engine.session.search import Decision, Search
from engine.session.states import RunState
from engine.session.turns import fix
from engine.session.unfinished import Owed, came_too_late, owed


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
        search: Search | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        """``policy`` and ``tests`` give what the user wants at the moment of the call; without ``tests`` those of the
        run are used. ``consents``: kinds that the user has agreed to, shared by all runs of a session. ``environment``:
        whose packages the tests may use. ``search``: go on until a candidate passes.
        """
        self.run = run
        self.legs: list[Leg] = []
        self._policy = policy
        self._tests = CandidateTests(run, policy, tests, consents, environment)
        self._time = RunClock(clock)
        self._search = search
        self._before: list[dict[str, Any]] = []  # decisions of earlier searches and repairs
        self._proposal: Proposal | None = None  # whose model is being loaded
        self._leg_open = False  # what it cost is still to be told to the search
        self._leg_numbers = set(run.candidates)  # of the last part of the run
        self._owed: list[Owed] = []  # what an earlier end has cut off, and is asked for once more
        if run.ended:  # one of the past: its times go on where they ended
            self._time.begin(elapsed_s(run))

    @property
    def testing(self) -> bool:
        """Some candidate is in test, or waits for it."""
        return self._tests.under_way

    @property
    def over(self) -> bool:
        """Nothing more comes by itself: the engine has said its last word, and no test is on its way."""
        return not self.testing and not self.continues

    @property
    def searching(self) -> bool:
        """It goes on until a candidate passes, and may still ask for more."""
        return self._search is not None

    @property
    def continues(self) -> bool:
        """The engine has not said its last word, or will be asked for more."""
        return not self.run.ended or self.searching or bool(self._owed)

    # What the user asks for.

    def begin(self) -> list[Effect]:
        self._time.begin()
        if self._search is not None:
            self._time.begin_search()
            origin = self._search.current
            for candidate in self.run.candidates.values():
                candidate.origin = origin
        return self._generate(self.run.request)

    def more(self, count: int) -> list[Effect]:
        """``count`` further candidates, whether the run goes on or has ended. Raises BadRequest.

        A search that would load another model now writes these first, and then thinks again.
        """
        self.run.more(count)  # raises before anything is changed
        if self._search is not None and self.run.ended:
            self._drop_proposal(self._search)
            self._leg_ended(self._search)
        request = self.run.more(count)
        if self.run.ended:
            return self._reopen(request, ONCE)
        if not self._can_add:
            self.run.expect(request)
            self._owed.append(Owed(ONCE, request))
            return []
        self.run.expect(request)
        self._leg_numbers |= set(request.numbers)
        return [Add(self.run.name, count)]

    def go_on(self, search: Search | None = None, fix: int = 0) -> list[Effect]:
        """A run that has ended goes on: what was not written to its end is written first, under the same numbers and
        seeds. With a ``search`` it then goes on until one passes; candidates without a verdict are tested first.

        ``fix``: the search begins with corrections of that candidate. Raises BadRequest where there is nothing to
        correct.
        """
        assert self.run.ended, "a run that goes on is ended first"
        self._before = list(self.run.decisions)
        if not self.legs:  # a run of the past, or a file: loading a model is no part of it
            self._time.begin(elapsed_s(self.run))
        if search is not None:
            search.resume(self.run, self._time.now_s)
            search.wish(fix)
        self._owed = owed(self.run)
        effects = [effect for part in self._owed for effect in self._tests.retake(part.request)]
        self._tests.declined = False
        self._time.go_on()
        self._leg_open = False
        self.run.state = RunState.STOPPED  # whatever ended it before
        if search is None:
            return effects + (self._hand_over() if self._wanted else []) + self._go_on()
        self._search = search
        self._time.begin_search()
        return effects + self._hand_over() + self._go_on()

    def repair(self, number: int, count: int, seed: int) -> list[Effect]:
        """``count`` corrections of a candidate of a run that has ended join its candidates. Raises BadRequest."""
        asked = fix(self.run, number, seed)
        if not self.legs:  # a run of the history, or a file: what comes of it counts from now
            self._time.begin()
        first = max(self.run.candidates) + 1
        request = replace(asked, candidates=count, first_candidate=first)
        origin = Origin(REPAIR, "", number)
        self.run.reopen(request, origin)
        self.run.decisions.append(Decision(self._time.now_s, origin, "", request).to_dict())
        return self._generate(request)

    def repair_each(self, count: int, seed: int) -> list[Effect]:
        """``count`` corrections of all that failed, the best first, join a run that has ended. Raises BadRequest."""
        request, origins = repairs_of_each(self.run, count, seed)
        origin = origins[request.first_candidate]
        self.run.reopen(request, origin, origins)
        self.run.decisions.append(Decision(self._time.now_s, origin, "", request, origins=origins).to_dict())
        return self._generate(request)

    def stop(self) -> list[Effect]:
        """End the run and its tests. The run has ended when the engine says so."""
        self._search, self._owed = None, []
        effects: list[Effect] = [Cancel()] if self._proposal is not None else []
        self._proposal = None
        if not self.run.ended:
            self.run.stop()
            effects.append(Cancel(self.run.name))
        return effects + self.cancel_tests()

    def run_tests(self) -> list[Effect]:
        """Test all candidates of this run that have no verdict on these tests: those that ended now, others as they
        do.

        Tests other than the run's void its verdicts.
        """
        self._tests.ask_for_all()
        return self._hand_over()

    def policy_changed(self) -> list[Effect]:
        """Candidates that ended before are tested too, if that is what the user wants now."""
        return self._hand_over() if self._wanted else []

    def cancel_tests(self) -> list[Effect]:
        """End every test at once; candidates without a verdict are *not run* again."""
        return self._tests.cancel()

    def answer_consent(self, given: bool) -> list[Effect]:
        """To the last ConsentQuestion. After a no nothing is tested any more until the user asks for it."""
        if not given:
            self._end_search()
        return self._tests.answer_consent(given)

    # What the engine and the test runner say.

    def engine_event(self, event: Event) -> list[Effect]:
        if isinstance(event, Ready | LoadFailed):
            return self._model_answered(event)
        asked_to_stop = self.run.state == RunState.STOPPING
        self.run.apply(self._time.shifted(event))
        effects: list[Effect] = []
        if getattr(event, "run", None) == self.run.name:
            if isinstance(event, RunFinished) and self.legs and self._search is None and not asked_to_stop:
                self._owed[:0] = came_too_late(self.run, self._leg_numbers - set(self.legs[-1].request.numbers))
            if isinstance(event, CandidateFinished) and self._wanted:
                effects += self._hand_over()
            if isinstance(event, CandidateFinished | RunFinished):
                effects += self._go_on()
        return effects

    def tick(self) -> list[Effect]:
        """Time has passed; to be called a few times a second while ``searching``."""
        return self._go_on() if self._out_of_time else []

    def runner_answer(self, answer: Answer) -> list[Effect]:
        """The last words of a test that was cancelled are no verdict, nor are those on tests that have changed."""
        number = None if isinstance(answer, Isolation) else self.run.number_of(answer.id)
        if number is None:
            return []
        match answer:
            case TestStarted() | TestProgress():
                self._tests.note(number, answer)
            case TestFinished():
                return self._verdict(number, answer.report) + self._go_on()
            case ConsentNeeded():
                return self._tests.need_consent(number, answer)
        return []

    # What follows.

    @property
    def _wanted(self) -> bool:
        return self._tests.wanted(self.searching)

    def _generate(self, request: Request) -> list[Effect]:
        self.legs.append(Leg(request, self.run.provenance))
        self._leg_numbers = set(request.numbers)
        self._keep_decisions()
        self._leg_open = True
        self._time.begin_leg()
        return [Generate(self.run.name, request)]

    def _keep_decisions(self) -> None:
        if self._search is not None:
            self.run.decisions = self._before + [decision.to_dict() for decision in self._search.decisions]

    def _hand_over(self) -> list[Effect]:
        if self._tests.objection:
            self._end_search()
        return self._tests.hand_over()

    def _verdict(self, number: int, report: Report) -> list[Effect]:
        self.run.record(number, report, self._time.now_s)
        if self._search is not None and report.verdict == Verdict.INFRA and self._tests.give_no_verdict:
            return [RefusedTests(report.why), *self.stop()]
        to_stop = self._policy().stop_at_first_pass or self.searching
        if not (to_stop and self.run.candidates[number].passed):
            return []
        self._search, self._owed = None, []
        if self.run.ended or self.run.state == RunState.STOPPING:
            return [FirstPass(number, stopped=False)]
        self.run.stop()
        return [Cancel(self.run.name), FirstPass(number, stopped=True)]

    # Until one passes.

    @property
    def _out_of_time(self) -> bool:
        return self._search is not None and self._time.search_s >= self._search.budget.seconds

    def _go_on(self) -> list[Effect]:
        """Ask for more, or end the search, when there is reason to."""
        search, run = self._search, self.run
        if search is None:
            return self._write_owed()
        if self._out_of_time:
            return self.stop()
        if self._proposal is not None:
            return []
        if not run.ended:
            return self._refill(search)
        if self.testing:
            return []  # its verdict may be the pass
        self._leg_ended(search)
        proposal = self._next(search) if run.state != RunState.FAILED else None
        if proposal is None:
            self._end_search()
            return []
        if proposal.model != search.loaded:
            self._proposal = proposal
            return [Load(search.ladder[proposal.model].choice)]
        return self._reopen(proposal.request, proposal.origin, proposal.origins)

    def _write_owed(self) -> list[Effect]:
        """Without a search: one part after another of what an earlier end has cut off."""
        if self.run.state == RunState.FAILED:
            self._owed = []
        if not self._owed or not self.run.ended:
            return []
        part = self._owed.pop(0)
        return self._reopen(part.request, part.origin)

    def _end_search(self) -> None:
        """What it still owes is not asked for either; a run that does not search goes on with that."""
        if self._search is not None:
            self._search, self._owed = None, []

    @property
    def _can_add(self) -> bool:
        """The engine gives what is added the numbers behind those of the leg; others must not have them."""
        return max(self._leg_numbers) == max(self.run.candidates)

    def _refill(self, search: Search) -> list[Effect]:
        if self.run.state == RunState.STOPPING or self._owed or not self._can_add:
            return []
        own = self._of_this_leg()
        origins = search.refill(self.run, self._time.leg_s, sum(c.ended for c in own))
        effects: list[Effect] = []
        for origin, alike in groupby(origins):
            effects.append(self._join(search, origin, len(list(alike))))
        self._keep_decisions()
        return effects

    def _join(self, search: Search, origin: Origin, count: int) -> Add:
        """Further candidates share the prompt of those that are being written."""
        first = max(self.run.candidates) + 1
        openings = openings_of(self.run, dict.fromkeys(range(first, first + count), origin))
        request = replace(self.legs[-1].request, candidates=count, first_candidate=first, openings=openings)
        self.run.expect(request, origin)
        self._leg_numbers |= set(request.numbers)
        search.join(self.run, origin, request, self._time.now_s)
        return Add(self.run.name, count, openings.get(first, ()))

    def _of_this_leg(self) -> list[Candidate]:
        return [candidate for number, candidate in self.run.candidates.items() if number in self._leg_numbers]

    def _leg_ended(self, search: Search) -> None:
        """What was asked for when the engine was just done never began: another leg takes these numbers."""
        if self._leg_open:
            self._leg_open = False
            lost = [number for number in self.run.never_began() if number in self._leg_numbers]
            self.run.withdraw(lost)
            search.withdraw(lost)
            search.leg_ended(self._time.leg_s, len(self._of_this_leg()))

    def _next(self, search: Search) -> Proposal | None:
        """What an earlier end has cut off comes before anything new."""
        if not self._owed:
            return search.next(self.run, self._time.now_s)
        part = self._owed.pop(0)
        return search.again(part.origin, part.request, self._time.now_s)

    def _drop_proposal(self, search: Search) -> None:
        """Its model is not waited for any more. What was owed is still, and another model can write it."""
        proposal, self._proposal = self._proposal, None
        if proposal is not None:
            search.take_back()
            if proposal.request.first_candidate in self.run.candidates:
                self._owed.insert(0, Owed(proposal.origin, proposal.request))

    def _reopen(self, request: Request, origin: Origin, others: Mapping[int, Origin] = NO_OTHERS) -> list[Effect]:
        self.run.reopen(request, origin, others)
        for part in self._owed:  # they wait for their turn
            self.run.expect(part.request, part.origin)
        return self._generate(request)

    def _model_answered(self, event: Ready | LoadFailed) -> list[Effect]:
        """The model of a proposal is there, or another arm has to do without it."""
        search, proposal = self._search, self._proposal
        if search is None or proposal is None:
            return []
        if isinstance(event, Ready) and not self._out_of_time:
            self._proposal = None
            search.loaded = proposal.model
            self.run.provenance = replace(self.run.provenance, choice=search.ladder[proposal.model].choice, ready=event)
            return self._reopen(proposal.request, proposal.origin, proposal.origins)
        self._drop_proposal(search)
        if self._out_of_time:
            return self.stop()
        search.give_up_model(proposal.model)
        again = self._next(search) if search.ladder else None
        if again is None:
            self._end_search()
            return []
        self._proposal = again  # the engine may have let go of what was loaded before
        return [Load(search.ladder[again.model].choice)]
