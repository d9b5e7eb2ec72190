"""A green mark means that tests ran and could have failed: in whatever way people write them.

A right candidate passes and a wrong one does not; where the tests cannot tell them apart, nobody passes and a sentence
says what to change.
"""

import pytest

from tests.engine.runner.conftest import Bench

pytestmark = pytest.mark.sandbox

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
RAISING = "def add(a, b):\n    raise ValueError('no')\n"
EMPTY = "\n"

TELLING = {
    "under try": (
        "from solution import add\ntry:\n    import nope\nexcept ImportError:\n    nope = None\ntry:\n"
        "    def test_a():\n        assert add(1, 2) == 3\nfinally:\n    pass\n"
    ),
    "under with": (
        "from solution import add\nimport contextlib\nwith contextlib.nullcontext():\n    def test_a():\n"
        "        assert add(1, 2) == 3\n"
    ),
    "under for": (
        "from solution import add\nfor x in (1, 2):\n    def test_a(x=x):\n        assert add(x, 2) == x + 2\n"
    ),
    "a lambda": "from solution import add\ndef chk(): assert add(1, 2) == 3\ntest_a = lambda: chk()\n",
    "a partial function": (
        "from solution import add\nfrom functools import partial\ndef chk(a, b, c):\n"
        "    assert add(a, b) == c\ntest_a = partial(chk, 1, 2, 3)\n"
    ),
    "another name": "from solution import add\ndef chk():\n    assert add(1, 2) == 3\ntest_a = chk\n",
    "setattr on the module": (
        "from solution import add\nimport sys\ndef chk():\n    assert add(1, 2) == 3\n"
        "setattr(sys.modules[__name__], 'test_a', chk)\n"
    ),
    "globals()": "from solution import add\ndef chk():\n    assert add(1, 2) == 3\nglobals()['test_a'] = chk\n",
    "a class made by a function": (
        "from solution import add\nimport unittest\ndef make():\n    class Case(unittest.TestCase):\n"
        "        def test_a(self):\n            self.assertEqual(add(1, 2), 3)\n    return Case\n"
        "TestA = make()\n"
    ),
    "load_tests": (
        "from solution import add\nimport unittest\ndef load_tests(loader, tests, pattern):\n"
        "    class C(unittest.TestCase):\n        def test_a(self):\n"
        "            self.assertEqual(add(1, 2), 3)\n    return loader.loadTestsFromTestCase(C)\n"
        "if __name__ == '__main__':\n    unittest.main()\n"
    ),
    "suite by hand": (
        "from solution import add\nimport unittest\nclass C(unittest.TestCase):\n    def test_a(self):\n"
        "        self.assertEqual(add(1, 2), 3)\nsuite = unittest.TestSuite()\n"
        "suite.addTest(C('test_a'))\nunittest.TextTestRunner().run(suite)\n"
    ),
    "suite in function": (
        "from solution import add\nimport unittest\ndef run():\n    class C(unittest.TestCase):\n"
        "        def test_a(self):\n            self.assertEqual(add(1, 2), 3)\n"
        "    suite = unittest.TestSuite()\n    suite.addTest(C('test_a'))\n"
        "    return unittest.TextTestRunner().run(suite)\nif __name__ == '__main__':\n    r = run()\n"
        "    print(r)\n"
    ),
    "decorator returns function": (
        "from solution import add\ndef deco(f):\n    def inner():\n        f()\n    return inner\n"
        "if True:\n    @deco\n    def test_a():\n        assert add(1, 2) == 3\n"
    ),
    "parametrize in if": (
        "from solution import add\nimport pytest, sys\nif sys.version_info > (3,):\n"
        "    @pytest.mark.parametrize('a, b, c', [(1, 2, 3), (0, 0, 0)])\n    def test_a(a, b, c):\n"
        "        assert add(a, b) == c\n"
    ),
    "main guard unittest": (
        "from solution import add\nimport unittest\nif __name__ == '__main__':\n"
        "    class T(unittest.TestCase):\n        def test_a(self):\n"
        "            self.assertEqual(add(1, 2), 3)\n    unittest.main()\n"
    ),
    "unguarded unittest.main exit=False": (
        "from solution import add\nimport unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n"
        "        self.assertEqual(add(1, 2), 3)\nunittest.main(argv=[''], exit=False)\n"
    ),
    "unguarded unittest.main": (
        "from solution import add\nimport unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n"
        "        self.assertEqual(add(1, 2), 3)\nunittest.main()\n"
    ),
    "main guard tests": (
        "from solution import add\nif __name__ == '__main__':\n    def test_a():\n"
        "        assert add(1, 2) == 3\n    test_a()\n    print('ok')\n"
    ),
    "pytest.main": (
        "from solution import add\nimport pytest, sys\ndef test_a():\n    assert add(1, 2) == 3\n"
        "if __name__ == '__main__':\n    sys.exit(pytest.main([__file__]))\n"
    ),
    "unguarded calls of tests": (
        "from solution import add\ndef test_a():\n    assert add(1, 2) == 3\ntest_a()\nprint('ok')\n"
    ),
    "helper with args named test": (
        "from solution import add\ndef test_case(a, b, c):\n    assert add(a, b) == c\n"
        "test_case(1, 2, 3)\ntest_case(0, 0, 0)\n"
    ),
    "helper with args and a test": (
        "from solution import add\ndef test_case(a, b, c):\n    assert add(a, b) == c\ndef test_all():\n"
        "    test_case(1, 2, 3)\n"
    ),
    "hasattr": "import solution\nif hasattr(solution, 'add'):\n    assert solution.add(1, 2) == 3\n",
    "hasattr in test": (
        "import solution\ndef test_a():\n    if hasattr(solution, 'add'):\n        assert solution.add(1, 2) == 3\n"
    ),
    "hasattr def": (
        "import solution\nif hasattr(solution, 'add'):\n    def test_a():\n        assert solution.add(1, 2) == 3\n"
    ),
    "import error skip": (
        "try:\n    from solution import add\nexcept ImportError:\n    add = None\ndef test_a():\n"
        "    if add:\n        assert add(1, 2) == 3\n"
    ),
    "try exception": (
        "from solution import add\ntry:\n    assert add(1, 2) == 3\n    print('ok')\n"
        "except Exception as e:\n    print('bad', e)\n"
    ),
    "try exception in test": (
        "from solution import add\ndef test_a():\n    try:\n        assert add(1, 2) == 3\n"
        "    except Exception as e:\n        print('bad', e)\n"
    ),
    "try bare except": (
        "from solution import add\ndef test_a():\n    try:\n        assert add(1, 2) == 3\n    except:\n"
        "        print('bad')\n"
    ),
    "suppress": (
        "from solution import add\nimport contextlib\ndef test_a():\n    with contextlib.suppress(AssertionError):\n"
        "        assert add(1, 2) == 3\n"
    ),
    "a group of errors": (
        "from solution import add\nimport asyncio\nasync def look():\n    assert add(1, 2) == 3\n"
        "async def every():\n    async with asyncio.TaskGroup() as group:\n        group.create_task(look())\n"
        "def test_a():\n    try:\n        asyncio.run(every())\n    except* AssertionError as errors:\n"
        "        print('bad', errors)\n"
    ),
    "match": (
        "from solution import add\ndef test_a():\n    match add(1, 2):\n        case total:\n"
        "            assert total == 3\n"
    ),
    "that it is false": "from solution import add\nassert not add(1, -1)\n",
    "bare exit when it is wrong": (
        "from solution import add\nimport sys\nif add(1, 2) != 3:\n    print('wrong')\n    sys.exit()\n"
    ),
    "subtests in a suite in a function": (
        "from solution import add\nimport unittest\ndef run():\n    class C(unittest.TestCase):\n"
        "        def test_a(self):\n            for n in (1, 2):\n                with self.subTest(n=n):\n"
        "                    self.assertEqual(add(n, 1), n + 1)\n"
        "    unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(C))\n"
        "if __name__ == '__main__':\n    run()\n"
    ),
    "docstring examples beside an assert": (
        'from solution import add\nimport doctest\ndef look():\n    """\n    >>> add(1, 2)\n    3\n    """\n'
        "doctest.run_docstring_examples(look, globals())\nassert add(0, 0) == 0\n"
    ),
    "finally return": (
        "from solution import add\ndef test_a():\n    try:\n        assert add(1, 2) == 3\n    finally:\n"
        "        return\n"
    ),
    "xfail": (
        "from solution import add\nimport pytest\n@pytest.mark.xfail\ndef test_a():\n    assert add(1, 2) == 3\n"
    ),
    "xfail beside a test": (
        "from solution import add\nimport pytest\n@pytest.mark.xfail(reason='later')\n"
        "def test_a():\n    assert add(1, 2) == 4\ndef test_b():\n    assert add(1, 2) == 3\n"
    ),
    "expected failure of unittest beside a test": (
        "import unittest\nfrom solution import add\nclass T(unittest.TestCase):\n    @unittest.expectedFailure\n"
        "    def test_a(self):\n        self.assertEqual(add(1, 2), 4)\n"
        "    def test_b(self):\n        self.assertEqual(add(1, 2), 3)\n"
    ),
    "counted exit": (
        "from solution import add\nimport sys\nfailed = 0\nfor a, b, c in [(1, 2, 3), (2, 2, 4)]:\n"
        "    if add(a, b) != c:\n        failed += 1\nprint(failed)\nsys.exit(1 if failed else 0)\n"
    ),
    "run_tests helper": (
        "from solution import add\ndef run_tests():\n    for a, b, c in [(1, 2, 3)]:\n        try:\n"
        "            assert add(a, b) == c\n            print('PASS')\n        except AssertionError:\n"
        "            print('FAIL')\nrun_tests()\n"
    ),
    "runner of functions": (
        "from solution import add\ndef run(name, f):\n    try:\n        f()\n"
        "        print('PASS', name)\n    except Exception as e:\n        print('FAIL', name, e)\n"
        "def case_add():\n    assert add(1, 2) == 3\nrun('add', case_add)\n"
    ),
    "expected exception": (
        "from solution import add\ndef test_a():\n    assert add(1, 2) == 3\n    try:\n"
        "        add(1, 'x')\n        assert False, 'no error'\n    except TypeError:\n        pass\n"
    ),
    "expected exception broad": (
        "from solution import add\ndef test_a():\n    assert add(1, 2) == 3\n    try:\n"
        "        add(1, 'x')\n        assert False, 'no error'\n    except Exception:\n        pass\n"
    ),
    "expected exception flag": (
        "from solution import add\ndef test_a():\n    assert add(1, 2) == 3\n    ok = False\n    try:\n"
        "        add(1, 'x')\n    except Exception:\n        ok = True\n    assert ok\n"
    ),
    "sys.exit(0) end": "from solution import add\nimport sys\nassert add(1, 2) == 3\nprint('ok')\nsys.exit(0)\n",
    "exit() end": "from solution import add\nassert add(1, 2) == 3\nprint('ok')\nexit()\n",
    "exit early": (
        "from solution import add\nimport sys\nif add(1, 2) != 3:\n    sys.exit(0)\nassert add(1, 2) == 3\n"
    ),
    "exit swallow": (
        "from solution import add\nimport sys\ntry:\n    if add(1, 2) != 3:\n        sys.exit(1)\n"
        "except SystemExit:\n    pass\n"
    ),
    "try star import": ("try:\n    from solution import *\nexcept ImportError:\n    raise\nassert add(1, 2) == 3\n"),
    "markdown": "Tests:\n\n```python\nfrom solution import add\nassert add(1, 2) == 3\n```\n",
    "stub": (
        'from typing import List\n\n\ndef add(a: int, b: int) -> int:\n    """ Add\n    >>> add(1, 2)\n'
        '    3\n    >>> add(-1, 1)\n    0\n    """\n'
    ),
    "doctest testmod main": (
        '"""\n>>> from solution import add\n>>> add(1, 2)\n3\n"""\nif __name__ == \'__main__\':\n'
        "    import doctest\n    doctest.testmod()\n"
    ),
    "check swallowed": (
        "def check(candidate):\n    try:\n        assert candidate(1, 2) == 3\n    except Exception:\n"
        "        print('x')\n"
    ),
}
# What is guarded against a candidate that lacks the function, or catches all that it raises.
GUARDED = [name for name in TELLING if name.startswith(("hasattr", "import error", "try", "finally", "run", "check"))]

NOT_TELLING = {
    "an object named like a test": (
        "from solution import add\nclass Case:\n    def __call__(self): assert add(1, 2) == 3\n"
        "test_a = Case()\ndef test_b(): assert add(0, 0) == 0\n"
    ),
    "empty list": "from solution import add\nfor a, b, c in []:\n    assert add(a, b) == c\n",
    "empty list mixed": (
        "from solution import add\nassert add(0, 0) == 0\nfor a, b, c in []:\n    assert add(a, b) == c\n"
    ),
    "if False": "from solution import add\nif False:\n    assert add(1, 2) == 3\n",
    "tuple": "from solution import add\nassert (add(1, 2) == 3, 'wrong')\n",
    "skipped all": (
        "from solution import add\nimport pytest\npytestmark = pytest.mark.skip(reason='x')\n"
        "def test_a():\n    assert add(1, 2) == 3\n"
    ),
    "counted": (
        "from solution import add\nok = 0\nfor a, b, c in [(1, 2, 3), (2, 2, 4)]:\n"
        "    if add(a, b) == c:\n        ok += 1\nprint(f'{ok}/2 passed')\n"
    ),
    "forgot assert": "from solution import add\ndef test_a():\n    add(1, 2) == 3\n",
    "returns bool": "from solution import add\ndef test_a():\n    return add(1, 2) == 3\n",
    "print only": "from solution import add\ndef test_a():\n    print(add(1, 2) == 3)\n",
    "defined twice": (
        "from solution import add\ndef test_a():\n    assert add(1, 2) == 3\ndef test_a():\n    assert add(0, 0) == 0\n"
    ),
    "nested test": (
        "from solution import add\ndef test_outer():\n    def test_inner():\n"
        "        assert add(1, 2) == 3\ndef test_zero():\n    assert add(0, 0) == 0\n"
    ),
    "generator tests": "from solution import add\ndef test_a():\n    yield lambda: 1\n",
    "check fn empty": "def check(candidate):\n    for x in []:\n        assert candidate(1, 2) == 3\n",
}


@pytest.mark.parametrize("name", TELLING)
def test_the_right_candidate_passes_and_the_wrong_one_does_not(name: str, bench: Bench) -> None:
    right = bench.run(RIGHT, TELLING[name], test_timeout_s=15.0, same_process=True)
    assert right.verdict == "pass", right
    wrong = bench.run(WRONG, TELLING[name], test_timeout_s=15.0, same_process=True)
    assert wrong.verdict == "fail", wrong
    assert wrong.why


@pytest.mark.parametrize("name", GUARDED)
def test_a_candidate_without_the_function_does_not_slip_through(name: str, bench: Bench) -> None:
    for candidate in (RAISING, EMPTY):
        assert bench.run(candidate, TELLING[name], test_timeout_s=15.0, same_process=True).verdict == "fail"


@pytest.mark.parametrize("name", NOT_TELLING)
def test_tests_that_cannot_tell_pass_nobody(name: str, bench: Bench) -> None:
    report = bench.run(RIGHT, NOT_TELLING[name], test_timeout_s=15.0, same_process=True)
    assert report.verdict in ("infra", "fail"), report
    assert any(words in report.why for words in SENTENCES), report.why


SENTENCES = (
    "Your tests cannot fail: ",
    "A part of your tests would not run: ",
    "Your tests hold no test: ",
    "Your tests skip every test",
    "Your tests do not load: ",
    "none of its checks was reached",
)


def test_the_sentence_says_what_keeps_every_test_from_running(bench: Bench) -> None:
    report = bench.run(RIGHT, NOT_TELLING["skipped all"])
    assert report.why == "Your tests skip every test; take the skip mark off one."


def test_the_sentence_says_which_assert_was_kept_quiet(bench: Bench) -> None:
    report = bench.run(WRONG, TELLING["run_tests helper"])
    assert report.why == (
        "line 9: line 5: assert -1 == 3\n +  where -1 = add(1, 2) (the tests catch it, which does not make it a pass)"
    )


def test_what_a_candidate_makes_of_a_test_while_it_runs_still_counts(bench: Bench) -> None:
    tests = "import pytest, solution\ndef test_a(): assert solution.add(1, 2) == 3\n"
    tests += (
        "def test_b():\n    if not hasattr(solution, 'sub'): pytest.xfail('none')\n    assert solution.sub(3, 2) == 1\n"
    )
    assert bench.run(RIGHT, tests).verdict == "fail"


def test_a_script_that_leaves_before_its_checks_has_not_passed_them(bench: Bench) -> None:
    report = bench.run(RIGHT, "import sys\nassert add(1, 2) == 3\nsys.exit(0)\nassert add(2, 2) == 4\n")
    assert [test.outcome for test in report.tests] == ["passed", "failed"]
    assert "the script ended before, with exit code 0" in report.why


@pytest.mark.parametrize("leaving", ["sys.exit(1)", "sys.exit('failed')", "sys.exit(True)", "exit(2)"])
def test_another_exit_code_is_no_good_end(leaving: str, bench: Bench) -> None:
    assert bench.run(RIGHT, f"import sys\nassert add(1, 2) == 3\n{leaving}\n").verdict == "fail"


def test_the_candidate_cannot_end_the_script_well(bench: Bench) -> None:
    leaving = "import sys\ndef add(a, b):\n    sys.exit(0)\n"
    for same_process in (False, True):
        tests = "import inspect\n" * same_process + "add(1, 2)\nassert add(1, 2) == 3\n"
        report = bench.run(leaving, tests, same_process=True)
        assert (report.verdict, report.mode) == ("fail", "in-process" if same_process else "split")


def test_smaller_tests_beside_others_may_need_no_candidate(bench: Bench) -> None:
    tests = "import pytest\ndef test_a(): assert add(1, 2) == 3\ndef test_b(): assert callable(add)\n"
    tests += "@pytest.mark.parametrize('n', [0, 2])\ndef test_c(n):\n    for i in range(n): assert add(i, 0) == i\n"
    report = bench.run(RIGHT, tests)
    assert report.verdict == "pass", report
    assert len(report.tests) == 4


def test_what_a_candidate_that_does_nothing_needs_is_not_asked_for_the_next_ones(bench: Bench) -> None:
    tests = "import pytest\nfrom solution import add\ndef test_a():\n    assert add(1, 2) == pytest.approx(3)\n"
    assert [bench.run(one, tests).verdict for one in (RIGHT, WRONG, RIGHT, WRONG)] == ["pass", "fail", "pass", "fail"]


def test_commands_and_examples_must_be_able_to_fail(bench: Bench) -> None:
    assert bench.run(RIGHT, "$ python solution.py\n", test_timeout_s=15.0).verdict == "pass"
    assert bench.run(RIGHT, "$ true\n").why.startswith("Your commands cannot fail")
    assert bench.run("import sys\n", "input:\n1\noutput:\n").why.startswith("Your tests want no output at all")


EXAMPLES = "input:\n2\n1 2\n3 4\noutput:\n3\n7\n"
PROGRAM = "n = int(input())\nfor _ in range(n):\n    print(sum(map(int, input().split())))\n"


@pytest.mark.parametrize(
    ("program", "verdict", "why"),
    [
        (PROGRAM, "pass", ""),
        (PROGRAM + "exit()\n", "pass", ""),
        (PROGRAM + "raise SystemExit(3)\n", "fail", "example 1: the candidate left with exit code 3"),
        (PROGRAM + "1 / 0\n", "fail", "example 1: ZeroDivisionError: division by zero (line 4 of the candidate)"),
        ("import os\nos.write(2, b'3\\n7\\n')\n", "fail", "example 1: other output than expected"),
    ],
)
def test_a_program_is_judged_by_what_it_prints_and_how_it_ends(
    program: str, verdict: str, why: str, bench: Bench
) -> None:
    report = bench.run(program, EXAMPLES, test_timeout_s=15.0)
    assert (report.verdict, report.mode) == (verdict, "split")
    assert report.why.startswith(why)


def test_names_in_strings_that_are_evaluated_are_the_candidate_s(bench: Bench) -> None:
    tests = "from solution import *\ndef test_a(): assert eval('add(1, 2)') == 3\n"
    assert bench.run(RIGHT, tests).verdict == "pass"
    assert bench.run(WRONG, tests).verdict == "fail"


def test_the_candidate_may_ask_who_it_runs_for_and_may_leave(bench: Bench) -> None:
    solution = "import getpass\ndef user():\n    return getpass.getuser()\ndef leave():\n    exit(2)\n"
    tests = "import pytest\nfrom solution import leave, user\nassert user() == 'user'\n"
    tests += "with pytest.raises(SystemExit) as info: leave()\nassert info.value.code == 2\n"
    assert bench.run(solution, tests).verdict == "pass"
