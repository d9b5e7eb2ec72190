"""Runs for the tests of what is kept of them."""

from engine.contract import (
    CandidateFinished,
    Metrics,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
    Sampling,
    TextAdded,
    Turn,
)
from engine.runner.report import Report, TestResult
from engine.session.provenance import Provenance
from engine.session.run import Run

PASS = Report("pass", "split", tests=(TestResult("1", "passed"),), isolation={"files": "sealed"}, output="hi\n")
FAIL = Report("fail", "split", tests=(TestResult("1", "failed", "assert 1 == 2", 0.5),), peak_mib=3.5)
METRICS = Metrics(0.1, 0.5, 2.0, 50.0, 10.0, 20.0, 15.0, 0.7, 9, "cpu", "int8", "suffix", "fixed:4", "coupled")
CHOICE = ModelChoice("m", draft="d")
READY = Ready("m", "cpu", "int8", 4096)
PROVENANCE = Provenance(CHOICE, READY, {"python": "3.99"})
REQUEST = Request(
    "Write f.\nIn Python.",
    2**62 + 1,
    3,
    sampling=Sampling(stop=("x",)),
    turns=(Turn("user", "before"),),
    overrides={2: Sampling(temperature=0.0)},
    time_budget_s=9.5,
)


def answer(code: str) -> str:
    return f"Here:\n```python\n{code}\n```\n"


def finish(run: Run, number: int, code: str, state: str = "done", at_s: float = 1.0) -> None:
    run.apply(CandidateFinished(run.name, number, state, "stop", answer(code), 9, 8, 6, -0.25, at_s))


def a_full_run(prompt: str = REQUEST.prompt) -> Run:
    """Three candidates: one passes, one fails, one is like the first."""
    run = Run("r", REQUEST if prompt == REQUEST.prompt else Request(prompt, 7, 3), "assert f() == 1\r\n")
    run.provenance = PROVENANCE
    run.apply(TextAdded("r", 1, "Here", 1, 0.25))
    finish(run, 2, "def f(): return 2", at_s=0.5)
    finish(run, 1, "def f(): return 1", at_s=0.75)
    finish(run, 3, "def f():  return 1", at_s=1.0)
    run.apply(RunFinished("r", "finished", METRICS))
    run.record(1, PASS, 1.25)
    run.record(2, FAIL, 1.5)
    return run
