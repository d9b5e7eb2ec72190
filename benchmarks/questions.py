"""How often is the pick right without any test of the user's, after none, one, two and three questions?

    python -m benchmarks.questions [--tasks 40] [-n 8] [--seeds 0 1 2] [--json FILE]

Problems of HumanEval, asked of the model as a user would. Its candidates are called with inputs that come from the
prompt alone; the canonical solution, in a box of its own, answers the questions (where it raises, hangs or gives
nothing that could be a test: it does not matter, which is a question all the same). HumanEval's tests only judge the
pick. Against it: the largest group of equal text (the log-probability decides ties), the mean log-probability, and a
perfect pick, which is right where any candidate is. *Suggested tests* are asserts that the same model writes; one is
wrong where the canonical solution gives something else. Intervals are 95 %, over problems, whose seeds are averaged.

Candidates, asserts and verdicts are kept beside FILE, as .jsonl, one line for each problem and seed, and never made
twice: to compare again, with other inputs perhaps, takes only the boxes. ``--generate-only`` stops after that part.
"""

import argparse
import json
import queue
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

from benchmarks.humaneval_problems import Problem, chosen, problems  # noqa: E402
from benchmarks.humaneval_verdicts import reports  # noqa: E402
from benchmarks.machine import asked, facts, others_load  # noqa: E402
from benchmarks.our_engine import OurEngine  # noqa: E402
from benchmarks.pass_rates import difference  # noqa: E402
from benchmarks.target_models import MEASURED  # noqa: E402
from engine.contract import BasslineError, CandidateFinished, CandidateState, ModelChoice, Request, Sampling  # noqa: E402
from engine.elicitation import model_prompts, suggestions  # noqa: E402
from engine.elicitation.answers import Answer  # noqa: E402
from engine.elicitation.elicitation import Elicitation, Solution  # noqa: E402
from engine.elicitation.outcomes import Outcome  # noqa: E402
from engine.elicitation.questions import Question  # noqa: E402
from engine.elicitation.target import NothingToAsk, find_target  # noqa: E402
from engine.runner.client import RunnerClient  # noqa: E402
from engine.runner.protocol import Isolation, Observed  # noqa: E402
from engine.runner.verdicts import Verdict  # noqa: E402
from engine.selection.code_blocks import solution  # noqa: E402
from engine.selection.grouping import Fingerprint, groups  # noqa: E402
from engine.selection.ranking import RankedCandidate, rank  # noqa: E402

QUESTIONS = 3
_CANONICAL = 0  # its number among the observed


@dataclass(frozen=True)
class Written:
    """What the model wrote for one problem and seed, and which candidates pass."""

    task: str
    seed: int
    codes: list[str]
    logprobs: list[float | None]
    states: list[str]
    passed: list[bool]
    asserts: list[str]


@dataclass
class Picks:
    """Whether each way of picking was right, and what the questions and suggested tests were like."""

    task: str
    seed: int
    perfect: bool
    majority: bool
    logprob: bool
    asking: list[bool]  # after 0, 1, ... questions
    suggested: bool = False  # ordered by suggested tests as well, no question
    asked: int = 0
    did_not_matter: int = 0
    first_question_s: float = 0.0
    inputs: int = 0
    note: str = ""
    tests: dict[str, int] = field(default_factory=dict)  # suggested ones: read, wrong, offered, wrong among these


class Boxes:
    """A runner that observes, warm."""

    def __init__(self) -> None:
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._client = RunnerClient(self._answers.put)
        self._client.probe()
        isolation = self._answers.get()
        if not (isinstance(isolation, Isolation) and isolation.sealed):
            raise BasslineError("Candidates cannot be sealed off here, so nothing is measured.")
        self._count = 0

    def observe(self, elicitation: Elicitation) -> None:
        self._count += 1
        for request in elicitation.requests(f"observe{self._count}"):
            self._client.observe(request)
        while elicitation.observing:
            answer = self._answers.get()
            if isinstance(answer, Observed):
                elicitation.take(answer)

    def close(self) -> None:
        self._client.close()


class Writer:
    """Asks the model; loads it when the first candidates are missing."""

    def __init__(self, options: argparse.Namespace):
        self._options = options
        self._engine: OurEngine | None = None

    def write(self, problem: Problem, seed: int) -> Written:
        options = self._options
        if self._engine is None:
            self._engine = OurEngine(ModelChoice(options.model, precision=options.precision))
        sampling = Sampling(options.temperature, max_tokens=options.max_tokens)
        request = Request(problem.asked, seed, options.n, sampling=sampling)
        ended = self._ended(request)
        codes = [solution(event.text).code for event in ended]
        target = find_target(problem.asked, "", [problem.solution])
        texts = [event.text for event in self._ended(model_prompts.for_asserts(request, target, options.n))]
        found = reports({str(at): (code, problem.tests) for at, code in enumerate(codes) if code.strip()})
        passed = [str(at) in found and found[str(at)].verdict == Verdict.PASS for at in range(len(codes))]
        logprobs = [event.mean_logprob for event in ended]
        return Written(problem.name, seed, codes, logprobs, [event.state for event in ended], passed, texts)

    def _ended(self, request: Request) -> list[CandidateFinished]:
        assert self._engine is not None
        events = [event for event in self._engine.run(request) if isinstance(event, CandidateFinished)]
        return sorted(events, key=lambda event: event.candidate)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()


def pick(written: Written, elicitation: Elicitation | None = None) -> bool:
    """Whether the best candidate passes, ranked as the product ranks where there are no tests."""
    order = ranking(written, elicitation)
    return bool(order) and written.passed[order[0] - 1]


def ranking(written: Written, elicitation: Elicitation | None) -> list[int]:
    standings = elicitation.standings() if elicitation is not None else {}
    prints = {n: Fingerprint.of(code) for n, code in enumerate(written.codes, 1) if code.strip()}
    alike = groups(prints)
    return rank(
        [
            RankedCandidate(
                n,
                CandidateState(written.states[n - 1]),
                alike[n],
                written.logprobs[n - 1],
                standing=standings[n].key if n in standings else (),
            )
            for n in prints
        ]
    )


def by_logprob(written: Written) -> bool:
    known = [
        (p, ok) for p, ok, code in zip(written.logprobs, written.passed, written.codes, strict=True) if code.strip()
    ]
    best = max(known, key=lambda entry: float("-inf") if entry[0] is None else entry[0], default=(None, False))
    return best[1]


def compare(problem: Problem, written: Written, boxes: Boxes) -> Picks:
    """Observes, asks the canonical solution, and notes after each question whether the pick is right."""
    perfect, majority = any(written.passed), pick(written)
    picks = Picks(
        problem.name, written.seed, perfect, majority, by_logprob(written), [majority] * (QUESTIONS + 1), majority
    )
    solutions = {n: Solution(code, written.logprobs[n - 1]) for n, code in enumerate(written.codes, 1) if code.strip()}
    try:
        start = time.monotonic()
        elicitation = Elicitation(problem.asked, "", solutions)
        boxes.observe(elicitation)
        question = elicitation.question()
        picks.first_question_s = time.monotonic() - start
    except NothingToAsk as why:
        picks.note = str(why)
        return picks
    picks.inputs = len(elicitation.inputs)
    truth = canonical(problem, elicitation, boxes)
    picks.asking = [pick(written, elicitation)]
    while question is not None and len(picks.asking) <= QUESTIONS:
        answer = answered(elicitation, question, truth[question.at])
        elicitation.keep(question, answer)
        picks.asked += 1
        picks.did_not_matter += answer is None
        picks.asking.append(pick(written, elicitation))
        question = elicitation.question()
    picks.asking += picks.asking[-1:] * (QUESTIONS + 1 - len(picks.asking))
    suggest(problem, written, solutions, boxes, picks)
    return picks


def canonical(problem: Problem, like: Elicitation, boxes: Boxes) -> tuple[Outcome, ...]:
    """What the canonical solution does on the inputs of ``like``."""
    own = Elicitation(problem.asked, "", {_CANONICAL: Solution(problem.solution)})
    own.target, own.inputs, own.gathered = like.target, like.inputs, like.gathered
    boxes.observe(own)
    return own.outcomes_of(_CANONICAL)


def answered(elicitation: Elicitation, question: Question, right: Outcome) -> Answer | None:
    """None, it does not matter, where the canonical solution gives nothing that could be a test."""
    if right.subject in ("", "error") or not right.decides:
        return None
    for at, choice in enumerate(question.choices):
        if choice.reply.outcome.like(right):
            return elicitation.choose(question, at)
    return Answer(question.given, right)


def suggest(problem: Problem, written: Written, solutions: dict[int, Solution], boxes: Boxes, picks: Picks) -> None:
    """What ordering by suggested tests gains, and how many of them are wrong."""
    target = find_target(problem.asked, "", [problem.solution])
    read = suggestions.read(written.asserts, target)
    elicitation = Elicitation(problem.asked, "", solutions, suggested=read)
    boxes.observe(elicitation)
    truth = dict(zip(elicitation.inputs, canonical(problem, elicitation, boxes), strict=True))
    offered = [entry.suggestion for entry in elicitation.offered()]
    agreed = [entry.suggestion for entry in elicitation.offered() if 2 * len(entry.members) > len(solutions)]

    def wrong(some: Iterable[suggestions.Suggestion]) -> int:
        return sum(not suggestion.agrees(truth[suggestion.given]) for suggestion in some)

    picks.suggested = pick(written, elicitation)
    picks.tests = {"read": len(read), "wrong": wrong(read), "offered": len(offered), "offered wrong": wrong(offered)}
    picks.tests |= {"agreed": len(agreed), "agreed wrong": wrong(agreed)}


class Kept:
    """What was written, one line each; what is there is not written again."""

    def __init__(self, path: Path):
        self._path = path
        self._known: dict[tuple[str, int], Written] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                written = Written(**json.loads(line))
                self._known[written.task, written.seed] = written

    def get(self, task: str, seed: int) -> Written | None:
        return self._known.get((task, seed))

    def add(self, written: Written) -> None:
        self._known[written.task, written.seed] = written
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(written)) + "\n")


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        wanted = chosen(problems(), options.tasks)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        kept = Kept(options.json.with_suffix(".jsonl"))
        pairs = [(problem, seed) for seed in options.seeds for problem in wanted]
        write_missing(pairs, kept, options)
        if options.generate_only:
            return 0
        result = measure(pairs, kept, options)
    except BasslineError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(table(result)))
    options.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


def write_missing(pairs: Sequence[tuple[Problem, int]], kept: Kept, options: argparse.Namespace) -> None:
    missing = [(problem, seed) for problem, seed in pairs if kept.get(problem.name, seed) is None]
    writer, start = Writer(options), time.monotonic()
    try:
        for at, (problem, seed) in enumerate(missing, 1):
            written = writer.write(problem, seed)
            kept.add(written)
            left = (time.monotonic() - start) / at * (len(missing) - at) / 60
            passed = f"{sum(written.passed)} of {len(written.passed)} pass"
            print(
                f"{at} of {len(missing)} written, {problem.name}, seed {seed}: {passed}; {left:.0f} min left",
                file=sys.stderr,
            )
    finally:
        writer.close()


def measure(pairs: Sequence[tuple[Problem, int]], kept: Kept, options: argparse.Namespace) -> dict[str, Any]:
    boxes, found, load = Boxes(), list[Picks](), others_load()
    try:
        for problem, seed in pairs:
            written = kept.get(problem.name, seed)
            assert written is not None
            found.append(compare(problem, written, boxes))
            print(line(found[-1]), file=sys.stderr)
    finally:
        boxes.close()
    return {
        "question": "questions",
        "options": asked(options),
        "machine": facts(),
        "others_load": load,
        "figures": figures(found),
        "records": [asdict(picks) for picks in found],
    }


def line(picks: Picks) -> str:
    marks = "".join("+" if right else "-" for right in picks.asking)
    return (
        f"{picks.task} seed {picks.seed}: perfect {'+-'[not picks.perfect]}, text {'+-'[not picks.majority]}, logprob "
        f"{'+-'[not picks.logprob]}, after 0 to {QUESTIONS} {marks}, {picks.first_question_s:.1f} s {picks.note}"
    )


def figures(found: Sequence[Picks]) -> dict[str, Any]:
    """Shares, and differences paired by problem, with half the width of the 95 % interval."""
    ways: dict[str, list[list[bool]]] = {}
    for task in dict.fromkeys(picks.task for picks in found):
        of_task = [picks for picks in found if picks.task == task]
        for name in ("perfect", "majority", "logprob", "suggested"):
            ways.setdefault(name, []).append([getattr(picks, name) for picks in of_task])
        for number in range(QUESTIONS + 1):
            ways.setdefault(f"after {number}", []).append([picks.asking[number] for picks in of_task])
    rates = {name: mean(right for rights in tasks for right in rights) for name, tasks in ways.items()}
    better = max("majority", "logprob", key=lambda name: rates[name])
    against = {
        f"{name} against {base}": difference(ways[name], ways[base])
        for name in ways
        for base in ("majority", "logprob")
        if name.startswith(("after", "suggested"))
    }
    total = {name: sum(picks.tests.get(name, 0) for picks in found) for name in _TESTS}
    waits = [picks.first_question_s for picks in found if not picks.note]
    return {
        "rates": rates,
        "better": better,
        "differences": against,
        "of perfect": {name: rate / rates["perfect"] if rates["perfect"] else 0.0 for name, rate in rates.items()},
        "asked": sum(picks.asked for picks in found),
        "did not matter": sum(picks.did_not_matter for picks in found),
        "tests": total,
        "first question s": {"median": median(waits), "largest": max(waits)} if waits else {},
    }


_TESTS = ("read", "wrong", "offered", "offered wrong", "agreed", "agreed wrong")


def table(result: dict[str, Any]) -> Iterator[str]:
    options, machine, found = result["options"], result["machine"], result["figures"]
    yield f"{machine['cpu']}; Python {machine['python']}; {machine['date']}; commit {machine['commit']}"
    yield f"{options['model']}, n = {options['n']}, temperature {options['temperature']}, seeds {options['seeds']}\n"
    yield "| pick | right | of a perfect pick | against equal text | against log-probability |"
    yield "|---|---|---|---|---|"
    for name, rate in found["rates"].items():
        gaps = [found["differences"].get(f"{name} against {base}") for base in ("majority", "logprob")]
        cells = ["-" if gap is None else f"{gap[0]:+.1%} ± {gap[1]:.1%}" for gap in gaps]
        yield f"| {name} | {rate:.1%} | {found['of perfect'][name]:.0%} | {cells[0]} | {cells[1]} |"
    tests = found["tests"]
    yield f"\n{found['asked']} questions asked, of which {found['did not matter']} did not matter"
    for name in ("read", "offered", "agreed"):
        wrong = tests["wrong" if name == "read" else f"{name} wrong"]
        yield f"suggested tests, {name}: {tests[name]}, wrong {wrong / max(tests[name], 1):.1%}"
    if waits := found["first question s"]:
        seconds = f"median {waits['median']:.2f} s, largest {waits['largest']:.2f} s"
        yield f"from the last candidate to the first question: {seconds}"


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=["40"], help="so many, spread evenly; or names of problems")
    parser.add_argument("-n", type=int, default=8, help="candidates")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--model", default=MEASURED)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--generate-only", action="store_true", help="write and judge candidates, and stop there")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/questions.json"), metavar="FILE")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
