"""Ways of going on when no candidate has passed yet, and which of them to take next.

Every arm proposes a request; the proposal with the most expected passes per second is taken. The expectation starts
from the pass rates in resources/arms.toml and falls with every candidate of this run that failed. All of it is computed
from the run and from the costs passed in, so the same run leads to the same decisions.
"""

import contextlib
import functools
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import cattrs

from engine.contract import BadRequest, BasslineError, ModelChoice, Request
from engine.contract.parameters import TIME_BUDGET
from engine.selection.languages import fenced
from engine.session.candidate import Candidate, Origin
from engine.session.run import Run
from engine.session.turns import fix

_FILE = Path(__file__).parents[2] / "resources" / "arms.toml"
BATCH = 8  # candidates of one proposal
MOST = 10_000  # candidates of a search: each is kept, in the history and in memory
_SHORTEST_S = 1e-6  # what nothing is taken to last where the clock has not moved on
FRESH, SHOWN_TEST, REPAIR, LARGER = "fresh", "told", "repair", "larger model"
_WITH_TEST = """\
{prompt}

Answers that were tried before failed this test, among others:

{test}"""
_LONGEST_TEST = 2_000  # characters


@dataclass(frozen=True)
class Budget:
    """What may be spent until one candidate passes. Raises BadRequest for what cannot be."""

    candidates: int = 64
    seconds: float = 120.0

    def __post_init__(self) -> None:
        if not 1 <= self.candidates <= MOST:
            raise BadRequest(f"The most candidates must be at least 1 and at most {MOST:,}, not {self.candidates}.")
        TIME_BUDGET.check(self.seconds)


@dataclass(frozen=True)
class Chance:
    """How likely one candidate of an arm passes, as a Beta distribution of so many ``passes`` and ``fails``."""

    arm: str
    passes: float
    fails: float
    model: str = ""  # empty: any

    def after(self, failed: float) -> float:
        return self.passes / (self.passes + self.fails + failed)


@dataclass(frozen=True)
class Model:
    """A model that can be asked, smallest first in a ladder. ``speed``: seconds per candidate against the first one's;
    ``load_s``: until it can be asked, where it is not loaded."""

    choice: ModelChoice
    title: str
    speed: float = 1.0
    load_s: float = 0.0


@dataclass(frozen=True)
class Outlook:
    """What arms look at. ``loaded``: the place in ``ladder`` of the model that is loaded; ``first``: what was asked
    first; ``candidate_s``: measured seconds per candidate of the loaded model; ``left``: candidates that may follow;
    ``of``: the candidate that ``first`` asks to correct, 0 for none.
    """

    run: Run
    first: Request
    ladder: Sequence[Model]
    loaded: int
    candidate_s: float
    left: int
    of: int = 0

    @property
    def count(self) -> int:
        return min(BATCH, self.left)

    def asks(self, request: Request) -> Request:
        """``request`` for candidates with the next numbers, so that no seed is used twice."""
        number = max(self.run.candidates, default=0) + 1
        return replace(request, candidates=self.count, first_candidate=number)

    def failed(self, arm: str, model: str) -> int:
        """Candidates of that arm that were tested and did not pass."""
        own = (c for c in self.run.candidates.values() if (c.origin.arm, c.origin.model) == (arm, model))
        return sum(c.report is not None and not c.passed for c in own)

    def against(self, arm: str, model: str) -> float:
        """Failures that speak against the next candidate of that arm; those of the other wording count in part."""
        other = {FRESH: SHOWN_TEST, SHOWN_TEST: FRESH}.get(arm)
        shared = _measured().shared_failures * self.failed(other, model) if other else 0.0
        return self.failed(arm, model) + shared


@dataclass(frozen=True)
class Proposal:
    """``chance`` and ``seconds`` are those of one candidate; ``load_s`` comes once, before the first.

    ``origins``: candidates that come from elsewhere than ``origin``, by number.
    """

    origin: Origin
    request: Request
    model: int
    chance: float
    seconds: float
    load_s: float = 0.0
    origins: dict[int, Origin] = field(default_factory=dict)

    @property
    def worth(self) -> float:
        """Chance that at least one passes, per second."""
        n = self.request.candidates
        return (1 - (1 - self.chance) ** n) / max(self.load_s + n * self.seconds, _SHORTEST_S)


Arm = Callable[[Outlook], Iterable[Proposal]]


def fresh(now: Outlook) -> Iterator[Proposal]:
    """Further candidates of the same request."""
    title = now.ladder[now.loaded].title
    chance = chance_of(FRESH, title).after(now.against(FRESH, title))
    yield Proposal(Origin(FRESH, title, now.of), now.asks(now.first), now.loaded, chance, now.candidate_s)


def with_tests_in_prompt(now: Outlook) -> Iterator[Proposal]:
    """Further candidates that see the test which most of those before failed."""
    if now.first.mode != "chat" or not (test := _common_failure(now.run)):
        return
    title = now.ladder[now.loaded].title
    prompt = _WITH_TEST.format(prompt=now.first.prompt, test=fenced(test))
    chance = chance_of(SHOWN_TEST, title).after(now.against(SHOWN_TEST, title))
    request = now.asks(replace(now.first, prompt=prompt))
    yield Proposal(Origin(SHOWN_TEST, title, now.of), request, now.loaded, chance, now.candidate_s)


def repair(now: Outlook) -> Iterator[Proposal]:
    """Corrections of the best failing candidate that was not corrected before."""
    start = best_failing(now.run)
    if start is None or start.number == now.of:  # which is what further candidates do
        return
    with contextlib.suppress(BasslineError):
        yield repair_of(now, start.number)


def repair_of(now: Outlook, number: int) -> Proposal:
    """Corrections of that candidate. Raises BadRequest."""
    title = now.ladder[now.loaded].title
    request = now.asks(fix(now.run, number, now.first.seed))
    chance = chance_of(REPAIR, title).after(now.failed(REPAIR, title))
    return Proposal(Origin(REPAIR, title, number), request, now.loaded, chance, now.candidate_s)


def larger_model(now: Outlook) -> Iterator[Proposal]:
    """The same request to the next model of the ladder."""
    at = now.loaded + 1
    if at >= len(now.ladder):
        return
    model, here = now.ladder[at], now.ladder[now.loaded]
    chance = chance_of(LARGER, model.title).after(now.against(FRESH, model.title))
    seconds = now.candidate_s * model.speed / here.speed
    yield Proposal(Origin(FRESH, model.title, now.of), now.asks(now.first), at, chance, seconds, model.load_s)


def best_failing(run: Run) -> Candidate | None:
    """The candidate with the most tests passed that nothing was corrected from yet; of those with equal behaviour, and
    of those that are as good, the first one counts. None where nothing failed in a way that could be told."""
    corrected = {c.origin.of for c in run.candidates.values()}
    corrected |= {c.group for n, c in run.candidates.items() if n in corrected}
    failing = [
        c
        for number, c in sorted(run.candidates.items())
        if c.report is not None and not c.passed and c.why and number not in corrected and c.group not in corrected
    ]
    return max(failing, key=lambda c: c.report.passed if c.report else 0, default=None)


def _common_failure(run: Run) -> str:
    """The failing assert, with its values, that the most candidates failed; the first one among equals."""
    whys = [test.why for c in run.candidates.values() if c.report for test in c.report.tests if test.why]
    asserts = [why.partition(", where ")[0] for why in whys if why.startswith("assert ")]
    return max(asserts, key=asserts.count, default="")[:_LONGEST_TEST]


ARMS: dict[str, Arm] = {FRESH: fresh, SHOWN_TEST: with_tests_in_prompt, REPAIR: repair, LARGER: larger_model}


def proposals(now: Outlook, arms: Iterable[str] = ARMS) -> list[Proposal]:
    """What can be done next, best first; none where no candidate may follow."""
    if now.left < 1:
        return []
    found = [proposal for name in arms for proposal in ARMS[name](now)]
    return sorted(found, key=lambda proposal: -proposal.worth)


@dataclass(frozen=True)
class MeasuredChances:
    """``shared_failures``: how much a failing fresh candidate says about one that is shown the test, and conversely."""

    shared_failures: float
    chance: tuple[Chance, ...]


@functools.cache
def _measured() -> MeasuredChances:
    rows = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return cattrs.Converter(forbid_extra_keys=True).structure(rows, MeasuredChances)


def chance_of(arm: str, model: str) -> Chance:
    """What was measured for that arm with that model; with any model where that one was not measured."""
    known = [chance for chance in _measured().chance if chance.arm == arm]
    return next((chance for chance in known if chance.model == model), known[0])
