"""What does it cost to run a candidate in a sandbox, compared with plain pytest, which trusts it?

    python -m benchmarks.runner [--candidates 16] [--repeat 3]

Sixteen candidates, ten tests each. Plain pytest (without plugins) runs them one after another, as a user would; the
runner gets them all at once, and one by one when it is warm. Everything takes turns, so that whatever disturbs the
machine disturbs all alike.
"""

import argparse
import os
import queue
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.machine import QUIET, facts, others_load
from engine.runner.client import RunnerClient
from engine.runner.protocol import Answer, Isolation, RunTests, TestFinished
from engine.runner.verdicts import Verdict

_TESTS = "from solution import add\n" + "".join(
    f"def test_{n}():\n    assert add({n}, {n + 1}) == {2 * n + 1}\n" for n in range(10)
)
_NEEDS_ONE_PROCESS = _TESTS + "def test_same(monkeypatch):\n    pass\n"


class TimedRunner:
    """A client whose service is up and has been probed."""

    def __init__(self) -> None:
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._client = RunnerClient(self._answers.put)
        self._count = 0
        start = time.monotonic()
        self._client.probe()
        isolation = self._answers.get()
        assert isinstance(isolation, Isolation)
        self.isolation, self.start_s = isolation, time.monotonic() - start

    def run(self, candidates: int, tests: str) -> float:
        """Seconds for that many candidates, all right, handed over at once."""
        start, left = time.monotonic(), candidates
        for number in range(candidates):
            self._count += 1
            solution = f"# {self._count}, {number}\ndef add(a, b):\n    return a + b\n"
            self._client.test(RunTests(str(self._count), solution, tests, consent=True, same_process=True))
        while left:
            answer = self._answers.get()
            if isinstance(answer, TestFinished):
                assert answer.report.verdict == Verdict.PASS, answer.report
                left -= 1
        return time.monotonic() - start

    def close(self) -> None:
        self._client.close()


def plain(candidates: int) -> float:
    """Seconds for that many runs of pytest, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_solution.py").write_text(_TESTS)
        (Path(folder) / "solution.py").write_text("def add(a, b):\n    return a + b\n")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
        alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        start = time.monotonic()
        for _ in range(candidates):
            subprocess.run(command, cwd=folder, check=True, capture_output=True, env=alone)
        return time.monotonic() - start


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=16, metavar="N")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="turns")
    options = parser.parse_args(arguments)
    runner = TimedRunner()
    figures: dict[str, list[float]] = {}
    loads = []
    for _ in range(options.repeat):
        loads.append(others_load())
        batch = options.candidates
        turn = {
            "plain pytest, one after another": plain(batch),
            "two boxes, all at once": runner.run(batch, _TESTS),
            "one process, all at once": runner.run(batch, _NEEDS_ONE_PROCESS),
        }
        for name, seconds in turn.items():
            figures.setdefault(name, []).append(seconds / batch)
        waits = []
        for _ in range(5):
            time.sleep(1.5)  # a user presses the key; boxes have become warm
            waits.append(runner.run(1, _TESTS))
        figures.setdefault("two boxes, one candidate, warm", []).append(median(waits))
    runner.close()
    base = median(figures["plain pytest, one after another"])
    print(", ".join(f"{name} {fact}" for name, fact in facts().items()))
    print(
        f"weak layers: {', '.join(runner.isolation.weak) or 'none'}; service up and probed in {runner.start_s:.1f} s\n"
    )
    print(f"| {options.candidates} candidates x 10 tests | s per candidate (spread) | against plain pytest |")
    print("|---|---|---|")
    for name, values in figures.items():
        middle = median(values)
        spread = (max(values) - min(values)) / middle
        print(f"| {name} | {middle:.3f} ({spread:.0%}) | {middle / base:.2f}x |")
    if max(loads) > QUIET:
        print(f"\nvoid: others used {max(loads):.1f} cores")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
