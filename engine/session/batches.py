"""Who fills a batch: fresh candidates and repairs of different answers, which share the prompt, row by row.

A row matters only if all others of its batch fail, so each goes to the arm that is likeliest to pass once they have:
what is still being written counts as failed. So a batch is never put on one guess alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.contract import BadRequest, BasslineError, Request, Turn
from engine.session.arms import BATCH, FRESH, REPAIR, Outlook, Proposal, chance_of
from engine.session.candidate import Candidate, Origin
from engine.session.run import Run
from engine.session.turns import correction

MIXED = (FRESH, REPAIR)


def fill(now: Outlook, count: int, arms: Iterable[str] = MIXED) -> list[Origin]:
    """Where the next ``count`` candidates of the loaded model come from; fewer where nothing is left to try."""
    title = now.ladder[now.loaded].title
    lost = {arm: now.against(arm, title) + _open(now.run, arm, title) for arm in MIXED if arm in arms}
    origins = list[Origin]()
    for _ in range(count):
        wrong = next_to_correct(now.run, [origin.of for origin in origins]) if REPAIR in lost else None
        options = [arm for arm in lost if arm == FRESH or wrong is not None]
        if not options:
            break
        arm = max(options, key=lambda arm: chance_of(arm, title).after(lost[arm]))
        origins.append(Origin(REPAIR, title, wrong.number) if arm == REPAIR and wrong else Origin(FRESH, title))
        lost[arm] += 1
    return sorted(origins, key=lambda origin: origin.arm == REPAIR)  # those that read nothing can begin


def filled(now: Outlook, proposal: Proposal, arms: Iterable[str]) -> Proposal:
    """``proposal`` of fresh candidates or repairs as one batch of both, where they can share the prompt."""
    if not can_mix(now.first, proposal, now.loaded, now.of):
        return proposal
    origins = fill(now, proposal.request.candidates, arms)
    request = now.asks(now.first)
    numbered = dict(zip(request.numbers, origins, strict=False))
    request = replace(request, candidates=len(numbered), openings=openings_of(now.run, numbered))
    main = next(iter(numbered.values()))
    others = {number: origin for number, origin in numbered.items() if origin != main}
    return replace(proposal, origin=main, request=request, origins=others)


def can_mix(first: Request, proposal: Proposal, loaded: int, of: int) -> bool:
    """Whether it asks the loaded model in a conversation, and for nothing but what may fill one batch.

    ``of``: the candidate that ``first`` corrects already; behind that conversation nothing else is corrected.
    """
    return first.mode == "chat" and not of and proposal.origin.arm in MIXED and proposal.model == loaded


def openings_of(run: Run, origins: dict[int, Origin]) -> dict[int, tuple[Turn, ...]]:
    """What repairs begin with behind the prompt, by number."""
    return {number: correction(run, origin.of) for number, origin in origins.items() if origin.arm == REPAIR}


def repairs_of_each(run: Run, count: int, seed: int) -> tuple[Request, dict[int, Origin]]:
    """``count`` corrections of the answers that failed, the best first, as one batch; and whose each is, by number.

    Raises BadRequest where nothing can be corrected, or the answers are no conversation.
    """
    chosen = list[int]()
    while len(chosen) < count and (wrong := next_to_correct(run, chosen)) is not None:
        chosen.append(wrong.number)
    first = max(run.candidates, default=0) + 1
    origins = {first + at: Origin(REPAIR, "", of) for at, of in enumerate(chosen)}
    if not origins:
        raise BadRequest("No answer failed in a way that the model could be told; run the tests first.")
    request = replace(run.request, seed=seed, overrides={}, candidates=len(origins), first_candidate=first)
    return replace(request, openings=openings_of(run, origins)), origins


def next_to_correct(run: Run, planned: Sequence[int] = ()) -> Candidate | None:
    """Of the answers that failed, the one that was corrected least; of those the best, and the first among equals.

    Answers with the same code are one. ``planned``: candidates that are about to be corrected once more, each time
    they are named. None where all had their share.
    """
    asked = [c.origin.of for c in run.candidates.values() if c.origin.of] + list(planned)
    groups = [run.candidates[of].group or of for of in asked if of in run.candidates]
    failing = {
        c.group or number: c
        for number, c in sorted(run.candidates.items(), reverse=True)
        if c.report is not None and not c.passed and _can_be_corrected(run, c)
    }
    left = {group: c for group, c in failing.items() if groups.count(group) < BATCH}
    return min(left.values(), key=lambda c: (groups.count(c.group or c.number), -_passed(c), c.number), default=None)


def _can_be_corrected(run: Run, candidate: Candidate) -> bool:
    try:
        return bool(correction(run, candidate.number))
    except BasslineError:
        return False


def _passed(candidate: Candidate) -> int:
    return candidate.report.passed if candidate.report else 0


def _open(run: Run, arm: str, model: str) -> int:
    """Candidates of that arm without a verdict, which may still come."""
    own = (c for c in run.candidates.values() if (c.origin.arm, c.origin.model) == (arm, model))
    return sum(c.report is None for c in own)
