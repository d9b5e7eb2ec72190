"""How tests are read: what counts as one test, and which names come from the candidate."""

import pytest

from engine.runner import forms


def ids(text: str) -> list[str]:
    return [check.id for check in forms.parse(text).checks]


def test_each_top_level_check_of_a_script_is_one_test() -> None:
    text = """\
import math
assert f(1) == 1
x = f(2)
assert x == 2; assert x != 3
for i in range(3):
    assert f(i) == i
with open("x") as file: assert file
def check(g):
    assert g(1)
check(f)
math.fsum([1])
case.assertEqual(f(1), 1)
def later(): assert False
print("done")
"""
    assert ids(text) == ["line 2", "line 4", "line 4 #2", "line 5", "line 7", "line 10", "line 12"]


@pytest.mark.parametrize(
    ("end", "more"),
    [
        ("print('done')\nimport os\ndef later(): assert False\nx = 1", []),
        ("f(2)", ["rest of the script"]),
        ("try: f(2)\nexcept TypeError: pass", ["rest of the script"]),
        ("if f(2): raise SystemExit", ["rest of the script"]),
        ("class A: assert f(2)", ["rest of the script"]),
        ("@run\ndef a(): assert f(2)", ["rest of the script"]),
        ("with pytest.raises(TypeError): f(2)", ["line 2"]),
    ],
)
def test_what_follows_the_last_check_is_a_check_when_it_does_something(end: str, more: list[str]) -> None:
    assert ids(f"assert f(1) == 1\n{end}\n") == ["line 1", *more]


def test_a_script_that_checks_in_its_own_way_is_one_check() -> None:
    assert ids("if f(1) != 1: raise SystemExit") == ["the whole script"]
    assert ids("class T:\n    def go(self): assert f(1)\nT().go()") == ["the whole script"]


DOUBTS = [
    ("assert pow(2, 3) == 8", "def pow(x, n): return 42", True),
    ("assert pow(2, 3) == 8", "def power(x, n): return 42", True),
    ("from solution import *\nassert sorted([2, 1]) == [1, 2]", "def sorted(x): return x", True),
    ("assert f(1)\nassert pow(2, 3) == 8", "def f(x): return 1\ndef pow(x, n): return 42", True),
    ("assert f(1)\nassert pow(2, 3) == 8", "def f(x): return 1", False),
    ("assert all([f(1)])", "def f(x): return 1\ndef all(x): return True", False),
    ("from solution import pow\nassert pow(2, 3) == 8", "def pow(x, n): return 42", False),
    ("import importlib\nassert len(importlib.import_module('solution').x)", "x = [1]", False),
    ("def pow(x, n): return 8\nassert f(pow(2, 3)) == 8", "def pow(x, n): return 42", False),
]


@pytest.mark.parametrize(("tests", "solution", "doubtful"), DOUBTS)
def test_a_built_in_is_not_taken_for_the_candidate_s(tests: str, solution: str, doubtful: bool) -> None:
    assert bool(forms.doubt(tests, solution)) is doubtful


@pytest.mark.parametrize(
    "text",
    [
        "def test_f(): pass",
        "async def test_f(): pass",
        "class TestF: pass",
        "import unittest\nclass F(unittest.TestCase): pass",
        "assert f(1)\ndef test_f(): pass",
    ],
)
def test_a_file_with_test_functions_or_classes_is_for_pytest(text: str) -> None:
    assert forms.parse(text).checks == ()


def test_names_that_the_tests_use_but_do_not_define_are_borrowed() -> None:
    text = """\
import math
LIMIT = 3
def helper(x): return math.floor(x) + offset
class Double:
    def call(self): return Shape(self)
assert all(add(x, LIMIT) for x in [1])
assert [helper(y) for y in range(2)] and (lambda z: z + other)(1)
try: pass
except Exception as error: error
"""
    assert forms.parse(text).borrowed == ("Shape", "add", "offset", "other")


def test_a_file_that_imports_the_candidate_borrows_nothing() -> None:
    assert forms.parse("from solution import add\ndef test_a(): assert add(1, sub) == 1").borrowed == ()
    assert forms.parse("def test_a():\n    import solution\n    assert solution.add(1) == 1").borrowed == ()


def test_a_star_import_brings_only_the_names_that_are_used() -> None:
    source = forms.parse("from solution import *\nassert all([add(1, 2)])")
    assert source.borrowed == ("add",)
    assert [check.index for check in source.checks] == [1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("assert f(1) == 1\nassert f(2 == 2\n", "Your tests do not parse: line 2: '(' was never closed."),
        ("x = 1\n  y = 2", "Your tests do not parse: line 2: unexpected indent."),
        ("assert 1\0", "Your tests do not parse: source code string cannot contain null bytes."),
        ("", "Your tests hold no test: write top-level asserts, or functions named test_..."),
        (
            "# nothing\nprint('10 passed')",
            "Your tests hold no test: write top-level asserts, or functions named test_...",
        ),
        ("def f(): return 1", "Your tests hold no test: write top-level asserts, or functions named test_..."),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_words(text: str, sentence: str) -> None:
    with pytest.raises(forms.BrokenTests) as refused:
        forms.parse(text)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("text", ["-" * 100_000 + "1", "(" * 100_000, "[" * 500 + "]" * 500, "a" + ".b" * 200_000])
def test_text_that_is_too_deep_is_refused_not_fatal(text: str) -> None:
    with pytest.raises(forms.BrokenTests):
        forms.parse(f"assert {text}")
