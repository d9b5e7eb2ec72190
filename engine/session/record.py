"""A run as rows of the journal, and back."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from engine.contract import CandidateState, Metrics, ModelChoice, Ready, Request, RunOutcome, StopReason
from engine.contract.states import ENDED
from engine.contract.wire import part_from_json, part_to_json
from engine.elicitation.standings import Compared
from engine.runner.report import Report
from engine.session.candidate import ONCE, Candidate, Origin, around
from engine.session.provenance import Provenance
from engine.session.run import Run
from engine.session.states import RunState, TestState

Row = dict[str, Any]
_TITLE = 200  # characters

_COUNTS = ("tokens", "proposed", "accepted", "mean_logprob", "started_s", "finished_s")


@dataclass(frozen=True)
class StoredRun:
    """A run out of the journal. ``began`` is in UTC."""

    id: int
    run: Run
    began: datetime


def title(prompt: str) -> str:
    """The prompt's first line that says something."""
    return next((line.strip()[:_TITLE] for line in prompt.splitlines() if line.strip()), "")


def first_row(run: Run) -> Row:
    """What is known when a run begins and does not change any more."""
    return {
        "began": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "title": _clean(title(run.request.prompt)),
        "choice": _json(run.provenance.choice),
        "loaded": _json(run.provenance.ready),
        "versions": json.dumps(run.provenance.versions),
    }


def run_row(run: Run) -> Row:
    """What changes while it goes on."""
    return {
        "request": part_to_json(run.request),
        "tests": _bytes(run.tests),
        "state": run.state,
        "outcome": run.outcome,
        "reason": _clean(run.reason),
        "details": _clean(run.details),
        "metrics": _json(run.metrics),
        "prompt_tokens": run.prompt_tokens,
        "first_passing_s": run.first_passing_s,
        "decisions": json.dumps(run.decisions) if run.decisions else None,
        "comparison": run.comparison.to_json() if run.comparison != Compared() else None,
    }


def candidate_row(candidate: Candidate) -> Row:
    return {
        "number": candidate.number,
        "seed": str(candidate.seed),  # larger than SQLite's integers may be
        "state": candidate.state,
        "test_state": candidate.test_state,
        "text": _bytes(candidate.text),
        "report": json.dumps(candidate.report.to_dict()) if candidate.report else None,
        "passed": candidate.passed,
        "stop_reason": candidate.stop_reason,
        "origin": None if candidate.origin == ONCE else json.dumps(asdict(candidate.origin)),
        **{name: getattr(candidate, name) for name in _COUNTS},
    }


def kept(row: Mapping[str, Any], candidates: list[Mapping[str, Any]]) -> StoredRun:
    """The run that these rows tell of. One that never came to its end counts as stopped."""
    request = part_from_json(row["request"], Request)
    run = Run.restored(
        f"history-{row['id']}", request, _text(row["tests"]), (_candidate(one, request) for one in candidates)
    )
    if row["outcome"]:
        run.state, run.outcome = RunState(row["state"]), RunOutcome(row["outcome"])
    run.reason, run.details = row["reason"], row["details"]
    run.metrics = part_from_json(row["metrics"], Metrics) if row["metrics"] else None
    run.prompt_tokens = run.prompt_done = row["prompt_tokens"]
    run.first_passing_s = row["first_passing_s"]
    run.decisions = json.loads(row["decisions"]) if row["decisions"] else []
    if row["comparison"]:
        run.compared(Compared.from_json(row["comparison"]))
    run.provenance = Provenance(
        part_from_json(row["choice"], ModelChoice) if row["choice"] else None,
        part_from_json(row["loaded"], Ready) if row["loaded"] else None,
        json.loads(row["versions"]),
    )
    return StoredRun(row["id"], run, datetime.fromisoformat(row["began"]))


def _candidate(row: Mapping[str, Any], request: Request) -> Candidate:
    state, reason = CandidateState(row["state"]), StopReason(row["stop_reason"])
    if state not in ENDED:
        state, reason = CandidateState.STOPPED, StopReason.CANCELLED
    counts = {name: row[name] for name in _COUNTS}
    origin = Origin(**json.loads(row["origin"])) if row["origin"] else ONCE
    whole = ("", "") if origin.of else around(request)  # a correction is a chat about the code, and whole itself
    candidate = Candidate(row["number"], int(row["seed"]), around=whole, origin=origin, **counts)
    candidate.state, candidate.stop_reason = state, reason
    if row["report"]:
        candidate.report = Report.from_dict(json.loads(row["report"]))
        candidate.test_state = TestState(row["test_state"])
        candidate.tests_done = candidate.tests_total = len(candidate.report.tests)
    candidate.end(_text(row["text"]))
    return candidate


def _json(part: Any) -> str | None:
    return None if part is None else part_to_json(part)


def _bytes(text: str) -> bytes:
    """A model's text may hold what no database takes for text, such as half a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
