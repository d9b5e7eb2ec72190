"""What a run that was ended early still owes: candidates that were asked for and not written to their end."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from engine.contract import CandidateState, Request, RunOutcome
from engine.contract.request import MAX_CANDIDATES
from engine.session.candidate import Candidate, Origin
from engine.session.run import Run
from engine.session.search import Decision, was_search
from engine.session.states import RunState


@dataclass(frozen=True)
class Owed:
    """``request`` asks for them once more, under the same numbers and seeds: they become what they would have been."""

    origin: Origin
    request: Request


def owed(run: Run) -> list[Owed]:
    """Neighbours that were asked for together, in the order of their numbers.

    Those with an error of their own and those that a budget cut are not among them.
    """
    return _parts(run, (c for c in run.candidates.values() if not c.ended or _cut_off(run, c)))


def came_too_late(run: Run, added: Collection[int]) -> list[Owed]:
    """Those of ``added`` that the engine never heard of: it had just finished with all others by itself.

    One that was stopped before it began has an end of its own.
    """
    if run.outcome != RunOutcome.FINISHED:
        return []
    lost = (run.candidates[number] for number in run.never_began() if number in added)
    return _parts(run, (candidate for candidate in lost if candidate.finished_s is None))


def _parts(run: Run, candidates: Iterable[Candidate]) -> list[Owed]:
    found: list[Owed] = []
    for candidate in sorted(candidates, key=lambda candidate: candidate.number):
        request = replace(_asked(run, candidate), candidates=1, first_candidate=candidate.number, seed=candidate.seed)
        last = found[-1] if found else None
        if last is not None and last.origin == candidate.origin and _goes_on(last.request, request):
            found[-1] = Owed(last.origin, replace(last.request, candidates=last.request.candidates + 1))
        else:
            found.append(Owed(candidate.origin, request))
    return found


def can_go_on(run: Run) -> bool:
    """Something of it is missing: candidates, or a pass where it was to go on until there is one."""
    if was_search(run):
        return bool(run.tests.strip()) and not any(c.passed for c in run.candidates.values())
    return bool(owed(run))


def _cut_off(run: Run, candidate: Candidate) -> bool:
    """It ended because the run did."""
    return candidate.state == CandidateState.STOPPED or (
        candidate.state == CandidateState.FAILED and run.state == RunState.FAILED
    )


def _goes_on(request: Request, other: Request) -> bool:
    if request.candidates == MAX_CANDIDATES:
        return False
    return replace(request, candidates=1, first_candidate=request.numbers.stop) == other


def _asked(run: Run, candidate: Candidate) -> Request:
    """What it is an answer to."""
    number, origin = candidate.number, candidate.origin
    known = [Decision.from_dict(fields) for fields in run.decisions]
    own = [d for d in known if number in d.request.numbers and d.origins.get(number, d.origin) == origin]
    before = [d for d in known if not d.joins and d.origin == origin and d.request.first_candidate <= number]
    found = next(reversed(own or before), None)
    return found.request.asked_of(number) if found else run.request
