"""Which candidates are the same code."""

import pytest

from engine.runner.report import Report, TestResult
from engine.selection.grouping import Fingerprint, behaviour, first_alike, groups, normalised, same_failure

PLAIN = "def f(a):\n    return a\n"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (PLAIN, "same code"),
        ("def f(a):  \r\n\r\n    return a", "same code but for spacing"),
        ("\ufeff" + PLAIN, "same code but for spacing"),
        ("# why\ndef f( a ):\n  return (a)\n", "same AST"),
        ("def f(b):\n    return b\n", ""),
        ("def f(a):\n    return a +\n", ""),
    ],
)
def test_likeness(other: str, reason: str) -> None:
    assert Fingerprint.of(other).likeness(Fingerprint.of(PLAIN)) == reason


def test_indentation_is_not_spacing() -> None:
    assert normalised("if a:\n    b\nc\n") != normalised("if a:\n    b\n    c\n")


def test_code_that_does_not_parse_is_compared_by_text() -> None:
    assert Fingerprint.of("def f(:").likeness(Fingerprint.of("def f(:\n")) == "same code but for spacing"
    assert not Fingerprint.of("def f(:").likeness(Fingerprint.of("def g(:"))


def test_other_languages_have_no_tree() -> None:
    assert not Fingerprint.of("f( a )", python=False).likeness(Fingerprint.of("f(a)", python=False))


def test_the_closest_likeness_wins_then_the_earliest() -> None:
    earlier = [(n, Fingerprint.of(code)) for n, code in [(1, PLAIN + "# end\n"), (2, PLAIN + "\n"), (3, PLAIN + "\n")]]
    alike = first_alike(Fingerprint.of(PLAIN), earlier)
    assert alike is not None
    assert (alike.number, alike.reason, alike.exact) == (2, "same code but for spacing", False)
    assert first_alike(Fingerprint.of("other"), earlier) is None


def test_group_sizes_count_trees() -> None:
    codes = {1: PLAIN, 2: PLAIN + "# end\n", 3: "x = 1", 4: "oops(", 5: "oops( \n"}
    assert groups({n: Fingerprint.of(code) for n, code in codes.items()}) == {1: 2, 2: 2, 3: 1, 4: 2, 5: 2}


def test_behaviour_is_every_tests_outcome() -> None:
    def report(*outcomes: str) -> Report:
        return Report("fail", "split", tests=tuple(TestResult(str(n), o, why=o) for n, o in enumerate(outcomes)))

    assert behaviour(report("passed", "failed")) == behaviour(report("passed", "failed"))
    assert behaviour(report("passed", "failed")) != behaviour(report("failed", "passed"))


def test_failing_alike_is_failing_the_same_tests_with_the_same_values() -> None:
    def failing(why: str, id: str = "2") -> Report:
        return Report("fail", "split", tests=(TestResult("1", "passed"), TestResult(id, "failed", why)))

    earlier = [(1, failing("assert 3 == 4")), (2, failing("assert 5 == 4")), (3, failing("assert 5 == 4", "3"))]
    alike = same_failure(failing("assert 5 == 4"), earlier)
    assert alike is not None
    assert alike.number == 2
    assert same_failure(failing("assert 6 == 4"), earlier) is None
    passing = Report("pass", "split", tests=(TestResult("1", "passed"),))
    assert same_failure(passing, [(1, passing)]) is None
