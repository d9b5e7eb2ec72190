"""Plants bugs in a copy of the tree, and runs tests there."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.seeded_bugs.bug import Bug

ROOT = Path(__file__).parents[2]
COPIED = ("app", "benchmarks", "engine", "kernels", "resources", "tests", "main.py", "pyproject.toml")
TIMEOUT_S = 600


def plant(bug: Bug, tree: Path) -> None:
    """Write the wrong line where the right one is. Raises LookupError when it is not there, or not once."""
    path = tree / bug.file
    text = path.read_text(encoding="utf-8")
    if text.count(bug.right) != 1:
        raise LookupError(
            f"{bug.file} holds {bug.right!r} {text.count(bug.right)} times; the bug has to be written again."
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


def run_tests(tree: Path, tests: tuple[str, ...], to_the_end: bool = True) -> tuple[int, int]:
    """How many passed and how many failed, ``to_the_end`` or to the first failure. Raises RuntimeError when they could
    not be run."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", *tests]
    command += [] if to_the_end else ["-x"]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not run {' '.join(tests)}:\n{done.stdout}{done.stderr}")
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    return counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)


@functools.cache
def _without_a_bug(tests: tuple[str, ...]) -> tuple[int, int]:
    with tempfile.TemporaryDirectory(prefix="bassline-bug-") as folder:
        return run_tests(copy_tree(Path(folder)), tests)


def is_caught(bug: Bug) -> tuple[bool, str]:
    """Whether the bug's tests pass without it and fail with it, and the counts in words."""
    passed, failed_before = _without_a_bug(bug.tests)
    with tempfile.TemporaryDirectory(prefix="bassline-bug-") as folder:
        tree = copy_tree(Path(folder))
        plant(bug, tree)
        _, failed = run_tests(tree, bug.tests, to_the_end=False)
    return passed > 0 == failed_before and failed > 0, f"{failed_before} of {passed + failed_before} -> {failed}"
