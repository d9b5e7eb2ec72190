"""Honest candidates: the right verdict, the right outcome told apart from its neighbours, and what a person reads."""

from collections.abc import Sequence

import pytest

from tests.engine.runner.conftest import Bench

pytestmark = pytest.mark.sandbox

ADD = "def add(a, b):\n    return a + b\n"

LEGITIMATE: dict[str, tuple[str, str, int]] = {
    "bare asserts with statements between": (
        ADD,
        "total = add(1, 2)\nassert total == 3\ntotal = add(total, 1)\nassert total == 4\nfor i in range(3):\n"
        "    assert add(i, 1) == i + 1\n",
        3,
    ),
    "a check function": (ADD, "def check(candidate):\n    assert candidate(1, 2) == 3\ncheck(add)\n", 1),
    "a script with a main block": (ADD, 'if __name__ == "__main__":\n    assert add(1, 1) == 2\n', 1),
    "bare asserts that import": (ADD, "from solution import add as plus\nassert plus(1, 1) == 2\n", 1),
    "a star import": (ADD, "from solution import *\nassert add(1, 1) == 2\n", 1),
    "the module itself": (ADD, "import solution\n\ndef test_a():\n    assert solution.add(1, 2) == 3\n", 1),
    "names without an import": (ADD, "def test_a():\n    assert add(1, 2) == 3\n", 1),
    "fixtures and parametrize": (
        ADD,
        "import pytest\nfrom solution import add\n@pytest.fixture\ndef one():\n    yield 1\n"
        "@pytest.mark.parametrize(('b', 'sum'), [(1, 2), (2, 3), pytest.param(3, 4, id='three')])\n"
        "def test_a(one, b, sum):\n    assert add(one, b) == sum\n",
        3,
    ),
    "a parametrized module": (
        ADD,
        "import pytest\npytestmark = pytest.mark.parametrize('x', [1, 2])\ndef test_a(x):\n    assert add(x, 0) == x\n",
        2,
    ),
    "raises, approx, warns": (
        "import warnings\ndef half(x):\n    if x < 0: raise ValueError('negative')\n"
        "    warnings.warn('old', DeprecationWarning)\n    return x / 2\n",
        "import pytest\nfrom solution import half\ndef test_raises():\n"
        "    with pytest.raises(ValueError, match='neg'):\n"
        "        half(-1)\ndef test_approx():\n    with pytest.warns(DeprecationWarning):\n"
        "        assert half(0.2) == pytest.approx(0.1)\n",
        2,
    ),
    "tmp_path, monkeypatch and capsys": (
        "import os\ndef save(path, text):\n    path.write_text(text)\n    print('saved', os.environ.get('NAME'))\n",
        "from solution import save\ndef test_save(tmp_path, capsys, monkeypatch):\n"
        "    monkeypatch.setenv('NAME', 'n')\n"
        "    save(tmp_path / 'f', 'x')\n    assert (tmp_path / 'f').read_text() == 'x'\n"
        "    assert capsys.readouterr().out == 'saved n\\n'\n",
        1,
    ),
    "classes, and a class as a base": (
        "class Stack(list):\n    def push(self, x): self.append(x)\nclass Full(Exception): pass\n",
        "import solution\nfrom solution import Full, Stack\nclass Loud(Stack):\n"
        "    def shout(self): return len(self) * '!'\n"
        "EMPTY = Stack()\nclass TestStack:\n    def setup_method(self): self.stack = Loud()\n"
        "    def test_push(self):\n        self.stack.push(1)\n"
        "        assert self.stack == [1] and self.stack.shout() == '!'\n"
        "    def test_empty(self): assert not EMPTY and issubclass(Full, Exception)\n",
        2,
    ),
    "unittest": (
        ADD,
        "import unittest\nfrom solution import add\nclass T(unittest.TestCase):\n"
        "    def test_a(self):\n        for i in (1, 2):\n            with self.subTest(i=i):\n"
        "                self.assertEqual(add(i, i), 2 * i)\nif __name__ == '__main__':\n    unittest.main()\n",
        1,
    ),
    "unicode": ("def größe(s):\n    return len(s)\n", "assert größe('äöü🎈') == 4\nassert größe('日本') == 2\n", 2),
    "BOM and CRLF on both sides": (
        "\ufeff" + ADD.replace("\n", "\r\n"),
        "\ufefffrom solution import add\r\n\r\ndef test_a():\r\n    assert add(1, 2) == 3\r\n",
        1,
    ),
    "a dataclass": (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    x: int\n    y: int = 0\n",
        "from __future__ import annotations\nassert P(1) == P(1, 0)\nassert repr(P(1)) == 'P(x=1, y=0)'\n",
        2,
    ),
    "threads and processes": (
        "from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor\ndef double(x):\n    return 2 * x\n"
        "def both():\n    with ThreadPoolExecutor(2) as t, ProcessPoolExecutor(1) as p:\n"
        "        return list(t.map(double, [1])) + list(p.map(double, [2]))\n",
        "assert both() == [2, 4]\n",
        1,
    ),
    "text that reads its own source": (ADD, "import inspect\nassert inspect.getsource(add).startswith('def add')\n", 1),
}


TOGETHER = {
    "classes, and a class as a base",
    "text that reads its own source",
    "tmp_path, monkeypatch and capsys",
}
BY_ITS_OWN_EQ = {"a dataclass"}


@pytest.mark.parametrize("name", LEGITIMATE)
def test_an_honest_candidate_passes(name: str, bench: Bench) -> None:
    solution, tests, count = LEGITIMATE[name]
    report = bench.run(solution, tests, test_timeout_s=10.0, same_process=True)
    assert report.verdict == ("pass-soft" if name in BY_ITS_OWN_EQ else "pass"), report
    assert bool(report.why) == (name in BY_ITS_OWN_EQ)
    assert report.mode == ("in-process" if name in TOGETHER else "split")
    assert [test.outcome for test in report.tests] == ["passed"] * count
    assert report.isolation.keys() == {"files", "network", "memory", "processes", "verdict"}
    assert report.peak_mib is not None
    assert 5 < report.peak_mib < 500


ROMAN = 'assert to_int("III") == 3\nassert to_int("LVIII") == 58\nassert to_int("MCMXCIV") == 1994\n'
ROMAN_WRONG = (
    "VALUES = dict(I=1, V=5, X=10, L=50, C=100, D=500, M=1000)\ndef to_int(s):\n    return sum(VALUES[c] for c in s)\n"
)


def test_the_first_failing_assert_is_shown_with_its_values(bench: Bench) -> None:
    report = bench.run(ROMAN_WRONG, ROMAN)
    assert report.verdict == "fail"
    assert [(t.id, t.outcome) for t in report.tests] == [
        ("line 1", "passed"),
        ("line 2", "passed"),
        ("line 3", "failed"),
    ]
    assert report.why == "line 3: assert 2216 == 1994\n +  where 2216 = to_int('MCMXCIV')"


CASES: dict[str, tuple[str, str, Sequence[str], str]] = {
    "syntax error": (
        "def add(a, b)\n    return 1\n",
        "assert add(1, 2) == 3",
        ["error"],
        "SyntaxError: expected ':' (line 1",
    ),
    "import error": (
        "import nowhere_at_all\n" + ADD,
        "assert add(1, 2) == 3",
        ["error"],
        "No module named 'nowhere_at_all'",
    ),
    "raises at import": (
        "x = 1\n1 / 0\n",
        "assert add(1, 2) == 3",
        ["error"],
        "division by zero (line 2 of the candidate)",
    ),
    "reads input at import": ("name = input()\n" + ADD, "assert add(1, 2) == 3", ["error"], "EOFError"),
    "missing name": (
        "def plus(a, b): return 3\n",
        "from solution import add\ndef test_a(): assert add(1, 2) == 3\n",
        ["error"],
        "ImportError: cannot import name 'add': the candidate does not define it (line 1 of the tests)",
    ),
    "missing name of a bare assert": ("x = 1\n", "assert add(1, 2) == 3", ["error"], "name 'add' is not defined"),
    "assertion": (ADD, "assert add(1, 2) == 4", ["failed"], "assert 3 == 4\n +  where 3 = add(1, 2)"),
    "assertion of its own": (
        "def add(a, b):\n    assert a > b\n",
        "assert add(1, 2) == 3",
        ["error"],
        "AssertionError (line 2 of the candidate)",
    ),
    "exception": (
        "def add(a, b):\n    return a + None\n",
        "assert add(1, 2) == 3",
        ["error"],
        "TypeError: unsupported operand type(s) for +: 'int' and 'NoneType' (line 2 of the candidate)",
    ),
    "no exception": (
        ADD,
        "import pytest\ndef test_a():\n    with pytest.raises(ValueError): add(1, 2)\n",
        ["failed"],
        "DID NOT RAISE",
    ),
    "killed": (
        "import os, signal\ndef add(a, b):\n    os.kill(os.getpid(), signal.SIGKILL)\n",
        "assert add(1, 2) == 3",
        ["killed"],
        "The candidate ended the process.",
    ),
    "a message that cannot be shown": (
        "class Odd(Exception):\n    def __str__(self): raise self\ndef add(a, b): raise Odd\n",
        "assert add(1, 2) == 3",
        ["error"],
        "(its message cannot be shown)",
    ),
    "keyboard interrupt": (
        "def add(a, b): raise KeyboardInterrupt\n",
        "assert add(1, 2) == 3",
        ["killed"],
        "ended the test run",
    ),
    "skipped while running": (
        ADD,
        "import pytest\ndef test_a(): assert add(1, 2) == 3\ndef test_b(): pytest.skip('later')\n",
        ["passed", "skipped"],
        "1 test was skipped while running (test_b: later): that is not a pass.",
    ),
    "xfail by the tests": (
        ADD,
        "import pytest\n@pytest.mark.xfail\ndef test_a(): assert add(1, 2) == 4\n",
        ["skipped"],
        "take the mark off",
    ),
    "unexpected pass": (
        ADD,
        "import pytest\n@pytest.mark.xfail(strict=True)\ndef test_a(): assert add(1, 2) == 3\n",
        ["failed"],
        "XPASS",
    ),
    "a failing fixture": (
        ADD,
        "import pytest\n@pytest.fixture\ndef f():\n    yield 1\n    1 / 0\ndef test_a(f): assert add(1, 2) == 3\n",
        ["error"],
        "ZeroDivisionError: division by zero (line 5 of the tests)",
    ),
    "an assert beside test functions": (
        ADD,
        "from solution import add\nassert add(1, 2) == 4\ndef test_a(): assert add(1, 2) == 3\n",
        ["error"],
        "assert 3 == 4",
    ),
    "a failing subtest": (
        ADD,
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        for i in (1, 2):\n"
        "            with self.subTest(i=i): self.assertEqual(add(i, 1), 2)\n",
        ["failed"],
        "3 != 2",
    ),
    "control characters": (
        "def add(a, b): raise ValueError('\\x1b[32m10 passed\\x1b[0m \\u202edessap\\x07')\n",
        "assert add(1, 2) == 3",
        ["error"],
        "ValueError: 10 passed dessap (line 1",
    ),
    "a candidate's own all": (
        "def all(x): return True\ndef add(a, b): return 0\n",
        "from solution import *\nassert all([add(1, 2) == 3])\n",
        ["failed"],
        "assert False\n +  where False = all([False])",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_ways_to_fail_are_told_apart(name: str, bench: Bench) -> None:
    solution, tests, outcomes, words = CASES[name]
    report = bench.run(solution, tests, test_timeout_s=10.0)
    assert report.verdict == "fail", report
    assert [test.outcome for test in report.tests] == outcomes
    assert words in report.why
    assert not set(report.why) & set("\x1b\u202e\x07")


GO_ON = {
    "raises": "import pytest\nassert add(1, 2) == 3\nwith pytest.raises(TypeError): add(1, 2)\n",
    "try": "assert add(1, 2) == 3\ntry:\n    add('a', 'b')\n    raise AssertionError\nexcept TypeError: pass\n",
    "SystemExit": "assert add(1, 2) == 3\nif add(2, 2) != 5: raise SystemExit\n",
    "asyncio": "import asyncio\nassert add(1, 2) == 3\nasync def main(): assert add(1, 1) == 3\nasyncio.run(main())\n",
    "a helper's helper": "def check(f): assert f(1, 1) == 3\ndef run(f): check(f)\nassert add(1, 2) == 3\nrun(add)\n",
    "another name": "def check(f): assert f(1, 1) == 3\nrun = check\nrun(add)\n",
    "a method": "class T:\n    def go(self): assert add(1, 1) == 3\nT().go()\n",
}


@pytest.mark.parametrize("name", GO_ON)
def test_a_script_runs_to_its_end(name: str, bench: Bench) -> None:
    report = bench.run(ADD, GO_ON[name], test_timeout_s=10.0, same_process=True)
    assert report.verdict == "fail", report
    assert report.tests[-1].outcome in ("failed", "error")


def test_a_candidate_named_like_a_built_in_is_tested_or_nothing_is_said(bench: Bench) -> None:
    solution = "def pow(x, n): return 42\n"
    report = bench.run(solution, "assert pow(2, 3) == 8\n")
    assert report.verdict == "infra"
    assert report.why == (
        "Your tests use the builtin pow, which the candidate also defines; "
        "write `from solution import pow` to test the candidate's."
    )
    assert bench.run(solution, "from solution import pow\nassert pow(2, 3) == 8\n").verdict == "fail"


MADE_OF = {
    "a function": ("", "@pytest.mark.parametrize('f', [solution.add, max])\ndef test_a(f): assert f(1, 2) in (2, 3)\n"),
    "enum members": (
        "import enum\nclass C(enum.Enum): RED = 1; BLUE = 2\n",
        "@pytest.mark.parametrize('c', [solution.C.RED, solution.C.BLUE])\ndef test_a(c): assert c.value\n",
    ),
    "exceptions": (
        "class Full(Exception): pass\n",
        "@pytest.mark.parametrize('e', [solution.Full, ValueError])\ndef test_a(e): assert e()\n",
    ),
    "constants": ("N = 7\n", "@pytest.mark.parametrize('n', [solution.N, 7])\ndef test_a(n): assert n == 7\n"),
    "fixtures": (
        "class A: pass\nclass B: pass\n",
        "@pytest.fixture(params=[solution.A, solution.B])\ndef k(request): return request.param\n"
        "def test_a(k): assert k()\n",
    ),
    "chance": (
        "",
        "import random\n@pytest.mark.parametrize('n', [random.random() for _ in range(2)])\n"
        "def test_a(n): assert solution.add(n, 0) == n\n",
    ),
    "the same names": (
        "",
        "@pytest.mark.parametrize('y', ['c', 'b-c'])\n@pytest.mark.parametrize('x', ['a-b', 'a'])\n"
        "def test_a(x, y): assert solution.add(x, y) == x + y\n",
    ),
}


@pytest.mark.parametrize("name", MADE_OF)
def test_parameters_may_be_the_candidate_s_or_made_by_chance(name: str, bench: Bench) -> None:
    solution, tests = MADE_OF[name]
    report = bench.run(ADD + solution, "import pytest\nimport solution\n" + tests, test_timeout_s=10.0)
    assert report.verdict == "pass", report
    assert len(report.tests) == (4 if name == "the same names" else 2)


def test_parametrized_tests_are_shown_as_pytest_calls_them(bench: Bench) -> None:
    tests = "import pytest\n@pytest.mark.parametrize('n', [1, 'x'])\ndef test_a(n): assert add(1, 2) == 4\n"
    report = bench.run(ADD, tests)
    assert [test.id for test in report.tests] == ["test_a[1]", "test_a[x]"]
    assert report.why.startswith("test_a[1]: ")


def test_async_tests_that_nothing_here_can_run_are_no_candidate_s_fault(bench: Bench) -> None:
    report = bench.run(ADD, "async def test_a(): assert add(1, 2) == 3\n")
    assert report.verdict == "infra"
    assert report.why == (
        "Your tests do not load: pytest here cannot run async tests; "
        "call asyncio.run in them, or choose an environment with pytest-asyncio."
    )


def test_a_test_that_hangs_is_marked_and_the_others_go_on(bench: Bench) -> None:
    solution = "def f(x):\n    while x == 2: pass\n    return x\n"
    tests = "n = 1\nassert f(n) == 1\nn += 1\nassert f(n) == 2\nn += 1\nassert f(n) == 3\nassert f(4) == 5\n"
    report = bench.run(solution, tests, test_timeout_s=0.5)
    assert [t.outcome for t in report.tests] == ["passed", "timeout", "passed", "failed"]
    assert report.why == "line 4: It took longer than 0.5 s."
    assert report.tests[1].seconds == pytest.approx(0.5, abs=0.4)


LISTS_THE_CANDIDATE = "from solution import N\nimport pytest\n@pytest.mark.parametrize('x', N)\ndef test_a(x): pass\n"
LISTS_IN_A_CLASS = (
    "import pytest\nimport solution\nclass TestA:\n"
    "    @pytest.mark.parametrize('y', solution.N)\n    def test_a(self, y): pass\n"
)
SKIPS = {
    "skip": "@pytest.mark.skip(reason='later')\ndef test_b(): assert 0\n",
    "skipif": "@pytest.mark.skipif(sys.platform != 'beos', reason='later')\ndef test_b(): assert 0\n",
    "unittest": "class T(unittest.TestCase):\n    @unittest.skip('later')\n    def test_b(self): assert 0\n",
}


@pytest.mark.parametrize("how", SKIPS)
def test_what_the_file_itself_skips_does_not_count(how: str, bench: Bench) -> None:
    tests = "import sys, unittest\nimport pytest\n" + SKIPS[how]
    kept = "def test_a(): assert add(1, 2) == 3\n"
    report = bench.run(ADD, tests + kept)
    assert report.verdict == "pass", report
    assert sorted((t.outcome, t.why) for t in report.tests) == [("passed", ""), ("skipped", "later")]
    assert bench.run("def add(a, b): return 0\n", tests + kept).verdict == "fail"
    assert bench.run(ADD, tests).why == "Your tests skip every test; take the skip mark off one."


def test_an_autouse_fixture_that_skips_is_not_tampering(bench: Bench) -> None:
    tests = (
        "import pytest, inspect\n@pytest.fixture(autouse=True)\ndef f(): pytest.skip('no')\ndef test_a(): add(1, 2)\n"
    )
    report = bench.run(ADD, tests, same_process=True)
    assert (report.verdict, report.mode) == ("fail", "in-process")
    assert report.why == "1 test was skipped while running (test_a: no): that is not a pass."


def test_all_the_time_used_up_is_said_plainly(bench: Bench) -> None:
    slow = "import time\ndef add(a, b):\n    time.sleep(1)\n    return a + b\n"
    report = bench.run(slow, "\n".join(["assert add(1, 2) == 3"] * 4), total_timeout_s=2.7)
    assert report.verdict == "fail"
    assert [t.outcome for t in report.tests] == ["passed", "passed", "timeout", "timeout"]
    assert report.why == "line 3: The time for this candidate was used up."


BROKEN_TESTS = {
    "assert add(1, 2 == 3\n": "Your tests do not parse: line 1: '(' was never closed.",
    "import nowhere_at_all\ndef test_a(): pass\n": "Your tests do not load: ModuleNotFoundError",
    LISTS_THE_CANDIDATE: "Your tests do not load: TypeError: a value of the candidate is needed to list the tests",
    "import os\nos._exit(0)\ndef test_a(): pass\n": "Your tests end the process while they are being loaded.",
    LISTS_IN_A_CLASS: ("Your tests do not load: TypeError: a value of the candidate is needed to list the tests"),
    "class TestNothing:\n    pass\n": "Your tests hold no test: write top-level asserts, or functions named test_...",
    "def test_a(no_such_fixture): pass\nprint(": "Your tests do not parse: line 2",
}


@pytest.mark.parametrize("name", ["my_module", "app.calculator"])
def test_a_module_that_is_not_there_is_told_what_to_do_about(name: str, bench: Bench) -> None:
    report = bench.run(ADD, f"from {name} import add\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    assert report.verdict == "infra"
    assert f"if {name.partition('.')[0]} stands for the candidate's code, import solution instead" in report.why


@pytest.mark.parametrize("tests", BROKEN_TESTS)
def test_a_broken_test_file_is_no_candidate_s_fault(tests: str, bench: Bench) -> None:
    report = bench.run(ADD, tests)
    assert report.verdict == "infra"
    assert report.why.startswith(BROKEN_TESTS[tests])
    assert report.tests == ()


def test_what_is_printed_is_kept_up_to_a_limit_and_counted_in_full(bench: Bench) -> None:
    report = bench.run("def add(a, b):\n    print('é' * 500_000)\n    return a + b\n", "assert add(1, 2) == 3")
    assert report.verdict == "pass"
    assert report.output_bytes == 1_000_001
    assert report.output == "é" * 32768


def test_two_runs_see_the_same_world(bench: Bench) -> None:
    seen = "hash('a'), sorted(os.environ.items()), os.getcwd(), sys.path"
    solution = f"import os, sys\ndef world():\n    print({seen})\n    return 1\n"
    first, second = (bench.run(solution, "assert world() == 1") for _ in range(2))
    assert first.output == second.output
    assert "('TZ', 'UTC')" in first.output


def test_the_candidate_is_written_byte_for_byte(bench: Bench) -> None:
    solution = "\ufefftext = '\tNBSP\xa0 LS\u2028 RLM\u200f'  \r\ndef f():\r\n\treturn open(__file__, 'rb').read()"
    report = bench.run(solution, f"assert f() == {solution.encode()!r}\n")
    assert report.verdict == "pass", report.why


def test_annotations_from_the_future_hold_in_a_script(bench: Bench) -> None:
    tests = "from __future__ import annotations\ndef twice(x: Nowhere): return 2 * add(x, 0)\nassert twice(2) == 4\n"
    assert bench.run(ADD, tests).verdict == "pass"


def test_classes_of_the_tests_can_be_pickled(bench: Bench) -> None:
    tests = (
        "import pickle\nfrom solution import add\nclass P:\n    x = 1\n"
        "def test_a():\n    assert pickle.loads(pickle.dumps(P())).x == add(0, 1)\n"
    )
    assert bench.run(ADD, tests, same_process=True).verdict == "pass"


SELF_MADE = {
    "its own ==": "class Y:\n    def __eq__(s, o): return True\ndef add(a, b): return Y()\n",
    "the caller's source": "import linecache, sys, re\ndef add(a, b):\n    f = sys._getframe(1)\n"
    "    return int(re.findall(r'== (\\d+)', linecache.getline(f.f_code.co_filename, f.f_lineno))[0])\n",
}


@pytest.mark.parametrize("how", SELF_MADE)
def test_in_one_process_a_cheat_gets_through_and_the_verdict_says_that_it_could(how: str, bench: Bench) -> None:
    tests = "from solution import add\ndef test_a(monkeypatch):\n    assert add(1, 2) == 3\n"
    report = bench.run(SELF_MADE[how], tests, same_process=True)
    assert (report.verdict, report.mode, report.weak[-1]) == ("pass", "in-process", "verdict")
    assert "a candidate written to cheat could fake this" in report.isolation["verdict"]


def test_a_command_s_exit_code_decides_and_is_labelled(bench: Bench) -> None:
    command = "$ python -c 'import solution as s; "
    tests = f"{command}print(s.add(1, 2))'\n{command}assert s.add(1, 2) == 4'\n"
    report = bench.run(ADD, tests)
    assert (report.verdict, report.mode, report.output) == ("fail", "command", "3\n" + report.output.partition("\n")[2])
    assert [t.outcome for t in report.tests] == ["passed", "failed"]
    assert report.why.endswith("exit code 1: AssertionError")
    assert "exit code" in report.isolation["verdict"]


HANDED_OVER = {
    "the module os": "import os as x\n",
    "a Connection": "import sqlite3\nx = sqlite3.connect(':memory:')\n",
    "an Element": "import xml.etree.ElementTree as E\nx = E.fromstring('<a/>')\n",
    "a value is nested more than 100 deep": "x = ()\nfor _ in range(300): x = (x,)\n",
    "more than 16 MiB": "x = bytes(20 << 20)\n",
}


@pytest.mark.parametrize("name", HANDED_OVER)
def test_what_cannot_leave_the_tests_process_is_asked_for_and_then_works(name: str, bench: Bench) -> None:
    tests = HANDED_OVER[name] + "from solution import add\ndef test_a():\n    assert add(x, 2) == 3\n"
    right = "def add(a, b): return 3\n"
    assert name in bench.asks(right, tests)
    report = bench.run(right, tests, same_process=True)
    assert (report.verdict, report.mode) == ("pass", "in-process")
    assert bench.run("def add(a, b): return 4\n", tests, same_process=True).verdict == "fail"


def test_the_agreement_counts_also_where_the_reason_comes_out_on_the_way(own_bench: Bench) -> None:
    tests = "import queue\nfrom solution import add\ndef test_a():\n    assert add(queue.Queue(), 2) == 3\n"
    report = own_bench.run("def add(a, b): return 3\n", tests, same_process=True, consent=True)
    assert (report.verdict, report.mode) == ("pass", "in-process")


LIBRARY = """
import time
from solution import add
def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
def test_own_time():
    for _ in range(4): busy(0.4); assert add(1, 2) == 3
def test_the_candidate():
    assert add(3, 4) == 7
"""


def test_a_limit_is_about_the_candidate_and_not_about_the_tests(bench: Bench) -> None:
    slow = "import time\ndef add(a, b):\n    if a == 3: time.sleep(9)\n    return a + b\n"
    report = bench.run(slow, LIBRARY, test_timeout_s=1.0)
    assert [t.outcome for t in report.tests] == ["passed", "timeout"]
    assert report.tests[1].why == "It took longer than 1 s."
    assert bench.run(ADD, LIBRARY, test_timeout_s=1.0).verdict == "pass"


def test_a_test_that_hangs_by_itself_ends_too(bench: Bench) -> None:
    tests = "from solution import add\ndef test_a():\n    add(1, 2)\n    while True: pass\n"
    report = bench.run(ADD, tests, test_timeout_s=0.2, total_timeout_s=20.0)
    assert [t.outcome for t in report.tests] == ["timeout"]
