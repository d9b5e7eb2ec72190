"""One candidate in numbers, as rows of a table."""

from app.item_models.rate import average
from app.item_models.table import Cell
from app.ui.words import tr
from engine.session.arms import FRESH, SHOWN_TEST
from engine.session.candidate import ONCE, Candidate, Origin
from engine.session.run import Run
from engine.session.search import asked_of
from engine.session.states import STOP_REASONS

_ARMS = {FRESH: "your prompt", SHOWN_TEST: "your prompt with a failing test"}


def details(candidate: Candidate, run: Run | None = None, best: str = "") -> list[tuple[Cell, ...]]:
    """Pairs of what and how much; only what is known. ``best``: why it is the best, if it is."""
    ending = STOP_REASONS.get(candidate.stop_reason, "")
    speed = average(candidate.tokens, candidate.started_s, candidate.finished_s)
    block = candidate.block
    known = (
        (tr("State"), candidate.state + (f": {tr(ending)}" if ending else "")),
        (tr("Best so far"), best),
        (tr("Origin"), origin_in_words(candidate.origin)),
        (tr("Prompt"), _asked(candidate, run)),
        (tr("Tests"), candidate.tests_label),
        (tr("Similarity"), candidate.likeness),
        (tr("Suggested tests"), candidate.agreement),
        (tr("Group"), _group(candidate, run)),
        (tr("Tokens"), f"{candidate.tokens:,}"),
        (tr("First token"), _seconds(candidate.started_s)),
        (tr("Finished"), _seconds(candidate.finished_s)),
        (tr("Speed"), f"{speed:.1f} tok/s" if speed is not None else ""),
        (tr("Drafts accepted"), _share(candidate.accepted, candidate.proposed)),
        (
            tr("Mean log-probability"),
            f"{candidate.mean_logprob:.3f}" if candidate.mean_logprob is not None else "",
        ),
        (tr("Seed"), tr("{seed}, candidate {number}").format(seed=candidate.seed, number=candidate.number)),
        (tr("Temperature"), f"{run.request.sampling_of(candidate.number).temperature:g}" if run else ""),
        (tr("Code"), _code(block.language, block.fenced, block.closed, len(candidate.code))),
    )
    return [(Cell(name, tone="muted"), Cell(value)) for name, value in known if value]


def origin_in_words(origin: Origin) -> str:
    """For example: repair of 3, by qwen2.5-coder-1.5b. Empty for a candidate of a run that asks once."""
    if origin == ONCE:
        return ""
    arm = tr("repair of {n}").format(n=origin.of) if origin.of else tr(_ARMS.get(origin.arm, origin.arm))
    return ", ".join(
        part for part in (arm, tr("by {model}").format(model=origin.model) if origin.model else "") if part
    )


def _asked(candidate: Candidate, run: Run | None) -> str:
    """The prompt that it answers, where that is not the run's own."""
    if run is None or candidate.origin.arm in ("", FRESH):
        return ""
    asked = asked_of(run.decisions, candidate.number)
    return asked.prompt if asked else ""


def _group(candidate: Candidate, run: Run | None) -> str:
    """The numbers of all that wrote the same code."""
    if run is None or not candidate.group:
        return ""
    alike = [str(n) for n, other in sorted(run.candidates.items()) if other.group == candidate.group]
    return tr("candidates {numbers} wrote the same code").format(numbers=", ".join(alike)) if len(alike) > 1 else ""


def _seconds(at_s: float | None) -> str:
    return "" if at_s is None else f"after {at_s:.2f} s"


def _share(accepted: int, proposed: int) -> str:
    return f"{accepted:,} of {proposed:,} ({100 * accepted / proposed:.0f} %)" if proposed else ""


def _code(language: str, fenced: bool, closed: bool, length: int) -> str:
    if not length:
        return tr("none in this answer")
    kind = f"{language or 'untagged'} block" if fenced else "in no block"
    return f"{kind}, {length:,} characters" + ("" if closed else ", not closed")
