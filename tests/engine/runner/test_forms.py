"""How tests are read: what counts as one test, and which names come from the candidate."""

import __future__

import pytest

from engine.runner import entry, forms


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
    assert bool(entry.doubt(forms.parse(tests), solution)) is doubtful


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


def test_functions_under_a_main_block_are_a_script_s() -> None:
    source = forms.parse("if __name__ == '__main__':\n    def test_a(): assert f(1)\n    test_a()\n")
    assert (source.form, source.listed) == (forms.SCRIPT, True)


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


@pytest.mark.parametrize(
    "text",
    [
        "assert f('g') == 'h'",  # nothing evaluates these strings
        "def begin():\n    global state\n    state = 1\nbegin()\nassert f(state)",
    ],
)
def test_what_is_no_name_of_the_candidate_s_is_not_borrowed(text: str) -> None:
    assert forms.parse(text).borrowed == ("f",)


def test_a_star_import_brings_only_the_names_that_are_used() -> None:
    source = forms.parse("from solution import *\nassert all([add(1, 2)])")
    assert source.borrowed == ("add",)
    assert [check.index for check in source.checks] == [1]


def test_a_star_import_may_stand_under_another_statement() -> None:
    for text in ("try:\n    {}\nexcept ImportError:\n    raise", "if 1:\n    pass\nelse:\n    {}"):
        source = forms.parse(text.format("from solution import *") + "\nassert add(1, 2)")
        assert source.borrowed == ("add",)


ONLY_VALUES = (
    "Your tests say what goes in and what comes out, but not in Python: write a line such as assert add(2, 3) == 5 for "
    "each, or, for a program, input: and output: on lines of their own with the text below them."
)


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
        ("Input: nums = [2, 7], target = 9\nOutput: [0, 1]\n", ONLY_VALUES),
        ("add(1, 2) -> 3\nadd(2, 2) -> 4\n", ONLY_VALUES),
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


TWO = ["example 1", "example 2"]
OTHER_FORMS = [
    ("def check(candidate):\n    assert candidate(1)\n", forms.CHECK, ["check(candidate)"]),
    ("def check(candidate):\n    assert candidate(1)\ncheck(f)\n", forms.SCRIPT, ["line 3"]),
    (">>> f(1)\n2\n>>> x = 3\n>>> f(x)\n4\n", forms.DOCTEST, ["line 1", "line 4"]),
    ("Some words.\n\n    >>> f(1)\n    2\n", forms.DOCTEST, ["line 3"]),
    ('"""\n>>> f(1)\n2\n"""\n', forms.DOCTEST, ["line 2"]),
    ("# two\ninput:\n1\noutput:\n2\nInput:\n\noutput:\n", forms.EXAMPLES, ["example 1", "example 2"]),
    ("Sample Input 1:\n1\nSample Output 1:\n2\n\nSample Input 2\n3\nSample Output 2\n4\n", forms.EXAMPLES, TWO),
    ("Input 1:\n1\nOutput 1:\n2\nExample input\n3\nExample output\n4\n", forms.EXAMPLES, TWO),
    ("# how\n$ python solution.py\n\n$ true\n", forms.COMMAND, ["python solution.py", "true"]),
]


@pytest.mark.parametrize(("text", "form", "names"), OTHER_FORMS)
def test_every_form_is_recognized(text: str, form: str, names: list[str]) -> None:
    assert forms.parse(text).form == form
    assert ids(text) == names


def test_what_a_doctest_uses_is_borrowed_and_an_example_is_kept_byte_for_byte() -> None:
    assert forms.parse(">>> f(len([g]))\n2\n").borrowed == ("f", "g")
    assert forms.parse("input:\n 1 \n\noutput:\n2").examples == (forms.Example(" 1 \n\n", "2"),)


def test_a_word_that_a_program_prints_begins_no_section() -> None:
    assert forms.parse("input:\n1\noutput:\nInput 1\noutput\n").examples == (forms.Example("1\n", "Input 1\noutput\n"),)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("input:\n1\n", "Every section input: needs one section output: after it."),
        ("$ true\nassert f(1)\n", "Every line of a list of commands begins with a dollar sign; this one does not: ass"),
        (">>> f(1)\n", "Your doctest says nowhere what should come out; write it below the line with >>>."),
        ("#" * (5 << 20), "Your tests are longer than 4 million characters; keep them shorter."),
    ],
)
def test_other_forms_are_refused_in_words(text: str, sentence: str) -> None:
    with pytest.raises(forms.BrokenTests) as refused:
        forms.parse(text)
    assert str(refused.value).startswith(sentence)


def test_what_comes_from_the_future_is_kept() -> None:
    assert forms.parse("from __future__ import annotations\nassert f(1)\n").future != 0
    both = forms.parse("from __future__ import annotations\nfrom __future__ import division\nassert f(1)\n").future
    assert both == __future__.annotations.compiler_flag | __future__.division.compiler_flag
    assert forms.parse("assert f(1)\n").future == 0


@pytest.mark.parametrize(
    ("solution", "name"),
    [
        ("def f(x): return x", "f"),
        ("def f(x): return g(x)\ndef g(x): return x", "f"),
        ("import os\ndef g(x): return x\ndef f(x): return f(g(x))", "f"),
        ("def f(:", ""),
    ],
)
def test_the_function_to_check_is_the_one_that_the_others_do_not_call(solution: str, name: str) -> None:
    assert entry.entry_point(solution) == name


def test_where_there_is_no_telling_the_tests_must_say_it() -> None:
    with pytest.raises(forms.BrokenTests, match="Add a last line such as"):
        entry.entry_point("def f(x): return x\ndef g(x): return x")
