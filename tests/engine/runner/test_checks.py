"""What in a test file can fail, and what of it nothing would ever run."""

import ast

import pytest

from engine.runner import checks, forms

CAN_FAIL = [
    "assert f(1) == 2",
    "self.assertEqual(f(1), 2)",
    "with pytest.raises(ValueError): f(1)",
    "if f(1) != 2: raise ValueError",
    "if f(1) != 2: sys.exit(1)",
    "try:\n    f(1)\n    raise AssertionError\nexcept ValueError: pass",
    "sys.exit(1 if failed else 0)",
]
CANNOT_FAIL = [
    "assert True",
    "assert 'f(1) == 2'",
    "print(f(1) == 2)",
    "f(1) == 2",
    "sys.exit(0)",
    "raise",
    "if f(1) == 2: print('ok')",
]


@pytest.mark.parametrize("text", CAN_FAIL + CANNOT_FAIL)
def test_only_what_can_fail_counts_as_reached(text: str) -> None:
    assert checks.can_fail(ast.parse(text).body[0]) is (text in CAN_FAIL)


def test_a_condition_on_the_computer_alone_need_not_hold() -> None:
    assert not checks.holds_checks(ast.parse("if sys.version_info < (3, 8):\n    assert f(1)"))
    assert checks.holds_checks(ast.parse("if sys.version_info > f(0):\n    assert f(1)"))
    assert checks.holds_checks(ast.parse("if hasattr(solution, 'f'):\n    assert f(1)"))
    assert checks.holds_checks(ast.parse("if __name__ == '__main__':\n    assert f(1)"))


def test_who_calls_a_checker_is_one_however_far_away() -> None:
    text = "def a(): b()\ndef b(): c()\ndef c(): d()\ndef d(): assert f(1)\ndef e(): f(1)"
    assert checks.checkers_of(ast.parse(text)) == {"a", "b", "c", "d"}


MAY_DEFINE_TESTS = [
    "if x:\n    def test_a(): pass",
    "try:\n    class TestA: pass\nfinally: pass",
    "test_a = lambda: f(1)",
    "globals()['test_a'] = f",
    "setattr(module, 'test_a', f)",
    "TestA = Machine.TestCase",
    "class Adds(TC): pass",
    "from helpers import *",
    "from helpers import test_a",
]


@pytest.mark.parametrize("text", MAY_DEFINE_TESTS)
def test_pytest_is_asked_wherever_there_may_be_tests(text: str) -> None:
    assert forms.parse(f"{text}\nassert f(1)").listed


def test_pytest_is_not_asked_about_plain_asserts() -> None:
    assert not forms.parse("import math\ndef helper(x): return x\nassert f(helper(1)) == math.pi\n").listed


PASSED_OVER = {
    "def look(): assert f(1)\nassert f(2)": "nothing calls look (line 1)",
    "class Adds:\n    def go(self): assert f(1)\nassert f(2)": "nothing runs the class Adds (line 1)",
    "def a_test(): assert f(1)\ndef test_b(): assert f(2)": "nothing calls a_test (line 1)",
    "class AddTests:\n    def test_a(self): assert f(1)\ndef test_b(): assert f(2)": "nothing runs the class AddTests",
    "class TestA:\n    def __init__(self): pass\n    def test_a(self): assert f(1)\ndef test_b(): f(2)": "constructor",
    "def test_a(): assert f(1)\ndef test_a(): assert f(2)": "test_a is defined twice (lines 1 and 2)",
    "class TestA:\n    def test_a(self): assert f(1)\n    def test_a(self): assert f(2)": "test_a is defined twice",
    "class TestA:\n    def test_a(self): assert f(1)\n    def check_b(self): assert f(2)": "nothing calls check_b",
}
RUN = [
    "def look(): assert f(1)\nlook()",
    "def look(x): assert f(x)\nCHECKS = [look]\nfor check in CHECKS: check(1)",
    "class Adds:\n    def go(self): assert f(1)\nAdds().go()",
    "def helper(x): assert f(x)\ndef test_a(): helper(1)",
    "import pytest\n@pytest.fixture\ndef ready():\n    assert f(0)\ndef test_a(ready): assert f(1)",
    "class Case:\n    def __init__(self, x): self.x = x\ndef test_a(): assert f(Case(1))",
    "class TestA:\n    def setup_method(self): assert f(0)\n    def test_a(self): assert f(1)",
    "def look(): assert f(1)\nglobals()['look']()",
    "def spare(x): return x\nassert f(1)",
]


@pytest.mark.parametrize("text", PASSED_OVER)
def test_asserts_that_nothing_runs_are_named(text: str) -> None:
    source = forms.parse(text)
    assert PASSED_OVER[text] in checks.passed_over(source.tree, not source.checks)


@pytest.mark.parametrize("text", RUN)
def test_what_runs_in_a_roundabout_way_is_let_be(text: str) -> None:
    source = forms.parse(text)
    assert checks.passed_over(source.tree, not source.checks) == ""


def test_an_assert_on_a_pair_is_refused() -> None:
    with pytest.raises(forms.BrokenTests, match="the assert on line 2 is about a pair"):
        forms.parse("x = 1\nassert (f(x) == 2, 'wrong')")
