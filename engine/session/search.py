"""Until one passes: what a run asks for next, within a budget of seconds and candidates.

A Search is asked whenever something has changed, and keeps every decision with what it was made from. It has no clock
of its own: the same run and the same times give the same decisions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from engine.contract import Request, Sampling
from engine.contract.wire import part_from_json, part_to_json
from engine.session.arms import ARMS, BATCH, FRESH, REPAIR, Budget, Model, Outlook, Proposal, proposals, repair_of
from engine.session.batches import MIXED, can_mix, fill, filled
from engine.session.candidate import FILE, ONCE, Origin
from engine.session.run import Run
from engine.session.states import IN_TEST
from engine.session.turns import fix


@dataclass(frozen=True)
class Decision:
    """What was asked for ``at_s`` seconds after the run began, and what else was considered: arm -> worth.

    ``origins``: candidates of the request that come from elsewhere than ``origin``, by number. ``joins``: its
    candidates joined those that were being written.
    """

    at_s: float
    origin: Origin
    model: str
    request: Request
    considered: dict[str, float] = field(default_factory=dict)
    origins: dict[int, Origin] = field(default_factory=dict)
    joins: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "at_s": round(self.at_s, 3),
            "arm": self.origin.arm,
            "of": self.origin.of,
            "model": self.model,
            "considered": self.considered,
            "request": part_to_json(self.request),
            **({"origins": {str(n): asdict(origin) for n, origin in self.origins.items()}} if self.origins else {}),
            **({"joins": True} if self.joins else {}),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Decision":
        origin = Origin(fields["arm"], fields["model"], fields["of"])
        request = part_from_json(fields["request"], Request)
        origins = {int(number): Origin(**own) for number, own in fields.get("origins", {}).items()}
        joins = fields.get("joins", False)
        return cls(fields["at_s"], origin, fields["model"], request, dict(fields["considered"]), origins, joins)


def asked_of(decisions: Iterable[dict[str, Any]], number: int) -> Request | None:
    """What a candidate was asked, of the decisions that a run keeps; asked alone, with its number, it says the same.

    None for one that came before any decision. Fresh candidates that kept a batch full belong to its beginning.
    """
    known = [Decision.from_dict(fields) for fields in decisions]
    own = [decision for decision in known if number in decision.request.numbers]
    before = [decision for decision in known if not decision.joins and decision.request.first_candidate <= number]
    decision = next(reversed(own or before), None)
    return decision.request.asked_of(number) if decision else None


class Search:
    """``ladder``: the models that may be asked, smallest first; ``loaded`` is the place of the one that is."""

    def __init__(self, budget: Budget, ladder: Sequence[Model], loaded: int = 0, arms: Iterable[str] = ARMS):
        self.budget, self.ladder, self.loaded = budget, list(ladder), loaded
        self.decisions: list[Decision] = []
        self._arms, self._wish = tuple(arms), 0
        self._spent_s: dict[str, float] = {}  # by the model's title, with candidates that ended
        self._ended: dict[str, int] = {}

    @property
    def title(self) -> str:
        return self.ladder[self.loaded].title

    @property
    def current(self) -> Origin:
        """What the part of the run that is being written began as."""
        return next(decision for decision in reversed(self.decisions) if not decision.joins).origin

    def first(self, request: Request) -> Request:
        """What the run begins with. Candidates' own temperatures, where there are such, are walked again and again."""
        count = min(BATCH, self.budget.candidates)
        request = replace(request, candidates=count, goal="first", overrides=self._walked(request))
        self.decisions.append(Decision(0.0, Origin(FRESH, self.title), self.title, request))
        return request

    def resume(self, run: Run, at_s: float = 0.0) -> None:
        """Go on from a run that has ended without a pass, as if it had begun this way, or as it did begin.

        A run that is about a file of the user's own is asked for corrections of it. Raises BadRequest where it needs
        none.
        """
        origin = Origin(FRESH, self.title)
        for candidate in run.candidates.values():
            candidate.origin = origin if candidate.origin == ONCE else candidate.origin
        before = (Decision.from_dict(fields) for fields in run.decisions)
        begun = next((decision for decision in before if decision.origin.arm == FRESH), None)
        request, of = (begun.request, begun.origin.of) if begun else _first_of(run)
        request = replace(request, goal="first", time_budget_s=None, overrides=self._walked(request))
        self.decisions.append(Decision(at_s, replace(origin, of=of), self.title, request))
        self._spent_s, self._ended = costs(run)

    def wish(self, number: int) -> None:
        """Whatever the chances: what is asked next are corrections of that candidate."""
        self._wish = number

    def _walked(self, request: Request) -> dict[int, Sampling]:
        """Candidates' own temperatures, where there are such, for all that may be asked for: again and again."""
        own = [request.sampling_of(number) for number in range(1, max(request.overrides, default=0) + 1)]
        own = own[: _period(own)]
        return {n: own[(n - 1) % len(own)] for n in range(1, self.budget.candidates + 1)} if own else {}

    def left(self, run: Run) -> int:
        """Candidates that may still be asked for."""
        return max(0, self.budget.candidates - len(run.candidates))

    def leg_ended(self, seconds: float, candidates: int) -> None:
        """A part of the run took so long for so many candidates."""
        self._spent_s[self.title] = self._spent_s.get(self.title, 0.0) + seconds
        self._ended[self.title] = self._ended.get(self.title, 0) + candidates

    def refill(self, run: Run, seconds: float, ended: int) -> list[Origin]:
        """Where candidates come from that should join those being written, ``ended`` of which took ``seconds`` so far.

        Only what shares their prompt can join them.
        """
        first = self.decisions[0].request
        if self.current.arm not in (MIXED if first.mode == "chat" else (FRESH,)):
            return []
        # One whose verdict is still to come may be the pass: nothing is written in its place before that.
        open_ = sum(not c.ended or c.test_state in IN_TEST for c in run.candidates.values())
        missing = min(BATCH - open_, self.left(run))
        if missing < 1 or not ended:
            return []
        best = self._best(run, seconds, ended)
        if best and can_mix(first, best[0], self.loaded, self.decisions[0].origin.of):
            return fill(self._outlook(run, seconds, ended), missing, self._arms)
        return [self.current] * missing if best and best[0].origin == self.current else []

    def join(self, run: Run, origin: Origin, request: Request, at_s: float) -> None:
        """Keep that a repair joins those being written. Of fresh candidates the part's beginning tells all."""
        if origin.arm == REPAIR:
            self.decisions.append(Decision(at_s, origin, self.title, request, joins=True))

    def withdraw(self, numbers: Iterable[int]) -> None:
        """These joined too late and never began."""
        lost = set(numbers)
        self.decisions = [d for d in self.decisions if not (d.joins and d.request.first_candidate in lost)]

    def next(self, run: Run, at_s: float) -> Proposal | None:
        """What to ask for now that nothing is being written; None when there is nothing left to try."""
        best = self._best(run, 0.0, 0)
        if not best:
            return None
        outlook = self._outlook(run, 0.0, 0)
        if self._wish:
            chosen, self._wish = repair_of(outlook, self._wish), 0
        else:
            chosen = filled(outlook, best[0], self._arms)
        considered = {_label(proposal): round(proposal.worth, 6) for proposal in best}
        title = self.ladder[chosen.model].title
        self.decisions.append(Decision(at_s, chosen.origin, title, chosen.request, considered, chosen.origins))
        return chosen

    def again(self, origin: Origin, request: Request, at_s: float) -> Proposal:
        """What was asked for before an end cut it off, of the same model where that is still there.

        Where it is not, the loaded one writes it, and it is that one's from then on.
        """
        titles = [model.title for model in self.ladder]
        model = titles.index(origin.model) if origin.model in titles else self.loaded
        origin = replace(origin, model=titles[model]) if origin.model else origin
        request = replace(request, goal="first", time_budget_s=None)
        self.decisions.append(Decision(at_s, origin, titles[model], request))
        return Proposal(origin, request, model, 0.0, 0.0)

    def give_up_model(self, at: int) -> None:
        """It could not be loaded; it is not asked for again in this run."""
        del self.ladder[at]
        if self.loaded >= at:
            self.loaded -= 1

    def take_back(self) -> None:
        """The last decision: nothing is asked for by it."""
        self.decisions.pop()

    def _best(self, run: Run, seconds: float, ended: int) -> list[Proposal]:
        return proposals(self._outlook(run, seconds, ended), self._arms)

    def _outlook(self, run: Run, seconds: float, ended: int) -> Outlook:
        spent = self._spent_s.get(self.title, 0.0) + seconds
        count = self._ended.get(self.title, 0) + ended
        first = self.decisions[0]
        left, of = self.left(run), first.origin.of
        return Outlook(run, first.request, self.ladder, self.loaded, spent / max(1, count), left, of)


def _first_of(run: Run) -> tuple[Request, int]:
    """What the run was asked first, and the candidate that this corrects; 0 for none."""
    own = next((number for number, c in sorted(run.candidates.items()) if c.origin.arm == FILE), 0)
    return (fix(run, own, run.request.seed), own) if own else (run.request, 0)


def costs(run: Run) -> tuple[dict[str, float], dict[str, int]]:
    """Seconds in which candidates were written, and how many that ended, by the title of their model."""
    seconds, ended = dict[str, float](), dict[str, int]()
    for title in {c.origin.model for c in run.candidates.values()}:
        own = [c for c in run.candidates.values() if c.origin.model == title and c.origin.arm != FILE]
        written = sorted((c.started_s or 0.0, c.finished_s) for c in own if c.finished_s is not None)
        until = 0.0
        for start, end in written:
            seconds[title] = seconds.get(title, 0.0) + max(0.0, end - max(start, until))
            until = max(until, end)
        ended[title] = len(written)
    return seconds, ended


def _period(own: Sequence[Sampling]) -> int:
    """After how many samplings they come again."""
    return next((p for p in range(1, len(own)) if all(one == own[at % p] for at, one in enumerate(own))), len(own))


def was_search(run: Run) -> bool:
    """It was to go on until one passes; a correction that was asked for by hand is recorded, too."""
    return any(fields["arm"] == FRESH for fields in run.decisions)


def _label(proposal: Proposal) -> str:
    origin = proposal.origin
    return f"{origin.arm}, {origin.model}" + (f", {origin.of}" if origin.of else "")
