"""Does the runner give HumanEval's right answers a pass, and answers that are wrong by one token a fail?

    python -m benchmarks.humaneval_verdicts [--first N]

The 164 canonical solutions, and for each the first one-token change that plain Python finds to break it.
"""

import argparse
import io
import queue
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterator

from benchmarks.humaneval_problems import Problem, problems
from engine.runner.client import RunnerClient
from engine.runner.protocol import Answer, ConsentNeeded, RunTests, TestFinished
from engine.runner.report import Report
from engine.runner.verdicts import Verdict

_PLAIN_S = 10.0
_PAIRS = """
+->- -->+ *->+ /->* //->* %->// <->> >->< <=->> >=->< ==->!= !=->== +=->-= -=->+= True->False False->True
and->or or->and not->bool min->max max->min if->while in->is append->remove lower->upper
"""
_CHANGES = {pair.split("->")[0]: pair.split("->")[1] for pair in _PAIRS.split()}


def changed(problem: Problem) -> Iterator[str]:
    """The solution with one token of its body changed, in every way that is known here."""
    tokens = list(tokenize.generate_tokens(io.StringIO(problem.solution).readline))
    start = problem.prompt.count("\n")
    lines = problem.solution.splitlines(keepends=True)
    for token in tokens:
        row, _ = token.start
        change = _CHANGES.get(token.string)
        if token.type == tokenize.NUMBER and token.string.isdigit():
            change = str(int(token.string) + 1)
        if change is not None and row > start:
            yield _with(lines, token, change)
    last = [token for token in tokens if token.string == "return"][-1]
    yield _with(lines, last, "yield")


def _with(lines: list[str], token: tokenize.TokenInfo, change: str) -> str:
    row, column = token.start
    other = lines[row - 1][:column] + change + lines[row - 1][token.end[1] :]
    return "".join([*lines[: row - 1], other, *lines[row:]])


def broken(problem: Problem) -> str:
    """The first change that plain Python finds to fail, in time; empty when there is none."""
    for solution in changed(problem):
        try:
            command = [sys.executable, "-c", solution + "\n" + problem.tests]
            done = subprocess.run(command, capture_output=True, timeout=_PLAIN_S)
        except subprocess.TimeoutExpired:
            continue  # it may be right, and only slow
        if done.returncode == 1:
            return solution
    return ""


def reports(pairs: dict[str, tuple[str, str]]) -> dict[str, Report]:
    """What the runner says about each (solution, tests), all handed over at once."""
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    client = RunnerClient(answers.put)
    found: dict[str, Report] = {}
    try:
        for name, (solution, tests) in pairs.items():
            client.test(RunTests(name, solution, tests, test_timeout_s=15.0))
        while len(found) < len(pairs):
            answer = answers.get()
            if isinstance(answer, ConsentNeeded):
                found[answer.id] = Report(Verdict.NEEDS_IN_PROCESS, "split", answer.sentence)
            elif isinstance(answer, TestFinished):
                found[answer.id] = answer.report
    finally:
        client.close()
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=164, metavar="N", help="only the first N problems")
    chosen = problems()[: parser.parse_args(arguments).first]
    start = time.monotonic()
    right = reports({p.name: (p.solution, p.tests) for p in chosen})
    seconds = time.monotonic() - start
    mutants = {p.name: (solution, p.tests) for p in chosen if (solution := broken(p))}
    wrong = reports(mutants)
    for found, verdict in ((right, Verdict.PASS), (wrong, Verdict.FAIL)):
        for name, report in found.items():
            if report.verdict != verdict:
                print(f"{name}: {report.verdict} instead of {verdict}: {report.why}")
    passed, failed = (
        sum(r.verdict == v for r in f.values()) for f, v in ((right, Verdict.PASS), (wrong, Verdict.FAIL))
    )
    print(f"{passed} of {len(right)} right answers pass, {failed} of {len(wrong)} answers changed by one token fail")
    print(f"{seconds / max(len(right), 1):.2f} s for a right answer, with the boxes of this machine side by side")
    print(f"no change was found to break: {', '.join(p.name for p in chosen if p.name not in mutants) or 'none'}")
    return 0 if passed == len(right) and failed == len(wrong) else 1


if __name__ == "__main__":
    sys.exit(main())
