"""Small honest test files, as people write them: a right candidate passes, a wrong one fails, or one process is asked
for and the reason named. Never a wrong verdict.

A case is a file in ``legitimate``. Its first line is *split*; *soft*, where the candidate's own ``==`` decides; or
*needs* and a word of the reason for one process.
"""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.engine.runner.conftest import Bench

CASES = {path.stem: path for path in sorted((Path(__file__).parent / "legitimate").glob("*.txt"))}
CRLF = (
    "split\n=== right\n\ufeffdef add(a, b):\r\n    return a + b\r\n=== wrong\n\ufeffdef add(a, b):\r\n    return a\r\n"
)
CRLF += "=== tests\n\ufefffrom solution import add\r\n\r\ndef test_add():\r\n    assert add(1, 2) == 3\r\n"


def verdict(bench: Bench, solution: str, tests: str, needs: str) -> str:
    report = bench.run(solution, tests, test_timeout_s=15.0, same_process=bool(needs))
    assert report.mode == ("in-process" if needs else "split"), report
    assert report.verdict in ("pass", "pass-soft", "fail"), report
    return report.verdict


@pytest.mark.sandbox
@pytest.mark.parametrize("name", [*CASES, "CRLF and BOM"])
def test_the_verdict_is_right(name: str, bench: Bench) -> None:
    if name == "numpy" and importlib.util.find_spec("numpy") is None:
        pytest.skip("numpy is not installed")
    text = CASES[name].read_text(encoding="utf-8") if name in CASES else CRLF
    kind, right, wrong, tests = re.split(r"^=== (?:right|wrong|tests)\n", text, flags=re.MULTILINE)
    needs = kind.strip().removeprefix("needs: ") if kind.startswith("needs: ") else ""
    if needs:
        assert needs in bench.asks(right, tests)
    assert verdict(bench, right, tests, needs) == ("pass-soft" if kind.strip() == "soft" else "pass")
    assert verdict(bench, wrong, tests, needs) == "fail"


def test_there_are_more_than_the_33_that_were_asked_for() -> None:
    assert len(CASES) >= 33
