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
COPIED = ("engine", "kernels", "resources", "tests", "pyproject.toml")
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
        "memory-rung",
        "a lack of memory is taken for a fault of the kernels",
        "engine/sampler/device_path.py",
        "isinstance(error, LoadCancelled) or lack_of_memory(error) is not None:",
        "isinstance(error, LoadCancelled):",
        ("tests/engine/sampler/test_device_path.py", "-k", "fewer_rows"),
    ),
    Bug(
        "memory-capture",
        "memory that lacks in a capture costs the model its graphs",
        "engine/sampler/graphs.py",
        "            if lack_of_memory(error) is not None:\n                raise",
        "            if isinstance(error, MemoryError):\n                raise",
        ("tests/engine/sampler/test_graphs.py",),
    ),
    Bug(
        "capture-stream",
        "after a capture that failed everything goes on on its stream",
        "engine/sampler/graphs.py",
        "            cuda.set_stream(before)",
        "            cuda.set_stream(cuda.current_stream())",
        ("tests/engine/sampler/test_graphs.py",),
    ),
    Bug(
        "capture-underway",
        "the allocator goes on counting a capture that failed",
        "engine/sampler/graphs.py",
        "            torch._C._cuda_endAllocateToPool(device, self._pool)\n",
        "",
        ("tests/engine/sampler/test_graphs.py",),
    ),
    Bug(
        "capture-wait",
        "what makes the host wait is found out inside the capture",
        "engine/sampler/graphs.py",
        'cuda.set_sync_debug_mode("error")',
        "cuda.set_sync_debug_mode(mode)",
        ("tests/engine/sampler/test_graphs.py",),
    ),
    Bug(
        "capture-reading",
        "graphs captured before the prompt is read write into its store",
        "engine/sampler/fixed_cache.py",
        "is_reading, self.is_reading = self.is_reading, False",
        "is_reading = self.is_reading",
        ("tests/engine/sampler/test_room.py", "-k", "captured_before"),
    ),
    Bug(
        "trial-nan",
        "numbers that are none are no wrong numbers",
        "engine/sampler/trial.py",
        "if not worst <= SLACK",
        "if worst > SLACK",
        ("tests/engine/sampler/test_device_path.py", "-k", "long_lines"),
    ),
    Bug(
        "draft-limit",
        "every row drafts as far as the longest, some beyond their limit",
        "engine/sampler/drafters/draft_loop.py",
        "self._depth < self._feeds",
        "self._depth < self._feeds.amax()",
        ("tests/engine/sampler/test_room.py", "-k", "past_its_limit"),
    ),
    Bug(
        "draft-fed",
        "drafts of longer rows are taken for what a shorter one was fed",
        "engine/sampler/drafters/draft_loop.py",
        "drafted[: feeds[index]]",
        "drafted[:-1]",
        ("tests/engine/sampler/test_room.py", "-k", "past_its_limit"),
    ),
    Bug(
        "draft-room",
        "the draft keeps its room where memory lacks",
        "engine/sampler/decoder.py",
        "self.drafter.release()",
        "self.drafter.keep([])",
        ("tests/engine/sampler/test_room.py", "-k", "gives_up"),
    ),
    Bug(
        "read-again",
        "a row is read again behind the wrong position, in pieces",
        "engine/sampler/decoder.py",
        "row.prompt_length + start], last_only=True)",
        "row.prompt_length], last_only=True)",
        ("tests/engine/sampler/test_room.py", "-k", "in_pieces"),
    ),
    Bug(
        "earlier-room",
        "the room of an earlier run stays in the way",
        "engine/sampler/generation.py",
        "            self.decoder.release()  # the room of an earlier run may have been what was in the way\n",
        "",
        ("tests/engine/sampler/test_room.py", "-k", "earlier_run"),
    ),
    Bug(
        "plan-powers",
        "the plan counts tokens, and not the powers of two that are taken",
        "engine/models/memory_plan.py",
        "per_token * room.tokens",
        "per_token * (width * answer + prompt)",
        ("tests/engine/sampler/test_room.py", "-k", "TestPlan"),
    ),
    Bug(
        "driver-minor",
        "a driver is too old for a later CUDA of its own major version",
        "engine/device.py",
        "driver[0] >= build[0]",
        "driver >= build",
        ("tests/engine/test_device.py", "-k", "too_old"),
    ),
    Bug(
        "quota-outer",
        "a quota of the group around this process's own is not seen",
        "kernels/quota.py",
        "*(above for above in inner.parents if above.is_relative_to(root))",
        "*()",
        ("tests/kernels/test_quota.py",),
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
