"""Doctests as people paste them: where each example stands, and what should come out."""

import pytest

from engine.runner import forms, pasted

PASTED = {
    "a docstring": ('"""\n>>> f(1)\n2\n>>> f(3)\n4\n"""\n', {2: "2\n", 4: "4\n"}),
    "a stub": ('def f(x):\n    """Adds one.\n\n    >>> f(1)\n    2\n    """\n', {4: "2\n"}),
    "a stub that begins with an example": ("def f(x):\n    '''>>> f(1)\n    2'''\n", {2: "2\n"}),
    "a stub without an end": ('def f(x):\n    """Adds one.\n    >>> f(1)\n    2\n    """\n\ndef (\n', {3: "2\n"}),
    "a method": ('class A:\n    def f(self):\n        """\n        >>> A().f()\n        2\n        """\n', {4: "2\n"}),
    "Markdown": ("Use it:\n\n```python\n>>> f(1)\n2\n```\nThat is all.\n", {4: "2\n"}),
    "Markdown with a list": ("- Use it:\n\n  ```pycon\n  >>> f(1)\n  2\n  ```\n", {4: "2\n"}),
    "a session": (
        "Python 3.11\n>>> for x in (1, 2):\n...     f(x)\n... \n2\n3\n>>> f(1)\n2\n",
        {2: "2\n3\n", 7: "2\n"},
    ),
    "no space": (">>>f(1)\n2\n", {1: "2\n"}),
    "quotes at the end of a line": ('x """\n>>> f(1)\n2"""\n', {2: "2\n"}),
}


@pytest.mark.parametrize("name", PASTED)
def test_every_example_is_found_at_its_line(name: str) -> None:
    text, wanted = PASTED[name]
    source = forms.parse(text)
    assert source.form == forms.DOCTEST
    found = {example.lineno + 1: "".join(line.strip() + "\n" for line in example.want.splitlines())
             for example in source.examples if example.want}  # fmt: skip
    assert found == wanted
    assert [check.id for check in source.checks] == [f"line {line}" for line in wanted]


def test_a_stub_brings_its_imports_and_not_its_functions() -> None:
    source = forms.parse('import math\nLIMIT = 3\ndef f(x):\n    """\n    >>> f(LIMIT) == math.pi\n    True\n    """\n')
    assert source.borrowed == ("f",)
    assert [example.source for example in source.examples][:2] == ["import math\n", "LIMIT = 3\n"]


@pytest.mark.parametrize(
    ("wanted", "got", "same"),
    [
        ('"ab"', "'ab'", True),
        ("[1,2]", "[1, 2]", True),
        ("{2, 1}", "{1, 2}", True),
        ("{8, 0}", "{0, 8}", True),  # spelled in the order in which they were put in
        ("1", "True", False),
        ("1", "1.0", False),
        ("[1, 2]", "[2, 1]", False),
        ("{1, True}", "{1.0}", False),
        ("words", "words", False),
    ],
)
def test_the_same_value_may_be_spelled_differently(wanted: str, got: str, same: bool) -> None:
    assert pasted.same_value(wanted, got) is same


def test_quotes_that_open_and_close_on_a_line_are_what_should_come_out() -> None:
    (example,) = pasted.examples('Some words.\n>>> f(1)\n"""a"""\n\n')
    assert example.want == '"""a"""\n'


def test_code_between_fences_keeps_its_lines() -> None:
    source = forms.parse("Tests:\n\n```python\nassert f(1) == 2\n```\nand\n~~~\nassert f(2) == 3\n~~~\n")
    assert [check.id for check in source.checks] == ["line 4", "line 8"]
