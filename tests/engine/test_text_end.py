"""Where a text ends by what it says: stop strings and blocks of code, whatever pieces it comes in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.selection.code_blocks import blocks, solution
from engine.selection.scanner import Scanner
from engine.text_end import TextEnd


def read(text, size, **rules):
    """The text as shown, piece by piece of ``size`` characters, and whether it ended by a rule."""
    end, shown = TextEnd(**rules), ""
    for start in range(0, len(text), size):
        more, ended = end.feed(text[start : start + size])
        shown += more
        if ended:
            assert len(shown) == end.cut
            return shown, True
    return shown + end.rest(), False


SIZES = (1, 2, 3, 7, 1000)


@pytest.mark.parametrize("size", SIZES)
def test_the_earliest_of_several_stop_strings_wins(size):
    assert read("ABCDEF", size, stop=("CD", "BCDE")) == ("AB" if size < 3 else "A", True)


def test_no_more_is_held_back_than_could_become_a_stop_string():
    end = TextEnd(("DEFGH", "EX"))
    assert [end.feed(piece)[0] for piece in ("ABCD", "E", "F", "X", "E")] == ["ABC", "", "", "DEFX", ""]
    assert end.rest() == "E"


@given(st.text("ab", max_size=30), st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3), st.data())
def test_stop_strings_in_any_pieces(text, stop, data):
    """A stop string ends the text as soon as it is whole; of those whole by then, the one that begins first."""
    size = data.draw(st.integers(1, 5))
    whole = [text.find(s) + len(s) for s in stop if s in text]
    seen = text[: -(-min(whole) // size) * size] if whole else text
    want = seen[: min(at for at in map(seen.find, stop) if at >= 0)] if whole else text
    assert read(text, size, stop=tuple(stop)) == (want, bool(whole))


BLOCKS = {
    "plain": "```python\nx = 1\n```",
    "prose before": "Here:\n\n```\nx = 1\n```",
    "four ticks": "````python\n```\nx\n````",
    "tildes": "~~~py\n```\nx = 1\n~~~",
    "longer closing": "```py\nx\n`````",
    "in a list": "1. So:\n   ```python\n   x = 1\n   ```",
    "fence in a docstring": '```python\ndef f():\n    """\n    ```\n    >>> f()\n    ```\n    """\n```',
    "trailing blanks": "```\nx\n```  ",
    "shell first": "```bash\npip install x\n```\nThen:\n```python\nx = 1\n```",
    "empty first": "```\n\n```\n```python\nx = 1\n```",
    "ticks inside a line": "```python\ns = '```'\nx = 1\n```",
    "info looks like a closing": "```python\nx = 1\n```python\ny = 2\n```",
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", BLOCKS)
def test_the_first_block_of_code_ends_the_text(name, newline, size):
    text = BLOCKS[name].replace("\n", newline)
    more = f"{newline}{newline}Now use it:{newline}```python{newline}print(x)"
    assert read(text + more, size, code_stop="block") == (text, True)
    assert solution(text) == solution(text + newline)
    assert solution(text).closed


@pytest.mark.parametrize(
    "text", ["no block", "```python\nx = 1\n", '```python\n"""\n```\nstill inside\n', "```\nx\n```x\n"]
)
def test_a_block_that_is_not_closed_does_not_end(text):
    assert read(text, 1, code_stop="block") == (text, False)


def test_a_fence_is_shown_at_once_and_judged_when_its_line_is_over():
    end = TextEnd(code_stop="block")
    assert end.feed("```py\nx\n```") == ("```py\nx\n```", False)
    assert end.feed("\nmore") == ("", True)


@given(
    st.lists(
        st.sampled_from(["```", "````", "~~~", "python", " x", "\n", "\n", '"""', "def f():\n", "- "]), max_size=30
    )
)
def test_pieces_do_not_matter_and_the_block_is_that_of_the_whole_answer(parts):
    text = "".join(parts)
    shown, ended = read(text, 1, code_stop="block")
    assert text.startswith(shown)
    assert {read(text, size, code_stop="block") for size in (2, 5, 1000)} == {(shown, ended)}
    if ended:
        assert blocks(shown)[-1].closed
        assert blocks(shown)[-1].code.strip()


def test_the_earliest_rule_wins():
    text = "```\nstop here\n```\nSTOP"
    assert read(text, 1, stop=("here",), code_stop="block") == ("```\nstop ", True)
    assert read(text, 1, stop=("STOP",), code_stop="block") == ("```\nstop here\n```", True)


THOUGHT = "First try:\n```python\ndef f():\n    return 0\n```\nNo.\n"
ANSWER = "\n```python\ndef f():\n    return 1\n```"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "thought",
    [
        f"<think>\n{THOUGHT}</think>\n",
        f"[THINK]{THOUGHT}[/THINK]",
        f"<seed:think>{THOUGHT}</seed:think>\n",
        f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>",
    ],
)
def test_a_block_inside_a_thought_does_not_end_the_text(thought, size):
    text = f"{thought}{ANSWER}"
    assert read(f"{text}\nUse it:\n", size, code_stop="block") == (text, True)
    assert solution(text).code == "def f():\n    return 1\n"


@pytest.mark.parametrize("size", SIZES)
def test_a_thought_that_the_prompt_has_opened_does_not_end_the_text(size):
    text = f"{THOUGHT}</think>\n{ANSWER}"
    assert read(f"{text}\nUse it:\n", size, code_stop="block", thinking=True) == (text, True)


def test_an_unfinished_thought_does_not_end_the_text():
    assert read(f"<think>\n{THOUGHT}", 1, code_stop="block") == (f"<think>\n{THOUGHT}", False)


@pytest.mark.parametrize(
    "first",
    [
        "```python\nimport math\n```\n",
        "```python\ndef test_f():\n    assert f() == 1\n```\n",
        "```python\nassert f() == 1\n```\n",
        "```pycon\n>>> f()\n1\n```\n",
    ],
)
def test_imports_tests_and_transcripts_do_not_end_the_text(first):
    assert read(f"{first}{ANSWER}\nmore", 1, code_stop="block") == (f"{first}{ANSWER}", True)


@pytest.mark.parametrize("closing", ["    return 1```", "    return 1\n``` It returns 1."])
def test_a_block_ends_with_the_line_that_closes_it(closing):
    text = f"```python\ndef f():\n{closing}"
    assert read(f"{text}\nmore", 1, code_stop="block") == (text, True)


def test_a_long_thought_with_many_blocks_is_read_once(monkeypatch):
    taken = []
    take = Scanner.take
    monkeypatch.setattr(Scanner, "take", lambda scanner, line, at: (taken.append(at), take(scanner, line, at)))
    end, text = TextEnd(code_stop="block"), "<think>\n" + THOUGHT * 50
    for char in text:
        end.feed(char)
    assert len(taken) == text.count("\n")
