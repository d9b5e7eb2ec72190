"""Which candidate is best so far, and why it is: the sentence behind the star."""

from dataclasses import dataclass

from app.ui.words import tr
from engine.session.candidate import Candidate
from engine.session.run import Run


@dataclass(frozen=True)
class BestReason:
    """``number`` 0: nothing has finished. ``reason`` is for a tooltip and the details."""

    number: int = 0
    reason: str = ""


def best_reason(run: Run) -> BestReason:
    """The best of the candidates that ended with some code, by the order of ``selection.ranking``."""
    order = run.ranking()
    if not order:
        return BestReason()
    best = run.candidates[order[0]]
    rest = [run.candidates[number] for number in order[1:]]
    return BestReason(best.number, ", ".join([_tests(best, rest), *_beyond_tests(run, best, rest)]))


def _tests(best: Candidate, rest: list[Candidate]) -> str:
    if best.report is None:
        return tr("not tested")
    if not best.passed:
        return tr("no candidate passed; its tests: {label}").format(label=best.tests_label)
    others = sum(candidate.passed for candidate in rest)
    if not others:
        return tr("the only one that passed its tests")
    return tr("passed its tests, as {count} others did").format(count=others)


def _beyond_tests(run: Run, best: Candidate, rest: list[Candidate]) -> list[str]:
    """What decides where the tests do not: how many say the same, and how likely the model found it."""
    if best.passed and not any(candidate.passed for candidate in rest):
        return []
    alike = sum(candidate.group == best.group for candidate in run.candidates.values() if candidate.group)
    words = [tr("{count} candidates wrote the same code").format(count=alike)] if alike > 1 else []
    if best.mean_logprob is not None and rest:
        words.append(tr("mean log-probability {value:.2f}").format(value=best.mean_logprob))
    return words
