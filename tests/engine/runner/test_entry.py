"""Which function of a candidate ``check(candidate)`` is about."""

import pytest

from engine.runner import entry, forms

EVEN = "def is_even(n):\n    return n % 2 == 0\n"
TESTS = "def check(candidate):\n    assert candidate(2) == True\n"
FOUND = {
    "a main": (EVEN + "def main():\n    print(is_even(4))\nmain()\n", TESTS, "is_even"),
    "a main with arguments": (EVEN + "def main(argv=None):\n    print(is_even(4))\n", TESTS, "is_even"),
    "tests of its own": (EVEN + "def test_is_even(n=2):\n    assert is_even(n)\n", TESTS, "is_even"),
    "a check of its own": (EVEN + "def check(f):\n    assert f(2)\ncheck(is_even)\n", TESTS, "is_even"),
    "private helpers": (EVEN + "def _odd(n):\n    return not is_even(n)\n", TESTS, "is_even"),
    "another number of arguments": (EVEN + "def add(a, b):\n    return a + b\n", TESTS, "is_even"),
    "a word of the tests": (EVEN + "def is_odd(n):\n    return n % 2\n", f"# is_even\n{TESTS}", "is_even"),
    "a helper of the tests": (
        "def encode(s):\n    return s[::-1]\ndef decode(s):\n    return s[::-1]\n",
        "def check(candidate):\n    assert candidate(encode('ab')) == 'ab'\n",
        "decode",
    ),
    "a lambda": ("is_even = lambda n: n % 2 == 0\n", TESTS, "is_even"),
    "a coroutine": ("async def is_even(n):\n    return n % 2 == 0\n", TESTS, "is_even"),
    "only a main": ("def main(n):\n    return n % 2 == 0\n", TESTS, "main"),
    "only private": ("def _even(n):\n    return n % 2 == 0\n", TESTS, "_even"),
    "arguments with defaults": (
        "def add(a, b=0, c=0):\n    return a + b + c\ndef mul(a, b):\n    return a * b\n",
        "def check(candidate):\n    assert candidate(1) == 1\n",
        "add",
    ),
    "arguments by keyword only": (
        "def add(a, *, b):\n    return a + b\ndef neg(a):\n    return -a\n",
        "def check(candidate):\n    assert candidate(1, b=2) == 3\n",
        "add",
    ),
    "any number of arguments": (
        "def add(*numbers):\n    return sum(numbers)\ndef zero():\n    return 0\n",
        "def check(candidate):\n    assert candidate(*[1, 2]) == 3 and candidate(1) == 1\n",
        "add",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_function_is_found_among_others(name: str) -> None:
    solution, tests, function = FOUND[name]
    assert entry.entry_point(solution, tests) == function


def test_where_there_is_none_nothing_is_found() -> None:
    assert entry.entry_point("x = 1\nclass Solution:\n    def is_even(self, n): return n\n", TESTS) == ""
    assert entry.entry_point("def is_even(:", TESTS) == ""


@pytest.mark.parametrize(
    ("solution", "tests", "words"),
    [
        (EVEN + "def is_odd(n):\n    return n % 2\n", TESTS, "is_even or is_odd"),
        (EVEN + "def half(n):\n    return is_even(n) and n / 2\n", f"{TESTS}# is_even", "half or is_even"),
    ],
)
def test_where_it_could_be_another_it_is_asked_for(solution: str, tests: str, words: str) -> None:
    with pytest.raises(forms.BrokenTests, match=words):
        entry.entry_point(solution, tests)
