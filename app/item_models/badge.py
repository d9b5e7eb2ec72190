"""One candidate in two short lines and a shape: for the strip, the list and the tiles."""

from dataclasses import dataclass

from app.ui.words import tr
from engine.session.candidate import Candidate
from engine.session.states import CANDIDATE_STATES, TEST_STATES, TestState


@dataclass(frozen=True)
class Badge:
    """``word`` is the state, ``note`` what else fits below it; ``icon`` tells the state by its shape."""

    word: str
    note: str
    icon: str
    tone: str
    best: bool = False


def badge(candidate: Candidate, per_second: float | None, best: bool = False, outdated: bool = False) -> Badge:
    """A candidate in two short lines: what became of it, and how fast or like which it is.

    ``outdated``: its verdict is about other tests than those there are now.
    """
    speed = tr("{rate:.0f} tok/s").format(rate=per_second) if per_second is not None else ""
    tested = candidate.test_state != TestState.NOT_RUN
    shown = TEST_STATES[candidate.test_state] if tested else CANDIDATE_STATES[candidate.state]
    word = tr(shown.word) + _count(candidate)
    note = tr("repair of {n}").format(n=candidate.origin.of) if candidate.origin.of else speed
    if candidate.same_as is not None:
        note = tr("same as {number}").format(number=candidate.group)
    elif candidate.fails_like is not None:
        note = tr("fails like {number}").format(number=candidate.fails_like.number)
    elif candidate.behaves_like is not None:
        note = tr("like {number}").format(number=candidate.behaves_like.number)
    elif candidate.suggested[1]:
        note = tr("agrees {n}/{all}").format(n=candidate.suggested[0], all=candidate.suggested[1])
    if outdated:
        return Badge(word, tr("tests changed"), shown.icon, "muted", best)
    return Badge(word, tr("best") if best else note, shown.icon, shown.tone, best)


def _count(candidate: Candidate) -> str:
    """Briefly, since it stands in a tab: how many passed, or how many of all failed."""
    if candidate.test_state == TestState.RUNNING and candidate.tests_total:
        return f" {candidate.tests_done}/{candidate.tests_total}"
    report = candidate.report
    if report is None or not report.tests:
        return ""
    if candidate.test_state == TestState.PASSED:  # of an unconfirmed pass the word alone takes the whole tab
        return f" {report.passed}/{len(report.tests)}"
    return (
        " " + tr("{n} of {all}").format(n=report.failed, all=len(report.tests))
        if candidate.test_state == TestState.FAILED
        else ""
    )


def in_words(candidate: Candidate, per_second: float | None, outdated: bool = False) -> str:
    """The whole row as a sentence, for screen readers and tooltips."""
    parts = [
        tr("Candidate {number}").format(number=candidate.number),
        tr(CANDIDATE_STATES[candidate.state].word),
    ]
    if candidate.ended:  # numbers that grow are no news for a screen reader
        parts.append(tr("{count} tokens").format(count=candidate.tokens))
    if candidate.ended and per_second is not None:
        parts.append(tr("{rate:.0f} tokens per second").format(rate=per_second))
    if candidate.test_state != TestState.NOT_RUN:
        parts.append(tr("tests {label}").format(label=candidate.tests_label))
    if outdated:
        parts.append(tr("the tests have changed since"))
    if candidate.origin.of:
        parts.append(tr("a repair of candidate {n}").format(n=candidate.origin.of))
    if candidate.likeness:
        parts.append(candidate.likeness)
    if candidate.agreement:
        parts.append(candidate.agreement)
    return ", ".join(parts)
