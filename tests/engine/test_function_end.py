"""Where the first function of a completion is over, whatever pieces it comes in."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text_end import TextEnd

SIGNATURE = 'def f(x):\n    """Doc with \'quotes\' and a #.\n\n    >>> f(1)\n    """\n'
MARGIN = {
    "a call": "print(f(1))\n",
    "a definition": "def g():\n    pass\n",
    "a decorator": "@cache\ndef g():\n    pass\n",
    "a class": "class A:\n    pass\n",
    "the main guard": 'if __name__ == "__main__":\n    f(1)\n',
    "a test after a comment": "# Test\nassert f(1) == 1\n",
}
BODIES = {
    "short": "    return x\n",
    "blank lines": "    y = x\n\n\n    return y\n",
    "a comment at the margin": "    y = x\n# why\n    return y\n",
    "an indented comment": "    return x\n    # done\n",
    "brackets": "    return [\n1,\n    2,\n]\n",
    "a bracket in a string": "    s = '('\n    return s\n",
    "a bracket in a comment": "    y = x  # (\n    return y\n",
    "a triple string": "    s = '''\nat the margin\n\"\"\" it's\n'''\n    return s\n",
    "escaped quotes": "    s = 'it\\'s'\n    t = r'\\''\n    return s + t\n",
    "an empty string": "    s = ''\n    t = \"\"\n    return s\n",
    "a triple string that ends in a quote": '    s = """a\\""""\n    return s\n',
    "a continued line": "    y = x + \\\n1\n    return y\n",
    "an inner function": "    def g():\n        return 1\n\n    @g\n    class A:\n        pass\n\n    return g()\n",
    "trailing blanks": "    return x   \n",
}


def read(text, size, before=""):
    end, shown = TextEnd(code_stop="function", before=before), ""
    for start in range(0, len(text), size):
        more, ended = end.feed(text[start : start + size])
        shown += more
        if ended:
            return shown
    return shown + end.rest()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("margin", MARGIN)
def test_a_body_whose_signature_is_in_the_prompt(body, margin, size):
    text = BODIES[body]
    ast.parse(SIGNATURE + text)  # the case is a function indeed
    assert read(f"{text}\n\n{MARGIN[margin]}", size, SIGNATURE) == text


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("body", BODIES)
def test_a_function_that_the_text_begins_itself(body, newline, size):
    text = (
        f'"""Module.\ndef not_this():\n"""\nimport os\n\nN = (\n1)\n\n@cache\nasync def f(\n    x,\n):\n{BODIES[body]}'
    )
    text = text.replace("\n", newline)
    assert read(f"{text}{newline}print(1){newline}", size, "# Write f.\n") == text


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_the_prompt_may_end_anywhere(size):
    whole = "import os\n\ndef f(x):\n    y = [\n1]\n    return '''\na''' + str(y)\n"
    for cut in range(len("import os\n\ndef f"), len(whole)):
        assert whole[:cut] + read(whole[cut:] + "\nprint(f(1))\n", size, whole[:cut]) == whole, whole[:cut]


def test_a_finished_function_of_the_prompt_does_not_count():
    before = "def f():\n    return 1\n\n\n"
    assert read("def g():\n    return 2\n\nprint(g())\n", 3, before) == "def g():\n    return 2\n"
    assert read("    # more\n    x = 1\nprint()\n", 3, before) == "    # more\n    x = 1\n"  # it goes on after all


def test_no_more_is_held_back_than_may_not_belong():
    end = TextEnd(code_stop="function", before=SIGNATURE)
    pieces = ["    y =", " 1", "\n", "\n# no", "te\n", "    return y\n", "\n", "#", " Example\n", "f(1)"]
    assert [end.feed(piece) for piece in pieces] == [
        ("    y =", False),
        (" 1", False),
        ("\n", False),
        ("", False),
        ("", False),
        ("\n# note\n    return y\n", False),
        ("", False),
        ("", False),
        ("", False),
        ("", True),
    ]


def test_what_was_held_back_is_shown_when_nothing_follows():
    assert read("    return x\n\n# end", 2, SIGNATURE) == "    return x\n\n# end"


STATEMENTS = [
    "    x = 1\n",
    "    s = '''a\nb'''\n",
    "    y = (1,\n2)\n",
    "    # note\n",
    "# at the margin\n",
    "\n",
    "    if x:\n        y = 2\n",
    "    s = '\"'  # it's\n",
    "    t = 1 + \\\n2\n",
]


@given(st.lists(st.sampled_from(STATEMENTS), max_size=8), st.integers(1, 9))
def test_agrees_with_the_parser(statements, size):
    """Python's own tree says where the last statement ends, for any body; an indented comment may follow it."""
    text = "".join(["def f():\n    pass\n", *statements])
    (function,) = ast.parse(text).body
    lines = text.splitlines(keepends=True)
    comments = (number for number, line in enumerate(lines, start=1) if line.startswith("    #"))
    want = "".join(lines[: max(function.end_lineno or 0, *comments, 0)])
    assert read(f"{text}\nf()\n", size) == want


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    "thought", ["<think>\ndef g():\n    pass\n\nNo.\n</think>\n", "\n[THINK]def g(): pass\nx\n[/THINK]\n"]
)
def test_a_function_inside_a_thought_is_not_the_first(thought, size):
    text = f"{thought}def f(x):\n    return x\n"
    assert read(f"{text}\nprint(f(1))\n", size) == text


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    "text", ["[1, 2]\ndef f():\n    pass\n", "<\ndef f():\n    pass\n", "\n\ndef f():\n    pass\n"]
)
def test_what_only_looks_like_a_thought_at_first_is_read_as_code(text, size):
    assert read(f"{text}x = 1\n", size) == text


def test_a_thought_without_an_end_does_not_end_the_text():
    assert read("<think>def f(): pass\nx = 1\n", 1) == "<think>def f(): pass\nx = 1\n"
