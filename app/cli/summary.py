"""The outcome of a run, in sentences."""

from app.cli.output import one_line
from engine.contract import CandidateState, Metrics
from engine.session.candidate import FILE
from engine.session.export import chosen
from engine.session.run import Run
from engine.session.states import TestState, label_of


def outcome(run: Run) -> str:
    """How many candidates are good, and which one is shown and why."""
    count, best = len(run.candidates), run.best()
    if best is None:
        who = "The candidate wrote no code" if count == 1 else f"None of {count} candidates wrote any code"
        wrote = any(c.text.strip() for c in run.candidates.values())
        return f"{who}; --json prints what was written instead." if wrote else f"{who}."
    candidate = run.candidates[best]
    if not run.tests:
        whole = sum(c.state == CandidateState.DONE for c in run.candidates.values())
        ended = f"{whole} of {count} candidates ended by themselves; candidate {best} is shown"
        standing = run.standings.get(best)
        if standing is None or len(standing.group) < 2:
            return f"{ended}."
        return f"{ended}: {len(standing.group)} behave alike on {standing.inputs} inputs."
    if chosen(run) is None:
        why = f": {one_line(candidate.why)}" if candidate.why else "."
        if count == 1 and candidate.test_state == TestState.PASSED_SOFT:
            return f"The candidate's pass is {label_of(candidate.test_state)}{why}"
        if count == 1:
            return f"The candidate does not pass its tests: {candidate.tests_label}{why}"
        return f"None of {count} candidates passes; the best is {best}, {candidate.tests_label}{why}"
    passing = sum(c.passed for c in run.candidates.values())
    return f"{passing} of {count} candidates pass; candidate {best} is picked ({candidate.tests_label})."


def passes_already(run: Run) -> str:
    """Of a run that was to go on, and need not."""
    number = chosen(run)
    who = "The file" if number is not None and run.candidates[number].origin.arm == FILE else f"Candidate {number}"
    return f"{who} passes these tests already; nothing was changed."


def speed(run: Run, metrics: Metrics) -> str:
    """How long it took, and whether guessing ahead paid."""
    seconds = {
        "first token": metrics.time_to_first_token_s,
        "first finished": metrics.time_to_first_finished_s,
        "first passing": run.first_passing_s,
        "all written": metrics.total_s,
    }
    parts = [f"{name} {value:.1f} s" for name, value in seconds.items() if value is not None]
    if metrics.tokens_per_second is not None:
        parts.append(f"{metrics.tokens_per_second:.0f} tokens/s")
    if metrics.acceptance_rate is not None:
        parts.append(f"drafts accepted {100 * metrics.acceptance_rate:.0f} %")
    text = ", ".join(parts)
    return text[:1].upper() + text[1:] + "."
