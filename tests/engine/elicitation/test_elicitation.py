"""Candidates of every kind in their boxes: what is seen of them, what is asked, and what is said if nothing is."""

import pytest

from engine.elicitation.answers import with_answer
from engine.elicitation.elicitation import Elicitation, Solution
from engine.elicitation.suggestions import read
from engine.elicitation.target import NothingToAsk
from engine.runner.protocol import Observed
from tests.engine.elicitation.conftest import Boxes

pytestmark = pytest.mark.sandbox

MERGE = "Write merge(intervals), which merges intervals that overlap, as in merge([[1, 3], [2, 6]]) -> [[1, 6]]."
RIGHT = (
    "def merge(xs):\n    out = []\n    for a, b in sorted(xs):\n        if out and a <= out[-1][1]:\n"
    "            out[-1][1] = max(b, out[-1][1])\n        else:\n            out.append([a, b])\n    return out\n"
)
STRICT = RIGHT.replace("a <= out", "a < out")
TUPLES = "def merge(xs):\n    return sorted(tuple(x) for x in xs)\n"


def same_code(code: str, number: int) -> str:
    return f"{code}# {number}\n"


def test_answers_leave_the_candidates_that_are_meant_and_become_tests(boxes: Boxes) -> None:
    codes = [same_code(STRICT, 1), same_code(STRICT, 2), RIGHT, same_code(RIGHT, 1), TUPLES]
    elicitation, tests = boxes.compare(MERGE, *codes), ""
    assert [s.group for n, s in sorted(elicitation.standings().items())] == [(1, 2), (1, 2), (3, 4), (3, 4), (5,)]
    asked = 0
    while (question := elicitation.question()) is not None:
        asked += 1
        at = next(i for i, choice in enumerate(question.choices) if 3 in choice.reply.members)
        answer = elicitation.choose(question, at)
        tests = with_answer(tests, answer)
        elicitation.keep(question, answer)
    assert 1 <= asked <= 2
    assert sorted(elicitation.open) == [3, 4]
    best = max(elicitation.standings().items(), key=lambda item: item[1].key)[0]
    assert best in (3, 4)
    assert boxes.report(RIGHT, tests).verdict == "pass"
    assert boxes.report(STRICT, tests).verdict == "fail"
    record = elicitation.record()
    assert record["groups"] == [[1, 2], [3, 4], [5]]
    assert len(record["answers"]) == asked
    assert record["splitting_inputs"]
    assert elicitation.sentence == "2 candidates are left, and nothing more to ask: they agree on what can be asked."


def test_candidates_that_are_all_equal_raise_no_question(boxes: Boxes) -> None:
    elicitation = boxes.compare(MERGE, RIGHT, same_code(RIGHT, 1))
    assert elicitation.question() is None
    assert elicitation.sentence == f"All agree on {len(elicitation.inputs)} inputs."
    assert len(elicitation.inputs) == 40


def test_an_answer_that_no_candidate_gives_leaves_none_and_is_still_a_test(boxes: Boxes) -> None:
    elicitation = boxes.compare(MERGE, STRICT, TUPLES)
    question = elicitation.question()
    assert question is not None
    answer = elicitation.another(question, "[[-7, 7]]")
    elicitation.keep(question, answer)
    assert elicitation.open == {}
    assert elicitation.question() is None
    assert elicitation.sentence.startswith("No candidate gives what you said is right")
    assert boxes.report(STRICT, with_answer("", answer)).verdict == "fail"
    for nonsense in ("", "foo", "open('x')", "[1,"):
        with pytest.raises(ValueError, match="Write a value"):
            elicitation.another(question, nonsense)
    assert elicitation.another(question, "ValueError").errors == ("ValueError",)


def test_what_does_not_matter_is_kept_and_not_asked_again(boxes: Boxes) -> None:
    elicitation = boxes.compare(MERGE, STRICT, RIGHT)
    asked = set()
    while (question := elicitation.question()) is not None:
        assert question.at not in asked
        asked.add(question.at)
        elicitation.keep(question, None)
    assert asked
    assert sorted(elicitation.open) == [1, 2]


def test_what_the_prompt_itself_says_is_not_asked_and_orders_the_candidates(boxes: Boxes) -> None:
    elicitation = boxes.compare(MERGE, TUPLES, same_code(TUPLES, 1), RIGHT)
    standings = elicitation.standings()
    assert [standings[n].examples for n in (1, 2, 3)] == [(0, 1), (0, 1), (1, 1)]
    assert max(standings, key=lambda number: standings[number].key) == 3
    question = elicitation.question()
    assert question is None or question.given.text != "merge([[1, 3], [2, 6]])"


F = "Write f(x), as in f(3)."


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("while True: pass", "does not end in time"),
        ("import time; time.sleep(60)", "does not end in time"),
        ("while True: print('x' * 1000)", "prints without end"),
        ("import sys\n    while True: sys.stderr.write('x' * 1000)", "prints without end"),
        ("import os; os._exit(0)", "ends the process"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ends the process"),
        ("import sys; sys.exit(0)", "raises SystemExit"),
        ("return f(x)", "raises RecursionError"),
        ("return [0] * 10**11", "raises MemoryError"),
        ("return 'x' * 10**7", "a very large str"),
        ("raise KeyboardInterrupt", "raises KeyboardInterrupt"),
        ("return input()", "raises EOFError"),
        ("class E(Exception):\n        def __str__(self): raise ValueError\n    raise E", "raises E"),
        ("return {3, 1, 2}", "{1, 2, 3}"),
        ("return float('nan')", "nan"),
        ("import datetime; return datetime.date(2024, 1, 2)", "datetime.date(2024, 1, 2)"),
        ("return (i for i in range(3))", "[0, 1, 2]"),
        ("import itertools; return itertools.repeat(7)", ", ".join(["[7", *["7"] * 19, "...]"])),
        ("def g():\n        yield 1\n        while True: pass\n    return g()", "does not end in time"),
        ("class A:\n        def __repr__(self): return '[1]'\n    return A()", "[1]"),
        ("async def g(): return x\n    return g()", "3"),
    ],
)
def test_whatever_a_candidate_does_is_an_outcome(boxes: Boxes, body: str, words: str) -> None:
    seen = boxes.outcomes(F, f"def f(x):\n    {body}\n")
    assert seen["f(3)"].words == words


def test_a_candidate_that_hangs_on_one_input_is_seen_on_the_others(boxes: Boxes) -> None:
    prompt = "Write f(x): f(1), f(2), f(3), f(4)."
    seen = boxes.outcomes(prompt, "def f(x):\n    if x == 2:\n        while True: pass\n    return x * 10\n")
    assert [seen[f"f({n})"].words for n in (1, 2, 3, 4)] == ["10", "does not end in time", "30", "40"]


@pytest.mark.parametrize(
    "body",
    [
        "import random; return random.random()",
        "return list({'a', 'b', 'c', 'd', 'e', 'f'})",
        "import uuid; return str(uuid.uuid4())",
        "import time; return time.time_ns()",
        "import os; return os.getpid()",
        "f.count = getattr(f, 'count', 0) + 1; return f.count",
        "return hash('text')",
    ],
)
def test_what_changes_from_run_to_run_is_said_and_not_asked_about(boxes: Boxes, body: str) -> None:
    code = f"def f(x):\n    {body}\n"
    elicitation = boxes.compare("Write f(x): f(1), f(2), f(3).", code, same_code(code, 1))
    assert elicitation.candidates[1].outcomes[1].unstable
    assert elicitation.question() is None
    assert (
        elicitation.sentence
        == "The candidates give something else each time they are called, so there is nothing to ask."
    )


def test_a_changed_argument_is_a_result(boxes: Boxes) -> None:
    prompt = "Write sort(xs), which sorts a list in place, as in sort([3, 1, 2])."
    up = "def sort(xs):\n    xs.sort()\n"
    down = "def sort(xs):\n    xs.sort(reverse=True)\n"
    elicitation = boxes.compare(prompt, up, down)
    question = elicitation.question()
    assert question is not None
    assert "changes its argument to" in question.choices[0].text
    at = next(i for i, choice in enumerate(question.choices) if choice.reply.members == (1,))
    tests = with_answer("", elicitation.choose(question, at))
    assert boxes.report(up, tests).verdict == "pass"
    assert boxes.report(down, tests).verdict == "fail"
    seen = boxes.outcomes(prompt, "def sort(xs):\n    xs.sort()\n    return xs\n")["sort([3, 1, 2])"]
    assert seen.words == "[1, 2, 3] and changes its argument"


def test_candidates_that_give_nothing_at_all_are_said_to(boxes: Boxes) -> None:
    elicitation = boxes.compare(F, "def f(x):\n    pass\n", "def f(x):\n    y = x\n")
    assert elicitation.question() is None
    assert elicitation.sentence == (
        "The candidates return nothing, print nothing and change no argument, so there is nothing to ask."
    )


def test_candidates_that_give_only_objects_are_said_to(boxes: Boxes) -> None:
    code = "class A:\n    pass\n\n\ndef f(x):\n    return A()\n"
    elicitation = boxes.compare(F, code, same_code(code, 1))
    assert elicitation.question() is None
    assert elicitation.sentence.startswith("The results are objects that cannot be compared")


def test_candidates_that_never_end_are_said_to(boxes: Boxes) -> None:
    elicitation = boxes.compare(F, "def f(x):\n    while True: pass\n", "def f(x):\n    while 1: pass\n")
    assert elicitation.question() is None
    assert elicitation.sentence == "No candidate gives a result on any input, so there is nothing to ask."


def test_one_that_cannot_be_imported_is_one_group_beside_the_others(boxes: Boxes) -> None:
    elicitation = boxes.compare(F, "import nowhere\n\n\ndef f(x):\n    return x\n", "def f(x):\n    return x\n")
    assert elicitation.candidates[1].outcomes[0].words == "cannot be imported"
    assert [s.group for _, s in sorted(elicitation.standings().items())] == [(1,), (2,)]
    assert max(elicitation.standings(), key=lambda n: elicitation.standings()[n].key) == 2


def test_classes_are_compared_by_short_sequences_of_calls(boxes: Boxes) -> None:
    lifo = (
        "class Box:\n    def __init__(self):\n        self.items = []\n"
        "    def put(self, x):\n        self.items.append(x)\n    def take(self):\n        return self.items.pop()\n"
    )
    fifo = lifo.replace("pop()", "pop(0)")
    elicitation = boxes.compare("Write a class Box with put(x) and take().", lifo, fifo)
    question = elicitation.question()
    assert question is not None
    assert question.given.calls[0].name == "Box"
    assert question.given.calls[-1].name == "take"
    at = next(i for i, choice in enumerate(question.choices) if choice.reply.members == (2,))
    tests = with_answer("", elicitation.choose(question, at))
    assert boxes.report(fifo, tests).verdict == "pass"
    assert boxes.report(lifo, tests).verdict == "fail"


def test_programs_are_compared_by_what_they_print(boxes: Boxes) -> None:
    prompt = "Read two numbers from standard input and print their sum.\n\nInput:\n3 4\nOutput:\n7\n"
    right, wrong = (
        "a, b = map(int, input().split())\nprint(a + b)\n",
        "a, b = map(int, input().split())\nprint(a + abs(b))\n",
    )
    elicitation = boxes.compare(prompt, right, wrong)
    question = elicitation.question()
    assert question is not None
    assert question.given.is_program
    at = next(i for i, choice in enumerate(question.choices) if choice.reply.members == (1,))
    tests = with_answer("", elicitation.choose(question, at))
    assert boxes.report(right, tests).verdict == "pass"
    assert boxes.report(wrong, tests).verdict == "fail"


def test_arguments_that_tests_make_of_imports_are_made_in_the_box(boxes: Boxes) -> None:
    tests = "import datetime\nassert f(datetime.date(2024, 5, 6)) == 5\n"
    elicitation = boxes.compare("f", "def f(d):\n    return d.month\n", "def f(d):\n    return d.day\n", tests=tests)
    assert [c.outcomes[0].words for _, c in sorted(elicitation.candidates.items())] == ["5", "6"]


def test_numpy_results_are_compared_and_written(boxes: Boxes) -> None:
    pytest.importorskip("numpy")
    one = "import numpy as np\n\n\ndef f(xs):\n    return np.array(xs) * 2\n"
    elicitation = boxes.compare("Write f(xs): f([1, 2]).", one, one.replace("* 2", "* 3"))
    question = elicitation.question()
    assert question is not None
    answer = elicitation.choose(question, 0)
    right = one if 1 in question.choices[0].reply.members else one.replace("* 2", "* 3")
    report = boxes.report(right, with_answer("", answer))
    assert report.verdict == "pass", report.why


def test_suggested_tests_order_candidates_by_agreement(boxes: Boxes) -> None:
    texts = ["assert merge([[1, 2], [2, 3]]) == [[1, 3]]\nassert merge([[5, 6]]) == [[0, 0]]\nassert merge([]) == []\n"]
    first = Elicitation(MERGE, "", {1: Solution(STRICT), 2: Solution(RIGHT)})
    suggested = read(texts, first.target)
    assert len(suggested) == 3
    elicitation = boxes.observed(Elicitation(MERGE, "", first.solutions, suggested=suggested))
    offered = [(r.suggestion.given.text, r.members) for r in elicitation.offered()]
    assert offered == [("merge([])", (1, 2)), ("merge([[1, 2], [2, 3]])", (2,))]
    standings = elicitation.standings()
    assert [standings[n].suggested for n in (1, 2)] == [(1, 2), (2, 2)]


def test_calls_that_an_answer_shows_are_inputs() -> None:
    text = "```python\ndef f(x):\n    return x\n```\nUse it as\n\n```python\nprint(f('shown'))\nf(open('no'))\n```\n"
    elicitation = Elicitation("Write f.", "", {1: Solution("def f(x):\n    return x\n", text=text)})
    assert elicitation.inputs[0].text == "f('shown')"
    assert not any("open" in given.text for given in elicitation.inputs)


def test_a_runner_that_cannot_run_anything_is_the_reason() -> None:
    elicitation = Elicitation(F, "", {1: Solution("def f(x): return x"), 2: Solution("def f(x): return 1")})
    for request in elicitation.requests("r"):
        elicitation.take(Observed(request.id, (), "Running code is switched off."))
    assert elicitation.question() is None
    assert elicitation.sentence == "The candidates could not be run to compare them: Running code is switched off."


@pytest.mark.parametrize(
    "outcome", ["", "{}", "[]", "nonsense", '{"kind": "value", "changed": 3}', '{"kind": "x"}', "1"]
)
def test_whatever_a_box_says_is_taken_without_a_fault(outcome: str) -> None:
    elicitation = Elicitation(F, "", {1: Solution("def f(x): return x"), 2: Solution("def f(x): return 1")})
    for request in elicitation.requests("r"):
        elicitation.take(Observed(request.id, (outcome,) * len(request.inputs)))
    assert elicitation.question() is None
    assert elicitation.sentence
    assert elicitation.record()["inputs"] == len(elicitation.inputs)


def test_code_that_is_no_python_has_nothing_to_ask() -> None:
    with pytest.raises(NothingToAsk, match="nothing to call"):
        Elicitation("Write SQL.", "", {1: Solution("SELECT 1;")})
    with pytest.raises(NothingToAsk):
        Elicitation("Write f.", "", {})
