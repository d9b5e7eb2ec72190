"""How many problems are solved within t seconds, by which way of going on?

    python -m benchmarks.solving [--tasks 40] [--traps] [--examples --seeds 10] [--ways ...] [--json FILE] [--resume]

Problems of HumanEval go the whole way of the application, from Generate to the verdict. Every second assert of a
problem is the user's; the others nobody sees until the first candidate that passes the user's is there, and *solved*
means that it passes those too, for a repair sees the asserts that it has to satisfy and could write them into the code.
Ours: eight candidates at once; those, then one repair by hand (of a user who loses no time); until one passes with
fresh candidates only, with repairs, with a larger model; and the larger model from the start. The peer is llama.cpp on
the same GGUF files, one answer after another, with the advantages that ``benchmarks.humaneval`` gives it. All ways
take turns on one problem before the next begins. Ways that begin with the same eight candidates, which have the same
seeds and so the same text, are not run again where those eight decide.

``--traps`` adds prompts that are known to lead small models astray. ``--examples`` asks the start page's examples
instead, with so many seeds each, by the way that the application takes by default on this computer.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

from benchmarks.humaneval_problems import chosen, problems, split  # noqa: E402
from benchmarks.machine import QUIET, asked, facts  # noqa: E402
from benchmarks.picking.bench import Bench  # noqa: E402
from benchmarks.picking.peer import SequentialEngine  # noqa: E402
from benchmarks.picking.solved import figures, print_tables  # noqa: E402
from benchmarks.picking.ways import (  # noqa: E402
    EIGHT,
    LARGE,
    PEER_LARGE,
    PEER_SMALL,
    SMALL,
    WAYS,
    Attempt,
    Solver,
    Task,
    Way,
)
from benchmarks.target_models import gguf_of  # noqa: E402
from engine.contract import BasslineError, Engine, ModelChoice  # noqa: E402
from engine.runner.client import RunnerClient  # noqa: E402
from engine.sampler.engine import SamplerEngine  # noqa: E402
from engine.session.ladder import ladder  # noqa: E402

MODELS = {SMALL: "qwen2.5-coder-0.5b", LARGE: "qwen2.5-coder-1.5b"}
PEER_MODELS = {PEER_SMALL: MODELS[SMALL], PEER_LARGE: MODELS[LARGE]}
REST_S = 1.0
_ROOT = Path(__file__).parents[1]


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        ways = [way for way in WAYS if way.name in options.ways]
        tasks = examples() if options.examples else humaneval(options.tasks) + (traps() if options.traps else [])
        attempts = Attempts(options.json.with_suffix(".jsonl"), resume=options.resume)
        measure(options, tasks, ways, attempts)
    except BasslineError as error:
        print(error, file=sys.stderr)
        return 2
    done = [a for a in attempts.done.values() if a.task in {t.name for t in tasks} and a.seed < options.seeds]
    result = {
        "question": "solving",
        "options": asked(options),
        "machine": facts(),
        "others_load": max(attempt.others for attempt in done),
        "figures": figures(done, options.within),
        "attempts": [asdict(attempt) for attempt in done],
    }
    print_tables(result)
    options.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


# What is asked.


def humaneval(wanted: Sequence[str]) -> list[Task]:
    found = []
    for problem in chosen(problems(), wanted):
        tests = split(problem)
        found.append(Task(problem.name, problem.asked, tests.user, tests.text))
    return found


def traps() -> list[Task]:
    return _from_files(_ROOT / "benchmarks" / "traps")


def examples() -> list[Task]:
    return _from_files(_ROOT / "resources" / "examples")


def _from_files(folder: Path) -> list[Task]:
    read = (tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.toml")))
    return [Task(f["title"], f["prompt"].strip(), f["tests"], f["tests"]) for f in read]


# The run.


class Attempts:
    """What was measured, one attempt a line, on the disk before the next one begins."""

    def __init__(self, path: Path, *, resume: bool):
        """Raises BasslineError when attempts are there and nobody said to go on."""
        self._path = path
        self.done: dict[tuple[str, str, int], Attempt] = {}
        if path.exists():
            if not resume:
                raise BasslineError(f"{path} holds an earlier run; add --resume to go on with it, or remove it.")
            for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
                self._take(Attempt(**json.loads(line)))

    def add(self, attempt: Attempt) -> None:
        self._take(attempt)
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(attempt)) + "\n")

    def lacks(self, task: Task, way: Way, seed: int) -> bool:
        """It was not made, or while the machine was busy."""
        found = self.done.get((task.name, way.name, seed))
        return found is None or found.others > QUIET

    def _take(self, attempt: Attempt) -> None:
        self.done[attempt.task, attempt.way, attempt.seed] = attempt


def measure(
    options: argparse.Namespace,
    tasks: Sequence[Task],
    ways: Sequence[Way],
    attempts: Attempts,
    open_solver: Callable[[argparse.Namespace, Sequence[Way]], tuple[Solver, Bench]] | None = None,
) -> None:
    """Everything that is missing: all ways on one task, which take turns in going first, before the next task."""
    missing = [
        (t, seed) for seed in range(options.seeds) for t in tasks if any(attempts.lacks(t, w, seed) for w in ways)
    ]
    if not missing:
        return
    solver, bench = (open_solver or _open_solver)(options, ways)
    try:
        if not bench.isolation.sealed:
            raise BasslineError(f"{bench.isolation.note} Nothing is measured where candidates cannot be sealed off.")
        for at, (task, seed) in enumerate(missing):
            turned = [*ways[at % len(ways) :], *ways[: at % len(ways)]]
            for way in sorted(turned, key=lambda way: way.after_eight):  # the eight before those that begin with them
                if attempts.lacks(task, way, seed):
                    attempts.add(_attempt(solver, attempts, task, way, seed))
            made = (attempts.done[task.name, way.name, seed] for way in ways)
            print(
                f"{at + 1} of {len(missing)}, {task.name}, seed {seed}: {'; '.join(map(_line, made))}", file=sys.stderr
            )
    finally:
        bench.close()


def _attempt(solver: Solver, attempts: Attempts, task: Task, way: Way, seed: int) -> Attempt:
    eight = attempts.done.get((task.name, EIGHT.name, seed))
    if way.after_eight and eight is not None and eight.decided_by_eight:
        return replace(eight, way=way.name)
    return solver.attempt(way, task, seed)


def _line(attempt: Attempt) -> str:
    if attempt.shown_s is None:
        return f"{attempt.way} none in {attempt.ended_s:.1f} s"
    return f"{attempt.way} {attempt.shown_s:.1f} s{'' if attempt.solved else ', not the unseen tests'}"


def _open_solver(options: argparse.Namespace, ways: Sequence[Way]) -> tuple[Solver, Bench]:
    needed = {way.engine for way in ways}
    choices = {side: ModelChoice(model) for side, model in (MODELS | PEER_MODELS).items() if side in needed}
    engines: dict[str, Engine] = {side: _engine(side, options) for side in choices}
    bench = Bench(engines, choices, RunnerClient, REST_S)
    first = ModelChoice(MODELS[SMALL])
    return Solver(bench, choices, ladder(first), options.cap, options.max_tokens), bench


def _engine(side: str, options: argparse.Namespace) -> Engine:
    if side in MODELS:
        return SamplerEngine()
    model = PEER_MODELS[side]
    return SequentialEngine(model, options.peer_python, gguf_of(model), 1, options.max_tokens)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.solving", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=["40"], metavar="K", help="as in benchmarks.humaneval")
    parser.add_argument("--traps", action="store_true", help="ask the traps, too")
    parser.add_argument("--examples", action="store_true", help="ask the start page's examples instead")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="how often each is asked")
    parser.add_argument("--ways", nargs="+", default=[], metavar="WAY", choices=[w.name for w in WAYS])
    parser.add_argument("--cap", type=float, default=60.0, metavar="SECONDS", help="when an attempt is given up")
    parser.add_argument("--within", type=float, nargs="+", default=[5.0, 10.0, 30.0, 60.0], metavar="SECONDS")
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--peer-python", type=Path, default=Path(".venv-peers/bin/python"))
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/solving.json"), metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="measure what the .jsonl beside it lacks")
    options = parser.parse_args(arguments)
    if options.seeds < 1:
        parser.error("--seeds takes 1 or more")
    default = [w.name for w in WAYS if w.engine == LARGE] if options.examples else [w.name for w in WAYS]
    options.ways = options.ways or default
    if any(w.engine in PEER_MODELS for w in WAYS if w.name in options.ways) and not options.peer_python.is_file():
        parser.error(f"there is no {options.peer_python}; run `make bench-peers` once, or name one with --peer-python")
    return options


if __name__ == "__main__":
    sys.exit(main())
