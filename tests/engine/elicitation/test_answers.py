"""An answer as a test: in the form of the tests that are there, and judged by the runner as it should be."""

import pytest

from engine.elicitation.answers import Answer, NotWritable, form_of, with_answer
from engine.elicitation.inputs import Call, Input
from engine.elicitation.outcomes import Outcome
from engine.runner.encoding import encode
from tests.engine.elicitation.conftest import Boxes, raised, value

GIVEN = Input.of_call("f", ["[2, 1]"])
TESTS = {
    "bare": "assert f([]) is not f\n",
    "pytest": "from solution import f\n\n\ndef test_that_it_is_there():\n    assert f([]) is not f\n",
    "unittest": "import unittest\n\nfrom solution import f\n\n\nclass FTest(unittest.TestCase):\n"
    "    def test_it(self):\n        self.assertIsNot(f([]), f)\n\n\nif __name__ == '__main__':\n    unittest.main()\n",
    "doctest": ">>> f([]) is f\nFalse\n",
    "check": "def check(candidate):\n    assert candidate([]) is not candidate\n",
}


def function(body: str) -> str:
    return f"def f(xs):\n    if not xs:\n        return 0\n{body}"


def given_back(result: object) -> Answer:
    return Answer(GIVEN, value(result))


@pytest.mark.parametrize("form", TESTS)
def test_the_form_is_that_of_the_tests(form: str) -> None:
    assert form_of(TESTS[form]) == form
    assert form_of("") == form_of("this is not python") == "bare"
    assert form_of("input:\n1\noutput:\n2\n") == "examples"


# What is right, a body that does it, and one that does not.
CASES = {
    "a value": (given_back([[1, 5]]), "    return [[1, 5]]\n", "    return [[1, 4]]\n"),
    "a float": (given_back(0.3), "    return 0.1 + 0.2\n", "    return 0.31\n"),
    "floats": (given_back([0.3, 2.0]), "    return [0.1 + 0.2, 2]\n", "    return [0.3, 2.1]\n"),
    "not a number": (given_back(float("nan")), "    return float('nan')\n", "    return 1.0\n"),
    "nothing": (given_back(None), "    return None\n", "    return 0\n"),
    "a truth": (given_back(True), "    return True\n", "    return False\n"),
    "text": (given_back("a'\nb"), '    return "a\'\\nb"\n', "    return 'a'\n"),
    "a set": (given_back({"b", "a"}), "    return {'a', 'b'}\n", "    return {'a'}\n"),
    "a large number": (given_back(2**90), "    return 2**90\n", "    return 2**90 + 1\n"),
    "a dict of lists": (given_back({"a": [1]}), "    return {'a': [1]}\n", "    return {'a': [2]}\n"),
    "an iterator": (
        Answer(GIVEN, Outcome("value", encode(iter([1, 2])))),
        "    return iter([1, 2])\n",
        "    return iter([1])\n",
    ),
    "an error": (
        Answer(GIVEN, raised("ValueError"), ("ValueError",)),
        "    raise ValueError('no: 3')\n",
        "    return 3\n",
    ),
    "a changed argument": (
        Answer(GIVEN, Outcome("value", None, ((0, ["list", 1, 2]),))),
        "    xs.sort()\n",
        "    return None\n",
    ),
    "print": (Answer(GIVEN, Outcome("value", None, printed="a\n\nb\n")), "    print('a\\n\\nb')\n", "    print('a')\n"),
}


def answers_of_all(form: str) -> tuple[str, str, str]:
    """Tests with an answer for every case, each about a function of its own; code that is right; code that is wrong."""
    tests, right, wrong = TESTS.get(form, ""), [function("")], [function("")]
    for number, (answer, body, other) in enumerate(CASES.values()):
        name = f"f{number}"
        given = Input.of_call(name, answer.given.calls[0].arguments)
        tests = with_answer(tests, Answer(given, answer.outcome, answer.errors))
        right.append(function(body).replace("def f(", f"def {name}("))
        wrong.append(function(other).replace("def f(", f"def {name}("))
    return (
        tests.replace("import f\n", "*\n") if form in ("pytest", "unittest") else tests,
        "\n".join(right),
        "\n".join(wrong),
    )


@pytest.mark.sandbox
@pytest.mark.parametrize("form", ["none", "bare", "pytest", "unittest", "doctest"])
def test_answers_judge_candidates_in_every_form(boxes: Boxes, form: str) -> None:
    tests, right, wrong = answers_of_all(form)
    tests = tests.replace("from solution *", "from solution import *")
    for line in TESTS.get(form, "").splitlines():
        assert line in tests.splitlines() or "import f" in line
    report = boxes.report(right, tests)
    assert report.verdict == "pass", (report.why, tests)
    against = boxes.report(wrong, tests)
    assert against.verdict == "fail", tests
    assert against.failed == len(CASES), [(test.id, test.outcome) for test in against.tests]


@pytest.mark.sandbox
@pytest.mark.parametrize("case", ["a value", "a float", "an error", "a changed argument"])
def test_answers_judge_candidates_in_a_check_function(boxes: Boxes, case: str) -> None:
    answer, right, wrong = CASES[case]
    tests = with_answer(TESTS["check"], answer)
    assert form_of(tests) == "check"
    report = boxes.report(function(right), tests)
    assert report.verdict == "pass", (report.why, tests)
    assert boxes.report(function(wrong), tests).verdict == "fail", tests


@pytest.mark.sandbox
def test_one_of_several_errors_is_right_and_one_of_the_candidates_own_is_any(boxes: Boxes) -> None:
    several = with_answer("", Answer(GIVEN, raised("ValueError"), ("TypeError", "ValueError")))
    assert "pytest.raises((TypeError, ValueError))" in several
    assert boxes.report(function("    raise TypeError\n"), several).verdict == "pass"
    own = with_answer("", Answer(GIVEN, raised("Mine"), ()))
    assert boxes.report("class Mine(Exception):\n    pass\n\n\n" + function("    raise Mine\n"), own).verdict == "pass"
    with pytest.raises(NotWritable, match="several kinds"):
        with_answer(TESTS["doctest"], Answer(GIVEN, raised("ValueError"), ("TypeError", "ValueError")))


@pytest.mark.sandbox
def test_a_sequence_of_calls_is_written_line_by_line(boxes: Boxes) -> None:
    given = Input((Call("Stack", ("3",)), Call("push", ("1",)), Call("pop")))
    code = "class Stack:\n    def __init__(self, n):\n        self.items = []\n    def push(self, x):\n"
    code += "        self.items.append(x)\n    def pop(self):\n        return self.items.pop()\n"
    tests = with_answer("", Answer(given, value(1)))
    assert tests == "stack = Stack(3)\nstack.push(1)\nassert stack.pop() == 1\n"
    assert boxes.report(code, tests).verdict == "pass"
    for form in (
        ">>> Stack(1).push(2)\n>>> Stack is None\nFalse\n",
        "def test_x():\n    assert Stack(1).push(1) is None\n",
    ):
        both = with_answer(form, Answer(given, value(1)))
        report = boxes.report(code, both)
        assert report.verdict == "pass", (report.why, both)


@pytest.mark.sandbox
def test_what_a_program_prints_becomes_input_and_output(boxes: Boxes) -> None:
    given = Input(given="3\n")
    tests = with_answer("", Answer(given, Outcome("output", printed="6\n")))
    assert tests == "input:\n3\noutput:\n6\n"
    more = with_answer(tests, Answer(Input(given="4"), Outcome("output", printed="8\n")))
    assert more == "input:\n3\noutput:\n6\ninput:\n4\noutput:\n8\n"
    assert boxes.report("print(int(input()) * 2)\n", more).verdict == "pass"
    assert boxes.report("print(int(input()) + 3)\n", more).verdict == "fail"


@pytest.mark.parametrize(
    ("tests", "answer"),
    [
        ("", Answer(GIVEN, Outcome("value", ["opaque", "Node", "<Node>", []]))),
        ("input:\n1\noutput:\n2\n", given_back(1)),
        ("assert f(1) == 2\n", Answer(Input(given="3\n"), Outcome("output", printed="6"))),
        ("", Answer(Input(given="3\n"), raised("ValueError"))),
    ],
)
def test_what_cannot_be_written_in_this_form_is_a_sentence(tests: str, answer: Answer) -> None:
    with pytest.raises(NotWritable, match=r"\.$"):
        with_answer(tests, answer)


@pytest.mark.parametrize(
    "tests",
    [
        '"""My tests."""\nfrom __future__ import annotations\nassert f([]) == 0\n',
        "import pytest\nassert f([]) == 0\n",
        "# mine",
    ],
)
def test_imports_go_where_they_may_stand_and_only_once(tests: str) -> None:
    more = with_answer(tests, given_back(0.5))
    compile(more, "tests", "exec")
    assert more.count("import pytest") == 1
    assert with_answer(more, given_back(0.5)).count("import pytest") == 1


def test_names_of_tests_are_free() -> None:
    once = with_answer(TESTS["pytest"], given_back(1))
    twice = with_answer(once, given_back(2))
    assert "def test_f_1" in twice
    assert "def test_f_2" in twice
