"""One candidate in numbers, as rows of a table."""

from app.item_models.rate import average
from app.item_models.table import Cell
from engine.session.run import Candidate

_REASONS = {
    "stop": "ended by itself",
    "length": "reached max tokens",
    "budget": "reached the time budget",
    "cancelled": "stopped by you",
    "error": "an error ended it",
}


def details(candidate: Candidate) -> list[tuple[Cell, ...]]:
    """Pairs of what and how much; only what is known."""
    ending = _REASONS.get(candidate.stop_reason, candidate.stop_reason)
    speed = average(candidate.tokens, candidate.started_s, candidate.finished_s)
    block = candidate.block
    known = (
        ("State", candidate.state + (f": {ending}" if ending else "")),
        ("Tests", candidate.tests_label),
        ("Like", f"{candidate.same_as.reason} as candidate {candidate.same_as.number}" if candidate.same_as else ""),
        ("Tokens", f"{candidate.tokens:,}"),
        ("First token", _seconds(candidate.started_s)),
        ("Finished", _seconds(candidate.finished_s)),
        ("Speed", f"{speed:.1f} tok/s" if speed is not None else ""),
        ("Drafts accepted", _share(candidate.accepted, candidate.proposed)),
        ("Mean log-probability", f"{candidate.mean_logprob:.3f}" if candidate.mean_logprob is not None else ""),
        ("Seed", f"{candidate.seed}, candidate {candidate.number}"),
        ("Code", _code(block.language, block.fenced, block.closed, len(candidate.code))),
    )
    return [(Cell(name, tone="muted"), Cell(value)) for name, value in known if value]


def _seconds(at_s: float | None) -> str:
    return "" if at_s is None else f"after {at_s:.2f} s"


def _share(accepted: int, proposed: int) -> str:
    return f"{accepted:,} of {proposed:,} ({100 * accepted / proposed:.0f} %)" if proposed else ""


def _code(language: str, fenced: bool, closed: bool, length: int) -> str:
    kind = f"{language or 'untagged'} block" if fenced else "no block: the whole answer"
    return f"{kind}, {length:,} characters" + ("" if closed else ", not closed")
