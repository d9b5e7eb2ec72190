"""Candidates that answer wrong and try to pass, or to do harm. None may pass, reach anything, or leave anything."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.runner.layers import SEALED_LAMPS
from tests.engine.runner.conftest import ATTACKS, Bench, Witness

TESTS = (ATTACKS / "test_solution.txt").read_text()

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
    "exec_true": ("fail", "killed"),
    "exit0_call": ("fail", "error"),
    "exit0_import": ("fail", "error"),
    "flood": ("fail", "killed"),
    "forge_fd": ("tampered", None),
    "fork_bomb": ("fail", "timeout"),
    "frame_peek": ("fail", "failed"),  # it looks for the tests on the disk, where they are not
    "kill_all": ("fail", None),
    "kill_parent": ("fail", None),
    "loop": ("fail", "timeout"),
    "loopback": ("fail", "failed"),
    "mem_bomb": ("fail", "error"),
    "outside": ("fail", "failed"),
    "patch_pytest": ("tampered", None),
    "print_passed": ("fail", "killed"),
    "proc_snoop": ("fail", "failed"),
    "pytest_exit": ("fail", "killed"),
    "read_tests": ("fail", "failed"),
    "rpc_garbage": ("tampered", None),
    "segv": ("fail", "killed"),
    "sigterm": ("fail", "timeout"),
    "skip_call": ("fail", "skipped"),
    "slow_import": ("fail", "timeout"),
    "stdin": ("fail", "failed"),
    "steal": ("fail", "failed"),
    "symlink": ("fail", "failed"),
    "unix_sock": ("fail", "failed"),
    "xfail_call": ("fail", "skipped"),
}

# These get through while tests and candidate share a process: they need the split. The verdict says so in words.
NEEDS_THE_SPLIT = {
    "eq_true": "its answer's own == says yes to everything",
    "linecache_peek": "it reads the expected value out of the caller's source",
}

# 24 processes of 400 MiB: only a cgroup bounds their sum, which is not there yet; running it could end the machine.
NEEDS_A_CGROUP = {"mem_many"}


class World:
    """What an attack is after, planted where this test's own user can reach it."""

    def __init__(self, folder: Path):
        self.home, self.loot, self.alive = folder / "home", folder / "loot", folder / "alive"
        self.secrets = {
            self.home / ".ssh/id_rsa": "PLANTED key",
            self.home / ".local/share/app/history.db": "PLANTED history",
            self.home / "project/notes.txt": "PLANTED notes",
        }
        for path, text in self.secrets.items():
            path.parent.mkdir(parents=True)
            path.write_text(text)
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.named, self.abstract = (socket.socket(socket.AF_UNIX) for _ in range(2))
        self.named.bind(str(folder / "s"))
        self.abstract.bind("\0" + str(folder))
        self.fields = {
            "@HOME@": str(self.home),
            "@LOOT@": str(self.loot),
            "@ALIVE@": str(self.alive),
            "@PORT@": str(self.tcp.getsockname()[1]),
            "@SOCKET@": str(folder / "s"),
            "@ABSTRACT@": str(folder),
        }
        self.doors = (self.tcp, self.named, self.abstract)
        for door in self.doors:
            door.listen()
            door.setblocking(False)

    def laid_out(self, name: str) -> str:
        text = (ATTACKS / f"{name}.txt").read_text()
        for field, value in self.fields.items():
            text = text.replace(field, value)
        return text

    def assert_untouched(self) -> None:
        assert not self.loot.exists()
        assert not self.alive.exists()
        assert {path: path.read_text() for path in self.secrets} == self.secrets
        for door in self.doors:
            with pytest.raises(BlockingIOError):
                door.accept()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    for door in world.doors:
        door.close()


@pytest.mark.sandbox
@pytest.mark.parametrize("name", KNOWN)
def test_an_attack_neither_passes_nor_harms(name: str, bench: Bench, world: World) -> None:
    verdict, outcome = KNOWN[name]
    start = time.monotonic()
    with Witness(bench.service) as witness:
        # Each test that ends its process costs a fresh box; three are enough of those.
        tests = TESTS.partition("def test_3")[0] if outcome == "killed" else TESTS
        report = bench.run(world.laid_out(name), tests, **(SHORT if outcome == "timeout" else LONG))
    assert report.verdict == verdict, report
    assert len(report.tests) == tests.count("def ")
    if outcome is not None:
        assert report.tests[0].outcome == outcome, report
    assert report.why
    assert report.output_bytes < 128 << 20
    assert time.monotonic() - start < 20
    assert witness.left() == []
    assert bench.service.is_running()
    world.assert_untouched()


@pytest.mark.sandbox
@pytest.mark.parametrize("name", NEEDS_THE_SPLIT)
def test_what_gets_through_today_is_labelled(name: str, bench: Bench, world: World) -> None:
    report = bench.run(world.laid_out(name), TESTS)
    assert report.verdict == "pass", "it no longer gets through: move it to the known attacks"
    assert report.mode == "in-process"
    assert "a candidate written to cheat could fake this" in report.lamps["verdict"]
    world.assert_untouched()


def test_every_attack_is_accounted_for() -> None:
    files = {path.stem for path in ATTACKS.glob("*.txt")} - {"test_solution"}
    assert files == KNOWN.keys() | NEEDS_THE_SPLIT.keys() | NEEDS_A_CGROUP
    assert "no limit on their sum" in SEALED_LAMPS["memory"]
