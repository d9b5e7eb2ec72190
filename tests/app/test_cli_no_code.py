"""The command line, where answers have no code."""

import io

import pytest

from app.cli.playing import exit_code
from app.cli.progress import PlainProgress
from app.cli.summary import outcome
from engine.contract import CandidateFinished, Request, RunFinished
from engine.session.run import Run


def run_of(*texts: str) -> Run:
    run = Run("r", Request("p", 1, candidates=len(texts)))
    for number, text in enumerate(texts, 1):
        run.apply(CandidateFinished("r", number, "done", "stop", text, 4, 0, 0, -0.1, 1.0))
    run.apply(RunFinished("r", "finished"))
    return run


@pytest.mark.parametrize(
    ("texts", "sentence", "code"),
    [
        (("No.",), "The candidate wrote no code; --json prints what was written instead.", 1),
        (("No.", "Never."), "None of 2 candidates wrote any code; --json prints what was written instead.", 1),
        (("",), "The candidate wrote no code.", 1),
        (("No.", "x = 1"), "2 of 2 candidates ended by themselves; candidate 2 is shown.", 0),
    ],
)
def test_a_run_says_when_nobody_wrote_code(texts: tuple[str, ...], sentence: str, code: int) -> None:
    run = run_of(*texts)
    assert outcome(run) == sentence
    assert exit_code(run) == code


def test_stopped_candidates_did_not_come_to_their_own_end() -> None:
    run = Run("r", Request("p", 1, candidates=2))
    run.apply(CandidateFinished("r", 1, "done", "stop", "x = 1", 4, 0, 0, -0.1, 1.0))
    run.apply(CandidateFinished("r", 2, "stopped", "cancelled", "x = 2", 4, 0, 0, -0.1, 1.0))
    assert outcome(run) == "1 of 2 candidates ended by themselves; candidate 1 is shown."


def test_a_log_says_which_candidate_has_no_code() -> None:
    said = io.StringIO()
    for number, text in enumerate(("No.", "x = 1"), 1):
        event = CandidateFinished("r", number, "done", "stop", text, 4, 0, 0, -0.1, 1.0)
        run = Run("r", Request("p", 1, candidates=2))
        run.apply(event)
        PlainProgress(said).event(event, run)
    assert said.getvalue().splitlines() == [
        "Candidate 1 done: 4 tokens in 1.0 s, no code.",
        "Candidate 2 done: 4 tokens in 1.0 s.",
    ]
