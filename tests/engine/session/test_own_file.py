"""A file of the user's own as a run, and tests that know it by its own name."""

from pathlib import Path

import pytest

from engine.contract import BadRequest, Generate, ModelChoice, Request
from engine.contract.states import CandidateState, StopReason
from engine.runner.protocol import RunTests, TestFinished
from engine.runner.report import Report, TestResult
from engine.session.arms import ARMS, BATCH, FRESH, REPAIR, Budget, Model
from engine.session.candidate import FILE, Origin
from engine.session.driver import RunDriver
from engine.session.effects import TestPolicy
from engine.session.journal import Journal
from engine.session.own_file import OWN, importing_solution, in_style_of, is_own, run_of
from engine.session.recorder import Recorder
from engine.session.resume import search_of
from engine.session.run import Run
from engine.session.search import Search

PASS = Report("pass", "split", tests=(TestResult("1", "passed"),))
FAIL = Report("fail", "split", tests=(TestResult("1", "failed", "assert f() == 2, where 1"),))
SMALL = Model(ModelChoice("small"), "Small")


def a_file(code: str = "def f(): return 1\n") -> Run:
    return run_of("r", Request("Fix f.py", 7, 1), code, "assert f() == 2")


@pytest.mark.parametrize(
    "code",
    [
        "def f(): return 1",
        "def f():\r\n    return 1\r\n",
        '"""Usage:\n\n```python\nf()\n```\n"""\n\ndef f(): return 1\n',
        "1: x = 1\n2: y = 2\n",
        "x = '&lt;'\n",
        "\ufeffx = 1\n",
    ],
)
def test_the_file_is_the_code_to_the_byte(code: str, tmp_path: Path) -> None:
    run = a_file(code)
    assert (run.candidates[OWN].code, run.candidates[OWN].block.language) == (code, "python")
    recorder = Recorder(tmp_path / "h")
    recorder.begin(run)
    assert recorder.close()
    journal = Journal(tmp_path / "h")
    kept = journal.load(1).run
    journal.close()
    assert (kept.candidates[OWN].code, is_own(kept)) == (code, True)
    assert kept.result()["candidates"][0]["origin"] == {"arm": FILE, "model": "", "of": 0}


def judged(run: Run, report: Report = FAIL) -> RunDriver:
    driver = RunDriver(run, TestPolicy, clock=lambda: 5.0)
    (test,) = driver.run_tests()
    assert isinstance(test, RunTests)
    driver.runner_answer(TestFinished(test.id, report))
    return driver


def test_corrections_of_it_are_asked_for_and_say_whose_they_are() -> None:
    run = a_file()
    (asked,) = judged(run).go_on(Search(Budget(), (SMALL,)))
    assert isinstance(asked, Generate)
    assert [turn.text for turn in asked.request.turns] == ["Fix f.py", "```python\ndef f(): return 1\n```\n"]
    assert "assert f() == 2, where 1" in asked.request.prompt
    assert asked.request.numbers == range(2, 2 + BATCH)
    assert run.candidates[2].origin == Origin(FRESH, "Small", OWN)
    assert run.candidates[OWN].origin == Origin(FILE)


@pytest.mark.parametrize("arm", [arm for arm in ARMS if arm != REPAIR])
def test_whatever_is_tried_is_about_the_file(arm: str) -> None:
    larger = Model(ModelChoice("large"), "Large")
    driver = judged(a_file())
    search = Search(Budget(), (SMALL, larger), arms=(arm,))
    driver.go_on(search)
    asked = search.decisions[-1]
    assert "def f(): return 1" in asked.request.turns[-1].text
    assert asked.origin.of == OWN


def test_a_file_that_passes_needs_no_correction() -> None:
    driver = judged(a_file(), PASS)
    with pytest.raises(BadRequest, match="passes its tests"):
        driver.go_on(Search(Budget(), (SMALL,)))


def test_after_a_kill_it_is_still_the_file_that_is_corrected() -> None:
    run = a_file()
    driver = judged(run)
    driver.go_on(Search(Budget(), (SMALL,), arms=(FRESH,)))
    driver.stop()
    later = Run.restored("history-1", run.request, run.tests, run.candidates.values())
    later.decisions = run.decisions
    for candidate in later.candidates.values():
        if not candidate.ended:
            candidate.state, candidate.stop_reason = CandidateState.STOPPED, StopReason.CANCELLED
    search = search_of(later, (SMALL,), Budget(), arms=(FRESH,))
    (asked,) = RunDriver(later, TestPolicy).go_on(search)
    assert isinstance(asked, Generate)
    assert "def f(): return 1" in asked.request.turns[-1].text
    assert later.candidates[2].origin == Origin(FRESH, "Small", OWN)


def test_the_candidate_that_the_user_chose_is_corrected_first() -> None:
    run = a_file()
    driver = judged(run)
    search = Search(Budget(), (SMALL,))
    (asked,) = driver.go_on(search, fix=OWN)
    assert isinstance(asked, Generate)
    assert run.candidates[2].origin == Origin(REPAIR, "Small", OWN)
    assert search.decisions[-1].considered


@pytest.mark.parametrize(
    ("tests", "seen"),
    [
        ("from slugs import slug\n", "from solution import slug\n"),
        ("import slugs\n", "import solution as slugs\n"),
        ("import slugs as s\n", "import solution as s\n"),
        ("import os, slugs, sys\r\nx = 'slugs'\r\n", "import os, solution as slugs, sys\r\nx = 'slugs'\r\n"),
        ("from slugs import slugs  # slugs\n", "from solution import slugs  # slugs\n"),
        ("def test():\n    é = 1; from slugs import (\n        a,\n    ); assert a\n", None),
        ("\ufefffrom slugs import a", "\ufefffrom solution import a"),
        ("from slugs import a\nfrom slugs import b\n", "from solution import a\nfrom solution import b\n"),
        ("from solution import a\nimport slugs\n", ""),
        ("from .slugs import a\n", ""),
        ("from pkg.slugs import a\n", ""),
        ("assert slug(1) == 'slugs'\n", ""),
        (">>> from slugs import a\n>>> a()\n3\n", ">>> from solution import a\n>>> a()\n3\n"),
        ("$ python slugs.py --self-test\n", "$ python solution.py --self-test\n"),
        ("from slugs import (\n", ""),
    ],
)
def test_tests_may_call_the_file_by_its_name(tests: str, seen: str | None) -> None:
    if seen is None:
        seen = tests.replace("from slugs", "from solution")
    assert importing_solution(tests, "slugs") == (seen or tests)


@pytest.mark.parametrize("module", ["json", "solution", "no-name", ""])
def test_names_that_mean_something_else_stay(module: str) -> None:
    tests = f"import {module or 'x'}\n"
    assert importing_solution(tests, module) == tests


@pytest.mark.parametrize(
    ("original", "code", "kept"),
    [
        ("a\nb\n", "c\n", "c\n"),
        ("a\r\nb\r\n", "c\nd\r\n", "c\r\nd\r\n"),
        ("a\r\nb\n", "c\nd\n", "c\nd\n"),
        ("\ufeffa\n", "c\n", "\ufeffc\n"),
        ("\ufeffa", "\ufeffc\n", "\ufeffc\n"),
        ("a", "c\n", "c\n"),
    ],
)
def test_line_ends_and_the_byte_order_mark_stay_those_of_the_file(original: str, code: str, kept: str) -> None:
    assert in_style_of(original, code) == kept
