"""How soon is there a candidate that passes the tests, and how good is the pick inside a time budget?

    python -m benchmarks.humaneval [--tasks 40] [-n 1 4 8] [--json FILE] [--resume]
                                   [--peer llama.cpp [--gguf FILE] [--peer-python PYTHON]]

Problems of HumanEval go the whole way of the application: the function to complete is asked for in chat mode, with the
application's own system prompt; as there are tests, the first right candidate is wanted soonest (``goal``); code is
taken out of each answer by the application's own rules, nothing added, and goes to the runner's two boxes the moment
the answer ends, under the usual limits of time, which all canonical solutions keep. Time runs from Generate to the
verdict *pass*, tests included.

The peer is what one does without this application: llama.cpp on the model's GGUF file, one answer after another until
one passes, at most as many as ours has candidates. It is given every advantage of that way: its process stays, the
prompt is read once and its keys and values are used again, the next answer is being written while the last one is
tested, by the same runner. Prompt ids, temperature, top-p and the limit of tokens are ours; its own top-k of 40 stays,
for top-p over the whole vocabulary costs it dear. The sides take turns in going first.

Beforehand, answers that nobody times give each problem's pass rate, half of them from each side; ``measures.bin_of``
says why. With ``--repeat`` problems of the lowest bin, which are few and vary most, are timed several times.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

from benchmarks.humaneval_problems import Problem, chosen, problems  # noqa: E402
from benchmarks.machine import QUIET, asked, facts  # noqa: E402
from benchmarks.picking.bench import Bench, OpenRunner  # noqa: E402
from benchmarks.picking.measures import LOWEST, bin_of, rate  # noqa: E402
from benchmarks.picking.peer import SequentialEngine  # noqa: E402
from benchmarks.picking.records import OURS, PEER, Record, Records, Trial  # noqa: E402
from benchmarks.picking.tables import figures, print_tables  # noqa: E402
from benchmarks.target_models import MEASURED, gguf_of  # noqa: E402
from engine.contract import BasslineError, Engine, ModelChoice, Request, Sampling  # noqa: E402
from engine.runner.client import RunnerClient  # noqa: E402
from engine.sampler.engine import SamplerEngine  # noqa: E402

RATE_SEED = 1_000_000  # far from the seeds of the timed turns, which count from 0
REST_S = 1.5


class Picking:
    """Measures one problem after another."""

    def __init__(self, bench: Bench, options: argparse.Namespace, sides: Sequence[str]):
        self.bench, self.options, self.sides = bench, options, sides
        self._problems_begun = 0

    def measure(self, problem: Problem) -> Record:
        start = time.monotonic()
        self._loads = [self.bench.rest()]
        passed = {side: self._rate(problem, side) for side in self.sides}
        record = Record(problem.name, passed, [], 0.0, False, 0.0)
        turns = self.options.repeat if bin_of(record) == LOWEST else 1
        trials = [trial for turn in range(turns) for trial in self._turn(problem, turn)]
        self._problems_begun += 1
        worst = max(self._loads)
        return Record(problem.name, passed, trials, worst, worst > QUIET, time.monotonic() - start)

    def _rate(self, problem: Problem, side: str) -> list[bool]:
        answers = self.options.rate_answers // len(self.sides)
        self.bench.forget(side)
        trial = self.bench.trial(side, self._request(problem, RATE_SEED, answers, "all"), problem.tests)
        return [outcome.passed for outcome in trial.outcomes]

    def _turn(self, problem: Problem, turn: int) -> list[Trial]:
        """Every side once; each count of ours in the first turn, and the largest one in the others."""
        counts = sorted(self.options.n) if turn == 0 else [max(self.options.n)]
        asked = [(OURS, n) for n in counts] + [(PEER, max(counts))] * (PEER in self.sides)
        trials = []
        for side, n in asked if (self._problems_begun + turn) % 2 == 0 else asked[::-1]:
            self.bench.forget(side)
            self._loads.append(self.bench.rest())
            request = self._request(problem, turn, n, "first")
            trials.append(self.bench.trial(side, request, problem.tests, turn, stop_at_pass=side == PEER))
        return trials

    def _request(self, problem: Problem, seed: int, n: int, goal: str) -> Request:
        sampling = Sampling(temperature=self.options.temperature, top_p=0.95, max_tokens=self.options.max_tokens)
        return Request(problem.asked, seed, n, sampling=sampling, goal=goal)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        wanted = chosen(problems(), options.tasks)
        return run(options, wanted, open_engines(options), RunnerClient)
    except BasslineError as error:
        print(error, file=sys.stderr)
        return 2


def run(
    options: argparse.Namespace,
    wanted: Sequence[Problem],
    engines: Mapping[str, Engine],
    open_runner: OpenRunner,
    rest_s: float = REST_S,
) -> int:
    """Measures what is missing, prints the tables and writes the JSON. Raises BasslineError."""
    settings = {name: getattr(options, name) for name in _SETTINGS}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    records = Records(options.json.with_suffix(".jsonl"), settings, resume=options.resume)
    bench = Bench(engines, ModelChoice(options.model, precision=options.precision), open_runner, rest_s)
    try:
        if not bench.isolation.sealed:
            raise BasslineError(f"{bench.isolation.note} Nothing is measured where candidates cannot be sealed off.")
        measure_missing(Picking(bench, options, list(engines)), wanted, records)
    finally:
        bench.close()
    done = [records.done[problem.name] for problem in wanted]
    result = {
        "question": "picking",
        "options": asked(options),
        "machine": facts(),
        "sides": {side: asdict(ready) for side, ready in bench.ready.items()},
        "others_load": max(record.others_load for record in done),
        "void": sum(record.void for record in done),
        "figures": figures(done, options.n, options.budget),
        "records": [asdict(record) for record in done],
    }
    print_tables(result)
    options.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


# Records that differ in one of these do not belong together.
_SETTINGS = ("model", "precision", "peer", "n", "temperature", "max_tokens", "rate_answers", "repeat")


def measure_missing(picking: Picking, wanted: Sequence[Problem], records: Records) -> None:
    by_name = {problem.name: problem for problem in wanted}
    missing = records.missing(by_name)
    seconds = 0.0
    for at, name in enumerate(missing, 1):
        record = picking.measure(by_name[name])
        records.add(record)
        seconds += record.seconds
        left = seconds / at * (len(missing) - at)
        print(f"{at} of {len(missing)}, {_line(record)}; about {left / 60:.0f} min left", file=sys.stderr)


def _line(record: Record) -> str:
    times = (
        f"{trial.side} n={trial.n} " + ("none" if trial.first_pass_s is None else f"{trial.first_pass_s:.1f} s")
        for trial in record.trials
    )
    return f"{record.task} (rate {rate(record):.2f}{', VOID' * record.void}): {', '.join(times)}"


def open_engines(options: argparse.Namespace) -> dict[str, Engine]:
    engines: dict[str, Engine] = {OURS: SamplerEngine()}
    if options.peer:
        most = max(*options.n, options.rate_answers // 2)
        gguf = options.gguf or gguf_of(options.model)
        engines[PEER] = SequentialEngine(options.model, options.peer_python, gguf, most, options.max_tokens)
    return engines


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.humaneval", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--tasks",
        nargs="+",
        default=["40"],
        metavar="K",
        help="how many problems, spread evenly over the 164 (default: 40), or their names: HumanEval/12, find_zero",
    )
    parser.add_argument("-n", type=int, nargs="+", default=[1, 4, 8], help="candidates of ours (default: 1 4 8)")
    parser.add_argument("--model", default=MEASURED)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument(
        "--budget",
        type=float,
        nargs="+",
        default=[2.0, 5.0, 10.0, 20.0],
        metavar="SECONDS",
        help="budgets to print Pass@First and Pass@All for; all are read off the same run",
    )
    parser.add_argument("--rate-answers", type=int, default=24, metavar="N", help="untimed answers per problem")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help=f"turns where the pass rate is {LOWEST}")
    parser.add_argument("--peer", choices=[PEER], help="whom to compare with")
    parser.add_argument("--gguf", type=Path, help="the peer's file (default: the one that ours is made from)")
    parser.add_argument(
        "--peer-python",
        type=Path,
        default=Path(".venv-peers/bin/python"),
        help="where `make bench-peers` put llama.cpp",
    )
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("benchmarks/results/picking.json"),
        metavar="FILE",
        help="where everything goes (default: %(default)s); beside it, as .jsonl, each problem once it is measured",
    )
    parser.add_argument("--resume", action="store_true", help="measure what that .jsonl lacks or has as void")
    options = parser.parse_args(arguments)
    if options.peer and not options.peer_python.is_file():
        parser.error(f"there is no {options.peer_python}; run `make bench-peers` once, or name one with --peer-python")
    return options


if __name__ == "__main__":
    sys.exit(main())
