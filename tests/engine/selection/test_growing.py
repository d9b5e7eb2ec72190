"""What is shown of an answer's code while the answer is still being written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.selection.code_blocks import solution
from engine.selection.growing import GrowingCode

FUNCTION = "def add(a, b):\n    return a + b\n"
DOCSTRING = 'def f():\n    """Use it so:\n\n```\nf()\n```\n    """\n'
ANSWERS = [
    pytest.param(f"```python\n{FUNCTION}```", id="only a block"),
    pytest.param(f"Here:\n\n```python\n{FUNCTION}```\nIt adds `a` and\n`b`.\n", id="prose around"),
    pytest.param(f"```python\r\n{FUNCTION}```\r\nDone.", id="line ends"),
    pytest.param(f"````python\n{FUNCTION}````", id="four ticks"),
    pytest.param(f"~~~\n{FUNCTION}~~~\n```\nother\n```\n", id="tildes, then another block"),
    pytest.param(f"```bash\npip install x\n```\nThen:\n```python\n{FUNCTION}```\n", id="a command before it"),
    pytest.param(f"```python\n{DOCSTRING}```\n", id="a fence inside a docstring"),
    pytest.param(f"```python\n{FUNCTION}", id="never closed"),
    pytest.param(f"{FUNCTION}```\nThat is all.\n", id="begun without a fence"),
    pytest.param(FUNCTION, id="no fence at all"),
    pytest.param("x = 1\u2028\x0c\ny = 2\n", id="what is no line end"),
    pytest.param("", id="nothing"),
]


@pytest.mark.parametrize("answer", ANSWERS)
@given(cuts=st.lists(st.integers(0, 120)))
def test_in_whatever_pieces_it_comes_it_ends_as_the_code_and_shows_no_fence(answer: str, cuts: list[int]) -> None:
    growing, code = GrowingCode(), solution(answer).code
    for cut in sorted(min(cut, len(answer)) for cut in cuts):
        begins, ends = growing.span(answer[:cut])
        shown = answer[begins:ends]
        assert code.startswith(shown) or not begins
        assert not shown.startswith(("```p", "~~~"))
    begins, ends = growing.span(answer)
    closed_in_its_last_line = answer[begins:ends].removesuffix("```").removesuffix("````")
    assert closed_in_its_last_line == code


def test_every_line_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    look = GrowingCode._look

    def note(growing: GrowingCode, answer: str, line: str) -> None:
        looked.append(line)
        look(growing, answer, line)

    monkeypatch.setattr(GrowingCode, "_look", note)
    growing, answer = GrowingCode(), f"```python\n{FUNCTION}{FUNCTION}"
    for cut in range(len(answer) + 1):
        growing.span(answer[:cut])
    assert "".join(looked) == answer


THOUGHT = "Try:\n```python\ndef helper(): pass\n```\nNo.\n"
GROWING = {
    "a thought": (f"<think>\n{THOUGHT}</think>\n\nHere:\n```python\n{FUNCTION}```\nDone.\n", FUNCTION),
    "a thought, no fence": (f"[THINK]{THOUGHT}[/THINK]{FUNCTION}", FUNCTION),
    "a thought that the prompt opened": (f"{THOUGHT}</think>\n```python\n{FUNCTION}```\n", FUNCTION),
    "imports first": (f"```python\nimport math\n```\nThen:\n```python\n{FUNCTION}```\n", FUNCTION),
    "tests first": (f"```python\ndef test_add(): pass\n```\nThen:\n```python\n{FUNCTION}```\n", FUNCTION),
    "opened twice": (f"```python\n```python\n{FUNCTION}```\n", FUNCTION),
    "closed behind code": (f"```python\n{FUNCTION.rstrip()}```\nIt adds.\n", FUNCTION.rstrip()),
    "a file's name": (f"```add.py\n{FUNCTION}```\nIt adds.\n", FUNCTION),
    "brackets": (f"[PYTHON]\n{FUNCTION}[/PYTHON]\n", FUNCTION),
}


@pytest.mark.parametrize("name", GROWING)
def test_what_is_shown_at_the_end_is_the_code_and_nothing_of_a_thought_was(name: str) -> None:
    answer, code = GROWING[name]
    growing, opened_by_prompt = GrowingCode(), "prompt" in name
    for cut in range(len(answer) + 1):
        begins, ends = growing.span(answer[:cut])
        assert 0 <= begins <= ends <= cut
        assert opened_by_prompt or "helper" not in answer[begins:ends]
    assert answer[begins:ends] == code
