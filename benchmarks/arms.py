"""When no candidate passes, which way of going on has the most passes per second?

    python -m benchmarks.arms [--tasks 40] [--models NAME ...] [--hard] [--arms NAME ...] [--json FILE] [--resume]

Each problem of HumanEval is asked of each model as the application asks it, eight candidates at a time; half of its
asserts are the user's tests, and *solved* means that the unshown half passes too. Wherever some candidate fails a shown
test, the best failing one (most shown tests passed, then the most alike) is the starting point of every arm, with as
many candidates each: fresh ones, warmer ones, ones asked in other words, ones that are told the failing tests, repairs
of the code with the failing assert as *Fix it* words it, repairs with an explanation made from that assert, repairs of
the best failing repair; and, in the table, the next model's first eight. Passes are counted over candidates; seconds
are those of the whole run, tests included, so only an idle machine's count.

``--hard`` goes on only with the problems of which none of the first model's first eight passes, also with the models
behind it; ``--arms`` takes only those arms.
"""

import argparse
import ast
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from engine.device import prepare_environment
from engine.runner.verdicts import Outcome, Verdict

prepare_environment()  # before torch is imported

from benchmarks.humaneval_problems import Problem, SplitTests, chosen, problems, split  # noqa: E402
from benchmarks.machine import Watch, asked, facts  # noqa: E402
from benchmarks.picking.bench import Bench  # noqa: E402
from engine.contract import BasslineError, ModelChoice, Request, Sampling, Turn  # noqa: E402
from engine.runner.client import RunnerClient  # noqa: E402
from engine.sampler.engine import SamplerEngine  # noqa: E402
from engine.selection.languages import fenced  # noqa: E402
from engine.session.candidate import Candidate  # noqa: E402
from engine.session.run import Run  # noqa: E402
from engine.session.turns import fix  # noqa: E402

N = 8
WARMER = 1.2
ARMS = (
    *("fresh", "warmer", "in steps", "told the failing test", "told all tests"),
    *("repair", "repair, explained"),
)
STEPS = "Think about the edge cases first, in a few sentences. Then give the whole code in one block."
EXPLAINED = """\
The code above is wrong. {explanation}

Say in one sentence which line makes the mistake and why, then write the whole corrected code in one block."""
WITH_TESTS = """\
{prompt}

It must satisfy, among others:

```python
{tests}
```"""


@dataclass(frozen=True)
class Answered:
    """One candidate: of ``shown`` tests so many ``passed``; ``solved``: the unshown ones pass too."""

    passed: int
    shown: int
    solved: bool
    tokens: int

    @property
    def passes(self) -> bool:
        return self.passed == self.shown


@dataclass(frozen=True)
class ArmTrial:
    """What an arm brought: ``seconds`` from Generate to the last verdict, ``others``: cores that others used."""

    task: str
    model: str
    arm: str
    seconds: float
    others: float
    answers: list[Answered]

    @property
    def one_passes(self) -> bool:
        return any(answer.passes for answer in self.answers)


class Arms:
    """One model against one problem after another."""

    def __init__(self, bench: Bench, model: str, options: argparse.Namespace):
        self._bench, self._model = bench, model
        self._sampling = Sampling(temperature=options.temperature, max_tokens=options.max_tokens)
        self._wanted: list[str] = options.arms
        self._hard: bool = options.hard

    def measure(self, problem: Problem) -> list[ArmTrial]:
        tests = split(problem)
        asked = Request(problem.asked, 0, N, sampling=self._sampling)
        run, base = self._trial(problem, tests, "first", asked)
        start = _best_failing(run, tests.shown)
        if start is None or (self._hard and base.one_passes):
            return [base]
        trials = [base]
        for name, request in self._arms(run, start, tests).items():
            if name not in self._wanted:
                continue
            after, trial = self._trial(problem, tests, name, request)
            trials.append(trial)
            again = _best_failing(after, tests.shown) if name == "repair" else None
            if again is not None:
                trials.append(self._trial(problem, tests, "repair again", _fix(after, again, tests.shown))[1])
        return trials

    def _arms(self, run: Run, start: Candidate, tests: SplitTests) -> dict[str, Request]:
        asked = run.request
        failing = _failing_line(start, tests)
        return {
            "fresh": replace(asked, first_candidate=N + 1),
            "warmer": replace(asked, seed=1, sampling=replace(self._sampling, temperature=WARMER)),
            "in steps": replace(asked, seed=1, system=STEPS),
            "told the failing test": replace(
                asked, seed=1, prompt=WITH_TESTS.format(prompt=asked.prompt, tests=failing)
            ),
            "told all tests": replace(
                asked, seed=1, prompt=WITH_TESTS.format(prompt=asked.prompt, tests=_shown(tests))
            ),
            "repair": _fix(run, start, tests.shown),
            "repair, explained": _explained(run, start, tests),
        }

    def _trial(self, problem: Problem, tests: SplitTests, arm: str, request: Request) -> tuple[Run, ArmTrial]:
        began = time.monotonic()
        with Watch() as watch:
            run = self._bench.play(self._model, request, tests.text)
        answers = [_answered(c, tests.shown) for _, c in sorted(run.candidates.items())]
        seconds = time.monotonic() - began
        return run, ArmTrial(problem.name, self._model, arm, seconds, watch.others, answers)


def _answered(candidate: Candidate, shown: int) -> Answered:
    return Answered(_passed(candidate, shown), shown, candidate.passed, candidate.tokens)


def _passed(candidate: Candidate, shown: int) -> int:
    results = candidate.report.tests[:shown] if candidate.report else ()
    return sum(result.outcome == Outcome.PASSED for result in results)


def _best_failing(run: Run, shown: int) -> Candidate | None:
    """The one with the most shown tests passed, of those the one that most others are like; None if none fails."""
    candidates = [c for _, c in sorted(run.candidates.items()) if c.report and c.report.tests]
    sizes = [c.group for c in candidates]
    failing = [c for c in candidates if _passed(c, shown) < shown]
    return max(failing, key=lambda c: (_passed(c, shown), sizes.count(c.group)), default=None)


def _first_failure(candidate: Candidate, shown: int) -> tuple[int, str]:
    """The first shown test that fails: its place among the checks, and its failing assert with values."""
    assert candidate.report is not None
    results = candidate.report.tests[:shown]
    return next((at, r.why or r.outcome) for at, r in enumerate(results) if r.outcome != Outcome.PASSED)


def _fix(run: Run, start: Candidate, shown: int) -> Request:
    """What *Fix it* asks, with a failure that the user could have seen."""
    assert start.report is not None
    seen = replace(start.report, verdict=Verdict.FAIL, why=_first_failure(start, shown)[1])
    run.candidates[start.number].report = seen
    request = replace(fix(run, start.number, seed=1), candidates=N)
    run.candidates[start.number].report = start.report
    return request


def _failing_line(candidate: Candidate, tests: SplitTests) -> str:
    asserts = [s for s in ast.parse(tests.text).body if isinstance(s, ast.Assert)]
    at = _first_failure(candidate, tests.shown)[0]
    return ast.unparse(asserts[at]) if at < len(asserts) else tests.text


def _shown(tests: SplitTests) -> str:
    asserts = [s for s in ast.parse(tests.text).body if isinstance(s, ast.Assert)]
    return "\n".join(ast.unparse(s) for s in asserts[: tests.shown]) or tests.text


def _explained(run: Run, start: Candidate, tests: SplitTests) -> Request:
    why = _first_failure(start, tests.shown)[1]
    check = fenced(_failing_line(start, tests))
    explanation = f"It was run with this check:\n\n{check}\n\nand what happened is:\n\n{fenced(why)}"
    turns = (Turn("user", run.request.prompt), Turn("assistant", fenced(start.code, "python")))
    return replace(run.request, seed=1, system="", turns=turns, prompt=EXPLAINED.format(explanation=explanation))


# Tables.


def print_table(trials: Sequence[ArmTrial]) -> None:
    for model in dict.fromkeys(trial.model for trial in trials):
        own = [trial for trial in trials if trial.model == model]
        hard = {t.task for t in own if t.arm == "first" and not t.one_passes}
        began = {t.task for t in own if t.arm != "first"}
        print(f"\n{model}: {len(began)} problems with a failing candidate, {len(hard)} without a passing one\n")
        print("| arm | candidates | pass | solved | passes/s | problems: one passes | of the hard ones | tokens each |")
        print("|---|---|---|---|---|---|---|---|")
        others = [t for t in trials if t.arm == "first" and t.model != model and t.task in began]
        rows: list[tuple[str, list[ArmTrial]]] = [
            (arm, [t for t in own if t.arm == arm and t.task in began]) for arm in dict.fromkeys(t.arm for t in own)
        ]
        rows += [(f"first of {name}", [t for t in others if t.model == name]) for name in {t.model for t in others}]
        for name, of_arm in rows:
            _print_row(name, of_arm, hard)


def _print_row(name: str, trials: Sequence[ArmTrial], hard: Iterable[str]) -> None:
    answers = [answer for trial in trials for answer in trial.answers]
    if not answers:
        return
    passes, solved = sum(a.passes for a in answers), sum(a.solved for a in answers)
    seconds = sum(t.seconds for t in trials)
    some = sum(t.one_passes for t in trials)
    on_hard = [t for t in trials if t.task in hard]
    some_hard = sum(t.one_passes for t in on_hard)
    tokens = sum(a.tokens for a in answers) / len(answers)
    print(
        f"| {name} | {len(answers)} | {passes / len(answers):.1%} | {solved / len(answers):.1%} | "
        f"{passes / seconds:.2f} | {some} of {len(trials)} | {some_hard} of {len(on_hard)} | {tokens:.0f} |"
    )


# The run.


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        wanted = chosen(problems(), options.tasks)
        lines = options.json.with_suffix(".jsonl")
        trials = _earlier(lines) if options.resume else []
        for model in options.models:
            done = {t.task for t in trials if t.model == model}
            trials += measure(options, model, [p for p in wanted if p.name not in done], lines)
            if options.hard and model == options.models[0]:
                passed = {t.task for t in trials if t.arm == "first" and t.one_passes}
                wanted = [p for p in wanted if p.name not in passed]
    except BasslineError as error:
        print(error, file=sys.stderr)
        return 2
    print_table(trials)
    result = {"question": "arms", "options": asked(options), "machine": facts(), "trials": [asdict(t) for t in trials]}
    options.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


def measure(
    options: argparse.Namespace,
    model: str,
    wanted: Sequence[Problem],
    lines: Path,
    open_bench: Callable[[str], Bench] | None = None,
) -> list[ArmTrial]:
    """One problem after another; each is on the disk before the next begins."""
    if not wanted:
        return []
    bench = (open_bench or _open_bench)(model)
    found: list[ArmTrial] = []
    try:
        arms = Arms(bench, model, options)
        for at, problem in enumerate(wanted, 1):
            trials = arms.measure(problem)
            with open(lines, "a", encoding="utf-8") as file:
                file.write(json.dumps([asdict(trial) for trial in trials]) + "\n")
            found += trials
            passed = ", ".join(f"{t.arm} {sum(a.passes for a in t.answers)}" for t in trials)
            print(f"{model} {at} of {len(wanted)}, {problem.name}: {passed}", file=sys.stderr)
    finally:
        bench.close()
    return found


def _open_bench(model: str) -> Bench:
    return Bench({model: SamplerEngine()}, ModelChoice(model), RunnerClient, rest_s=0.0)


def _earlier(lines: Path) -> list[ArmTrial]:
    if not lines.exists():
        return []
    read = (json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines())
    return [
        ArmTrial(**trial | {"answers": [Answered(**a) for a in trial["answers"]]})
        for trials in read
        for trial in trials
    ]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arms", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=["40"], metavar="K", help="as in benchmarks.humaneval")
    parser.add_argument("--models", nargs="+", default=["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"], metavar="NAME")
    parser.add_argument("--hard", action="store_true", help="go on only where none of the first eight passes")
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=ARMS, help="only these, besides the first eight")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/arms.json"), metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="go on with what is in the .jsonl beside it")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
