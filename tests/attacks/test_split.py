"""Attacks on the split itself: on the pipe, the mirrors, callbacks, generators and exceptions. None may pass.

Each candidate is wrong. *pass-soft* is an unconfirmed pass: it is never picked.
"""

from dataclasses import dataclass
from textwrap import dedent

import pytest

from tests.engine.runner.conftest import Bench

pytestmark = pytest.mark.sandbox

ADD = "from solution import add\ndef test_add():\n    assert add(1, 2) == 3\n"
ANYTHING = (
    "import pytest\nfrom solution import add\ndef test_add():\n    with pytest.raises(BaseException): add(1, 2)\n"
)
# What the candidate's own process speaks with: it may change all of it.
SPEAKS = """
import gc
import sys
from engine.runner.split import candidate, link, values
me = next(o for o in gc.get_objects() if type(o) is candidate.CandidateLink)
def asked():
    frame = sys._getframe()
    while "message" not in frame.f_locals: frame = frame.f_back
    return frame.f_locals["message"]["ask"]
"""


@dataclass(frozen=True)
class Attack:
    solution: str
    tests: str = ADD
    verdict: str = "fail"
    why: str = ""


def wire(value: str, tests: str = ADD, verdict: str = "tampered", why: str = "Tampered: the candidate sent ") -> Attack:
    """A candidate that answers every question with ``value`` as it stands, whatever it should mean."""
    lie = f"me.put = lambda value, letter, depth=0: {value}\n    return 0\n"
    return Attack(SPEAKS + f"def add(a, b):\n    {lie}", tests, verdict, why)


def raw(data: str, verdict: str = "tampered", why: str = "Tampered: the candidate sent ") -> Attack:
    """A candidate that writes ``data`` into the pipe of its answers."""
    return Attack(
        SPEAKS + f"import os\ndef add(a, b):\n    os.write(me._sink, {data})\n    return 0\n", ADD, verdict, why
    )


SAYS_YES = """
class Yes({base}):
    def {name}(self, *rest): return {value}
    __hash__ = lambda self: 3
def add(a, b): return Yes({content})
"""


def says_yes(base: str, name: str, value: str, content: str, tests: str) -> Attack:
    solution = SAYS_YES.format(base=base, name=name, value=value, content=content)
    return Attack(solution, f"from solution import add\ndef test_add():\n    {tests}\n", "pass-soft", "its own class")


CALLBACK = "from solution import add\nWANTED = 3\ndef test_add():\n    assert add(1, 2, {}) == WANTED\n"

ATTACKS = {
    # Comparisons that the candidate would like to decide.
    "an int that equals everything": says_yes("int", "__eq__", "True", "7", "assert add(1, 2) == 3"),
    "a str that equals everything": says_yes("str", "__eq__", "True", "'x'", "assert 'yes' == add(1, 2)"),
    "a tuple that equals everything": says_yes("tuple", "__eq__", "True", "(7,)", "assert (1, 2) == add(1, 2)"),
    "never different": says_yes("", "__ne__", "False", "", "assert not add(1, 2) != 3"),
    "less than everything": says_yes("", "__lt__", "True", "", "assert add(1, 2) < 4"),
    "no distance to anything": says_yes("", "__sub__", "0.0", "", "assert abs(add(1, 2) - 3) < 1e-9"),
    "no distance from anything": says_yes("", "__rsub__", "0.0", "", "assert abs(3 - add(1, 2)) < 1e-9"),
    "contains everything": says_yes("", "__contains__", "True", "", "assert 3 in add(1, 2)"),
    "found in every set": says_yes("", "__eq__", "True", "", "assert add(1, 2) in {3}"),
    "equal inside a list": says_yes("", "__eq__", "True", "", "assert [add(1, 2)] == [3]"),
    "a common part with everything": says_yes("", "__and__", "rest[0]", "", "assert add(1, 2) & {3} == {3}"),
    "equal while the file is loaded": Attack(
        SAYS_YES.format(base="", name="__eq__", value="True", content=""),
        "from solution import add\nRIGHT = add(1, 2) == 3\ndef test_add(): assert RIGHT is True\n",
        "pass-soft",
    ),
    "equal in a fixture": Attack(
        SAYS_YES.format(base="", name="__eq__", value="True", content=""),
        "import pytest\nfrom solution import add\n@pytest.fixture(scope='module')\ndef right(): return add(1, 2) == 3\n"
        "def test_add(right): assert right is True\ndef test_more(right): assert right is True\n",
        "pass-soft",
    ),
    # Exceptions that mean something to the tests' side.
    "skips by unittest's exception": Attack(
        "import unittest\ndef add(a, b): raise unittest.SkipTest('no')", why="SkipTest"
    ),
    "skips by pytest's exception": Attack("import pytest\ndef add(a, b): pytest.skip('no')"),
    "a class of its own called Skipped": Attack(
        "class Skipped(BaseException): pass\nSkipped.__module__ = '_pytest.outcomes'\ndef add(a, b): raise Skipped",
        why="Skipped",
    ),
    "an interrupt": Attack("def add(a, b): raise KeyboardInterrupt"),
    "a debugger that quits": Attack("import bdb\ndef add(a, b): raise bdb.BdbQuit"),
    "leaves with 0": Attack("def add(a, b): raise SystemExit(0)"),
    "an assertion of its own": Attack("def add(a, b): raise AssertionError('assert 3 == 3')", why="of the candidate"),
    "ends where anything may be raised": Attack(
        "import os\ndef add(a, b): os._exit(0)",
        ANYTHING,
        why="The candidate ended the process.",
    ),
    "talks nonsense where anything may be raised": Attack(
        SPEAKS + "import os\ndef add(a, b): os.write(me._sink, b'nonsense\\n')",
        ANYTHING,
        "tampered",
    ),
    # Callbacks and objects of the tests: what they lead to.
    "through a callback's globals": Attack(
        """
        def add(a, b, f):
            for name in ("__globals__", "func_globals", "__code__", "__closure__", "__builtins__", "__self__"):
                try: getattr(f, name)["WANTED"] = 0
                except Exception as error: print(repr(error))
            return 0
        """,
        CALLBACK.format("lambda x: x"),
    ),
    "through a callback's globals, asked by hand": Attack(
        SPEAKS
        + """
def add(a, b, f):
    for name in ("__getattribute__", "__reduce_ex__", "__init_subclass__", "__class__"):
        for given in (("__globals__",), (2,)):
            try: me.ask("operator", name, f, given, ())["WANTED"] = 0
            except Exception as error: print(repr(error))
    for op in ("import", "script", "seed", "eval"):
        try: me.ask(op, f)
        except Exception as error: print(repr(error))
    return 0
""",
        CALLBACK.format("lambda x: x"),
    ),
    "through a generator's frame": Attack(
        """
        def add(a, b, g):
            for name in ("gi_frame", "gi_code", "gi_yieldfrom"):
                try: getattr(g, name).f_globals["WANTED"] = 0
                except Exception as error: print(repr(error))
            return 0
        """,
        CALLBACK.format("(i for i in range(3))"),
    ),
    "a mock that no longer objects": Attack(
        """
        def add(a, b, m):
            for name in ("assert_called_with", "side_effect", "mock_calls", "call_count"):
                try: setattr(m, name, lambda *rest, **more: None)
                except Exception as error: print(repr(error))
        """,
        "from unittest.mock import Mock\nfrom solution import add\ndef test_add():\n    m = Mock()\n    add(1, 2, m)\n"
        "    m.assert_called_with(3)\n",
    ),
    "a helper of the tests that always agrees": Attack(
        """
        def add(a, b, judge):
            for name in ("right", "__call__", "__eq__", "__class__"):
                for target in (judge, type(judge)):
                    try: setattr(target, name, lambda *rest: True)
                    except Exception as error: print(repr(error))
            return 0
        """,
        "from solution import add\nclass Judge:\n    def right(self, x): return x == 3\n"
        "def test_add():\n    judge = Judge()\n"
        "    assert judge.right(add(1, 2, judge))\n",
    ),
    "a callback that calls itself for ever": Attack(
        "def add(a, b, f): return f(f)",
        "from solution import add\ndef test_add():\n    def f(g): return add(1, 2, g)\n    assert add(1, 2, f) == 3\n",
        why="RecursionError",
    ),
    "ends in a callback": Attack(
        "import os\nclass Bye:\n    def __index__(self): os._exit(0)\ndef add(a, b, f): return f(Bye())",
        CALLBACK.format("lambda x: [3, 4][x]"),
        why="The candidate ended the process.",
    ),
    # Generators and sizes.
    "a generator that never ends": Attack(
        "def add(a, b):\n    while True: yield 3",
        "from solution import add\ndef test_add():\n    assert list(add(1, 2)) == [3]\n",
        why="The time for this candidate was used up",
    ),
    "a length that is a lie": Attack(
        "class L:\n    def __len__(self): return 1 << 60\n    def __getitem__(self, i): return 3\n"
        "def add(a, b): return L()",
        "from solution import add\ndef test_add():\n    assert list(add(1, 2)) == [3]\n",
    ),
    "more than crosses at once": Attack("def add(a, b): return bytes(20 << 20)", why="a value of more than 16 MiB"),
    "tuples in tuples": Attack(
        "def add(a, b):\n    x = ()\n    for _ in range(5000): x = (x,)\n    return x", why="nested more than 100 deep"
    ),
    "lists in lists": Attack("def add(a, b):\n    x = []\n    for _ in range(100_000): x = [x]\n    return x"),
    "a container that changes meanwhile": Attack(
        """
        import threading
        x = {}
        def change():
            while True:
                x[len(x) % 1000] = 1; x.pop(0, None)
        def add(a, b):
            threading.Thread(target=change, daemon=True).start()
            return x
        """
    ),
    # The pipe itself.
    "nonsense": raw("b'nonsense\\n'", why="something that is no message"),
    "an endless line": raw("b'x' * (17 << 20)", why="an endless line"),
    "an answer before the question": raw("b'{\"answer\": 99}\\n'", why="an answer to a question that was not asked"),
    "a record of the tests' side": raw('b\'{"n": 3, "kind": "end", "outcome": "passed"}\\n\''),
    "deeply nested": raw("b'[' * 100_000 + b'\\n'", why="something that is no message"),
    "a container that is not shared": raw(
        'b\'{"answer": %d, "value": 3, "set": [[2, [3]]]}\\n\' % asked()', why="a container that is not shared"
    ),
    "an object by a number it was never given": wire('["yours", 1]', why="an object that was never handed over"),
    "an object that was not introduced": wire('["mine", 77]', why="not introduced"),
    "a class that ends tests": wire('["type", "unittest.case", "SkipTest"]', why="a class that cannot be named"),
    "an exception that ends tests": wire('["exception", "_pytest.outcomes", "Skipped", ["tuple"], None]'),
    "no exception as an exception": wire('["exception", "builtins", "int", ["tuple"], None]'),
    "a function of the tests' side": wire('["function", "builtins", "eval"]', why="a tag that is none"),
    "a number of 16 million digits": wire('["int", "0x" + "f" * 10_000_000]', verdict="fail", why="assert"),
    "an int that is none": wire('["int", ["mine", 1]]'),
    "a range of strings": wire('["range", "a", "b", "c"]', why="a value that is none"),
    "a timezone with a name of its own": wire('["timezone", ["timedelta", 99, 0, 0]]', why="a value that is none"),
    "a recipe for the tests' side": wire('["recipe", "os", "system", ["tuple", "true"]]', why="a tag that is none"),
    "a member of a class that ends tests": wire('["member", "unittest.case", "SkipTest", 1]', why="cannot be named"),
    "a member of no enum": wire('["member", "decimal", "Decimal", 3]', why="of another type than it says"),
    "a class reached through another module": wire('["type", "typing", "re.Pattern"]', why="cannot be named"),
    "a view of no dict": wire('["view", "keys", 5]', why="a view of what is no dict"),
    "a traceback of no lines": wire('["traceback", ["tests.py", "f", "7"]]', why="a traceback that is none"),
    "numpy's own functions": wire('["numpy-type", "load"]', why="a numpy type that is none"),
    "a record of objects": wire('["dtype", "[[\\"a\\", \\"|O\\"]]"]', why="a numpy type that is none"),
    "what the tests draw by chance": Attack(
        SPEAKS + "import random\nSTATE = random.Random(1).getstate()\n"
        "me.news = lambda letter: {'chance': {'random': me.put(STATE, letter)}}\n"
        "def add(a, b): return random.Random(1).randrange(1 << 30)",
        "import random\nfrom solution import add\ndef test_add():\n    random.seed()\n"
        "    assert add(1, 2) == random.randrange(1 << 30)\n",
    ),
    "what the tests will draw": Attack(
        "import random\ndef add(a, b): return random.randrange(1 << 30)",
        "import random\nfrom solution import add\ndef test_add():\n    random.seed()\n"
        "    assert add(1, 2) == random.randrange(1 << 30)\n",
    ),
    "a numpy array of objects": wire('["numpy", "|O", "AAAAAAAAAAA="]', why="a numpy type that is none"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_on_the_split_does_not_pass(name: str, bench: Bench) -> None:
    attack = ATTACKS[name]
    solution = dedent(attack.solution) if attack.solution.startswith("\n        ") else attack.solution
    report = bench.run(solution, attack.tests, total_timeout_s=10.0)
    assert (report.verdict, report.mode) == (attack.verdict, "split"), report
    assert attack.why in report.why
    assert report.why
    assert bench.nothing_but_warm_boxes()


@pytest.mark.parametrize("how", ["fork", "thread"])
def test_a_second_voice_on_the_pipe_says_nothing(how: str, bench: Bench) -> None:
    """A child of the candidate that comes back into our code ends; a thread waits for its turn. The answer is right."""
    begin = "os.fork()" if how == "fork" else "threading.Thread(target=f, args=(1,)).start()"
    solution = f"import os, threading\ndef add(a, b, f):\n    {begin}\n    return a + b\n"
    tests = "from solution import add\ndef test_add():\n    for _ in range(5): assert add(1, 2, lambda x: x) == 3\n"
    assert bench.run(solution, tests).verdict == "pass"
    assert bench.nothing_but_warm_boxes()
