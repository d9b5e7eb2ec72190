"""Does the suite catch what speculative samplers get wrong? Plant one known bug at a time in a copy, and run its tests.

    python -m tests.seeded_bugs            every bug
    python -m tests.seeded_bugs R4 mask    these

Each bug is one line that somebody really might write. Its tests must pass without it and fail with it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("benchmarks", "engine", "kernels", "resources", "tests", "pyproject.toml")
TIMEOUT_S = 600


@dataclass(frozen=True)
class Bug:
    """``tests``: what is run, as pytest is told it; some of it has to fail once ``right`` reads ``wrong``."""

    name: str
    what: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


BUGS = (
    Bug(
        "mask",
        "the mask is off by one: a token does not see itself",
        "kernels/attention/torch.py",
        "visible = key_positions <= positions[..., None]",
        "visible = key_positions < positions[..., None]",
        ("tests/kernels/attention/test_attention.py", "tests/engine/sampler/test_ragged_model.py"),
    ),
    Bug(
        "mask-compiled",
        "the same in the loops of a CPU",
        "kernels/attention/loops.py",
        "long(0)), at.add(slot, long(1))]",
        "long(0)), slot]",
        ("tests/kernels/attention/test_native.py", "tests/engine/sampler/test_ragged_model.py"),
    ),
    Bug(
        "surplus",
        "int8 weights made unsigned, and what that adds not taken off rows whose inputs sum to less than nothing",
        "kernels/int8_linear/loops.py",
        "at.sitofp(at.sub(whole, body.splat(surplus, lanes)), floats)",
        "at.uitofp(at.sub(whole, body.splat(surplus, lanes)), floats)",
        ("tests/kernels/int8_linear/test_native.py",),
    ),
    Bug(
        "length",
        "a stale length: rejected drafts are not taken off a row",
        "engine/sampler/decoder.py",
        "[row.position - 1 for row in rows],\n        )",
        "[row.position - 1 + row.proposed - row.accepted for row in rows],\n        )",
        ("tests/engine/sampler/test_lossless.py", "-k", "d6_a_row_is or d8 or d16"),
    ),
    Bug(
        "draft-length",
        "a stale length in the draft's cache: what it was fed is taken for what was said",
        "engine/sampler/drafters/draft_model.py",
        "_common_length(self._fed[index], wanted)",
        "len(self._fed[index])",
        ("tests/engine/sampler/test_lossless.py", "-k", "d1_"),
    ),
    Bug(
        "purpose",
        "a wrong purpose in the counter: the residual is drawn by the numbers that decided the rejection",
        "kernels/acceptance/torch.py",
        "draw(p_ids, leftover.log(), at_stop, RESIDUAL)",
        "draw(p_ids, leftover.log(), at_stop, ACCEPT)",
        ("tests/kernels/acceptance/test_acceptance.py", "tests/engine/sampler/test_rejection.py", "-k", "number or d9"),
    ),
    Bug(
        "bonus",
        "the extra token after a fully accepted draft comes from the draft",
        "engine/sampler/decoder.py",
        "row.commit([*drafts[:count], token], ",
        "row.commit([*drafts[:count], drafts[-1] if 0 < count == len(drafts) else token], ",
        ("tests/engine/sampler/test_properties.py", "tests/engine/sampler/test_rejection.py", "-k", "any or d9"),
    ),
    Bug(
        "R4",
        "a sampled draft is dropped, unverified, by a look at its own value",
        "engine/sampler/policies/__init__.py",
        "        return proposals\n",
        "        return proposals.cut([len(row) - (row[-1:] == [0]) for row in proposals.tokens])\n",
        ("tests/engine/sampler/test_rejection.py", "-k", "d9"),
    ),
    Bug(
        "penalty",
        "a penalty does not know the drafts before its position",
        "engine/sampler/acceptance.py",
        "row.place(tokens[:count])",
        "row.place()",
        ("tests/engine/sampler/test_lossless.py", "tests/engine/sampler/test_rejection.py", "-k", "d11 or penalised"),
    ),
    Bug(
        "recall-last",
        "a follow-up that is a beginning of an answer: nothing is left to read, so nothing says what comes next",
        "engine/sampler/recall.py",
        "rest = prompt[known:-1]",
        "rest = prompt[known:]",
        ("tests/engine/sampler/test_recall.py", "-k", "not inside"),
    ),
    Bug(
        "recall-unfed",
        "the last token of an answer, which was never fed, is taken for known",
        "engine/sampler/recall.py",
        "min(common_length(answer, rest), segment[0][0].shape[2])",
        "common_length(answer, rest)",
        ("tests/engine/sampler/test_recall.py", "-k", "not inside"),
    ),
    Bug(
        "recall-first",
        "the first answer that matches is taken, not the one that matches longest",
        "engine/sampler/recall.py",
        "if length > best.answer:",
        "if length > best.answer == 0:",
        ("tests/engine/sampler/test_recall.py", "-k", "not inside"),
    ),
    Bug(
        "recall-budget",
        "the budget is one of each answer, not of all together",
        "engine/sampler/recall.py",
        "if self._bytes + size <= BUDGET:",
        "if size <= BUDGET:",
        ("tests/engine/sampler/test_recall.py", "-k", "not inside"),
    ),
    Bug(
        "min-p",
        "an id at min-p's very edge goes by the last bit of a logarithm",
        "engine/sampler/sampling.py",
        "largest + min_p.log() - ROUNDING)",
        "largest + min_p.log())",
        ("tests/engine/sampler/test_sampling.py", "-k", "edge"),
    ),
    Bug(
        "min-p-wide",
        "the same where more ids stay than are looked at first",
        "engine/sampler/sampling.py",
        "math.log(sampling.min_p) - ROUNDING if",
        "math.log(sampling.min_p) if",
        ("tests/engine/sampler/test_sampling.py", "-k", "edge"),
    ),
    Bug(
        "min-p-device",
        "the same on a GPU",
        "kernels/acceptance/triton.py",
        "floor = tl.maximum(floor, top + tl.log(min_p) - ROUNDING)",
        "floor = tl.maximum(floor, top + tl.log(min_p))",
        ("tests/kernels/acceptance/test_triton.py", "-k", "edge"),
    ),
    Bug(
        "min-p-listed",
        "the same where ids are listed there",
        "kernels/acceptance/triton.py",
        "bound = tl.maximum(bound, top + tl.log(min_p) - ROUNDING)",
        "bound = tl.maximum(bound, top + tl.log(min_p))",
        ("tests/kernels/acceptance/test_triton.py", "-k", "edge"),
    ),
    Bug(
        "index-place",
        "the suffix index is off by one: what follows a run is its own last token",
        "engine/sampler/drafters/copies.py",
        "place = (text, len(text))",
        "place = (text, len(text) - 1)",
        ("tests/engine/sampler/test_copies.py", "-k", "recorded"),
    ),
    Bug(
        "index-longest",
        "runs of one token less are the longest that are found",
        "engine/sampler/drafters/copies.py",
        "range(SHORTEST, min(LONGEST, len(text)) + 1)",
        "range(SHORTEST, min(LONGEST, len(text)))",
        ("tests/engine/sampler/test_copies.py",),
    ),
    Bug(
        "index-crossing",
        "the first token of an answer is not indexed",
        "engine/sampler/drafters/suffix.py",
        "row.tokens[len(text) - len(beginning) :]",
        "row.tokens[max(1, len(text) - len(beginning)) :]",
        ("tests/engine/sampler/test_copies.py",),
    ),
    Bug(
        "index-bound",
        "the suffix index grows for ever while the prompt stays the same",
        "engine/sampler/drafters/copies.py",
        "if self._said == GENERATION:",
        "if self._said < 0:",
        ("tests/engine/sampler/test_copies.py",),
    ),
    Bug(
        "same-seed",
        "a copied guess is judged by a coin, which the text it was copied from knows",
        "engine/sampler/acceptance.py",
        "return coupled(p.ids, p.log_probs, line.drafts, line.rows, line.counter)\n        q = ",
        "sure = line.drafts.clamp(min=0)[:, None], 0 * p.log_probs[:, :1]\n"
        "            return rejection(p.ids, p.log_probs, line.drafts, *sure, line.rows, line.counter)\n        q = ",
        ("tests/engine/sampler/test_same_seed.py", "-k", "with_its_seed_says"),
    ),
    Bug(
        "same-seed-hybrid",
        "whether a guess is copied or drawn depends on a run with the same seed",
        "engine/sampler/drafters/hybrid.py",
        "            self.suffix.forget()",
        "            pass",
        ("tests/engine/sampler/test_same_seed.py", "-k", "drawn_copied_or_both"),
    ),
    Bug(
        "mixed-line",
        "a copied guess beside drawn ones is judged as if it had been drawn",
        "engine/sampler/verdict.py",
        "places = torch.where(line.drawn, places, -1)",
        "places = torch.where(line.drawn, places, places)",
        ("tests/engine/sampler/test_verdict.py", "-k", "some and float32"),
    ),
    Bug(
        "two-engines",
        "one list of caches for all threads",
        "engine/sampler/cache.py",
        '_current: ContextVar[RaggedCache] = ContextVar("cache of the pass in progress")',
        '_current = type("All", (list,), {"set": list.append, "get": lambda all: all[-1]})()\n'
        "_current.reset = lambda before: _current.pop()",
        ("tests/engine/sampler/test_two_engines.py", "-k", "float32-float32"),
    ),
    Bug(
        "silu-tail",
        "a whole vector is written where a row has fewer numbers left",
        "kernels/elementwise/loops.py",
        "store_some(body, applied(value), body.address(result, i, FLOAT), rest)",
        "body.store(applied(value), body.address(result, i, FLOAT))",
        ("tests/kernels/elementwise/test_elementwise.py", "-k", "any_width and 1-17"),
    ),
    Bug(
        "busy-table",
        "a table of costs that was measured while the machine was busy is kept for good",
        "engine/sampler/cost_table.py",
        "return is_busy(self.disturbed)",
        "return False",
        ("tests/engine/sampler/test_cost_table.py", "-k", "idle or measures_again"),
    ),
    Bug(
        "busy-run",
        "what a run beside others taught is kept",
        "engine/sampler/engine.py",
        "pair.costs.lessons = known  #",
        "pair.costs.keep()  #",
        ("tests/engine/sampler/test_cost_table.py", "-k", "quiet_run"),
    ),
)


def plant(bug: Bug, tree: Path) -> None:
    """Write the wrong line where the right one is. Raises LookupError when it is not there, or not once."""
    path = tree / bug.file
    text = path.read_text(encoding="utf-8")
    if text.count(bug.right) != 1:
        raise LookupError(
            f"{bug.file} holds {bug.right!r} {text.count(bug.right)} times; the bug has to be written anew."
        )
    path.write_text(text.replace(bug.right, bug.wrong), encoding="utf-8")


def copy_tree(folder: Path) -> Path:
    tree = folder / "tree"
    tree.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree / name)
    return tree


def run_tests(tree: Path, tests: tuple[str, ...]) -> tuple[int, int]:
    """How many passed and how many failed. Raises RuntimeError when they could not be run."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", *tests]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not run {' '.join(tests)}:\n{done.stdout}{done.stderr}")
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    return counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)


def is_caught(bug: Bug) -> tuple[bool, str]:
    """Whether the bug's tests pass without it and fail with it, and the counts in words."""
    with tempfile.TemporaryDirectory(prefix="bassline-bug-") as folder:
        tree = copy_tree(Path(folder))
        passed, failed_before = run_tests(tree, bug.tests)
        plant(bug, tree)
        _, failed = run_tests(tree, bug.tests)
    return passed > 0 == failed_before and failed > 0, f"{failed_before} of {passed + failed_before} -> {failed}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.seeded_bugs", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *(bug.name for bug in BUGS)], metavar="NAME")
    names = parser.parse_args().names or [bug.name for bug in BUGS]
    print(f"{'bug':13} {'caught':7} {'failures':16} what it is")
    missed = 0
    for bug in BUGS:
        if bug.name in names:
            caught, counts = is_caught(bug)
            missed += not caught
            print(f"{bug.name:13} {'yes' if caught else 'NO':7} {counts:16} {bug.what}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
