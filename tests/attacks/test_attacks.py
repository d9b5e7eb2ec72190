"""Candidates that answer wrong and try to pass, or to do harm. None may pass, reach anything, or leave anything."""

import time

import pytest

from tests.attacks.world import CASES, World
from tests.engine.runner.conftest import Bench

TESTS = (CASES / "test_solution.txt").read_text()

SHORT = {"test_timeout_s": 0.4, "total_timeout_s": 1.5}
LONG = {"test_timeout_s": 3.0, "total_timeout_s": 15.0}

# name -> verdict, outcome of its first test
KNOWN = {
    "_exit0_call": ("fail", "killed"),
    "_exit0_import": ("fail", "killed"),
    "big_file": ("fail", "failed"),
    "conftest": ("fail", "failed"),
    "cyclic_reply": ("fail", "failed"),
    "daemon": ("fail", "failed"),
    "deep": ("fail", "killed"),
    "delete": ("fail", "failed"),
    "eq_true": ("pass-soft", "passed"),  # shown as unconfirmed, and never picked
    "exec_true": ("fail", "killed"),
    "exit0_call": ("fail", "error"),
    "exit0_import": ("fail", "error"),
    "flood": ("fail", "killed"),
    "forge_fd": ("tampered", None),
    "fork_bomb": ("fail", "timeout"),
    "frame_peek": ("fail", "failed"),
    "kill_all": ("fail", None),
    "kill_parent": ("fail", None),
    "linecache_peek": ("fail", "failed"),
    "loop": ("fail", "timeout"),
    "loopback": ("fail", "failed"),
    "mem_bomb": ("fail", None),
    "outside": ("fail", "failed"),
    "patch_pytest": ("fail", "failed"),
    "print_passed": ("fail", "killed"),
    "proc_snoop": ("fail", "failed"),
    "pytest_exit": ("fail", "error"),
    "read_tests": ("fail", "failed"),
    "rpc_garbage": ("tampered", None),
    "segv": ("fail", "killed"),
    "sigterm": ("fail", "timeout"),
    "skip_call": ("fail", "error"),
    "slow_import": ("fail", "timeout"),
    "stdin": ("fail", "failed"),
    "steal": ("fail", "failed"),
    "symlink": ("fail", "failed"),
    "unix_sock": ("fail", "failed"),
    "xfail_call": ("fail", "error"),
}

# 24 processes of 400 MiB: only a group of the kernel's bounds their sum, and running it without could end the machine.
NEEDS_A_GROUP = "mem_many"


@pytest.mark.sandbox
@pytest.mark.parametrize("name", KNOWN)
def test_an_attack_neither_passes_nor_harms(name: str, bench: Bench, world: World) -> None:
    verdict, outcome = KNOWN[name]
    start = time.monotonic()
    # Each test that ends its process costs a fresh box; three are enough of those.
    tests = TESTS.partition("def test_3")[0] if outcome in ("killed", None) else TESTS
    report = bench.run(world.laid_out(name), tests, **(SHORT if outcome == "timeout" else LONG))
    assert (report.verdict, report.mode) == (verdict, "split"), report
    assert len(report.tests) == tests.count("def ")
    if outcome is not None:
        assert report.tests[0].outcome == outcome, report
    assert report.why
    assert report.output_bytes < 128 << 20
    assert time.monotonic() - start < 30
    assert bench.nothing_but_warm_boxes()
    world.assert_untouched()


@pytest.mark.sandbox
def test_memory_by_24_children_is_bounded(bench: Bench, world: World) -> None:
    if "memory" in bench.isolation.weak:
        pytest.skip(f"no cgroup limits memory here, and the isolation says so: {bench.isolation.isolation['memory']}")
    report = bench.run(world.laid_out(NEEDS_A_GROUP), TESTS.partition("def test_3")[0], **LONG)
    assert report.verdict == "fail"
    assert report.peak_mib is not None
    assert report.peak_mib <= 1024
    assert bench.nothing_but_warm_boxes()
    world.assert_untouched()


def test_every_attack_is_accounted_for() -> None:
    assert {path.stem for path in CASES.glob("*.txt")} == KNOWN.keys() | {"test_solution", NEEDS_A_GROUP}
