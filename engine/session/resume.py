"""How a run of the history goes on until one passes: with whom, within which budget, and what it cost so far."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.session.arms import ARMS, Budget, Model
from engine.session.run import Run
from engine.session.search import Decision, Search


def search_of(run: Run, ladder: Sequence[Model], budget: Budget, arms: Iterable[str] = ARMS) -> Search:
    """The search that goes on with ``run``; hand it to ``RunDriver.go_on``.

    ``ladder`` is that of the model that the run began with. The one that wrote last is asked first: have
    ``search.ladder[search.loaded].choice`` loaded. ``budget`` counts from now, in candidates as in seconds.
    """
    begun = len(run.candidates) - len(run.never_began())
    search = Search(replace(budget, candidates=begun + budget.candidates), ladder, arms=arms)
    search.loaded = _wrote_last(run, [model.title for model in search.ladder])
    return search


def elapsed_s(run: Run) -> float:
    """How long the run had been going on when it ended or was killed, as far as its parts tell."""
    moments = [run.metrics.total_s or 0.0 if run.metrics else 0.0, run.first_passing_s or 0.0]
    moments += [decision["at_s"] for decision in run.decisions]
    moments += [at_s for c in run.candidates.values() for at_s in (c.started_s, c.finished_s) if at_s is not None]
    return max(moments)


def _wrote_last(run: Run, titles: Sequence[str]) -> int:
    """The place of the model that was asked last; of the first where that one is not there any more."""
    last: Iterable[str] = (Decision.from_dict(fields).model for fields in reversed(run.decisions))
    title = next((title for title in last if title), "")
    return titles.index(title) if title in titles else 0
