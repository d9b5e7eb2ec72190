"""Every shape an answer comes in, of any size; no byte of the code changes."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.selection.code_blocks import blocks, parse_python, solution

FUNCTION = "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(
    ("answer", "code", "language"),
    [
        pytest.param(f"```python\n{FUNCTION}```", FUNCTION, "python", id="only a block"),
        pytest.param(f"Here:\n\n```python\n{FUNCTION}```\nDone.", FUNCTION, "python", id="prose around"),
        pytest.param(f"````python\n{FUNCTION}````", FUNCTION, "python", id="four ticks"),
        pytest.param("````\na\n```\nb\n````\n", "a\n```\nb\n", "", id="three ticks inside four"),
        pytest.param(f"~~~python\n{FUNCTION}~~~", FUNCTION, "python", id="tildes"),
        pytest.param("~~~\n```\na\n```\n~~~", "```\na\n```\n", "", id="ticks inside tildes"),
        pytest.param(f"```python\n{FUNCTION}", FUNCTION, "python", id="unclosed"),
        pytest.param("```python\nx = 1", "x = 1", "python", id="unclosed and cut in a line"),
        pytest.param(
            f"```python\n{FUNCTION}``\nx = 1\n```", f"{FUNCTION}``\nx = 1\n", "python", id="two ticks do not close"
        ),
        pytest.param(f"```python\n{FUNCTION}``", FUNCTION, "python", id="cut off in its closing fence"),
        pytest.param(f"```python\n{FUNCTION}```` \n", FUNCTION, "python", id="more ticks close"),
        pytest.param(f"```py\n{FUNCTION}```", FUNCTION, "py", id="py"),
        pytest.param("```go\nfunc f() {}\n```", "func f() {}\n", "go", id="go"),
        pytest.param("```c++\nint f();\n```", "int f();\n", "c++", id="c++"),
        pytest.param("```C# title=x\nint F();\n```", "int F();\n", "c#", id="attributes"),
        pytest.param("```{.python}\nx\n```", "x\n", "python", id="pandoc"),
        pytest.param("``` python\nx\n```", "x\n", "python", id="blank before the language"),
        pytest.param(f"```\n{FUNCTION}```", FUNCTION, "", id="no language"),
        pytest.param("just words", "", "", id="no code"),
        pytest.param("Use ```x``` here", "", "", id="ticks in a line are no fence"),
        pytest.param("```python\n```\n", "", "", id="an empty block is none"),
        pytest.param("", "", "", id="nothing"),
    ],
)
def test_one_block(answer: str, code: str, language: str) -> None:
    block = solution(answer)
    assert (block.code, block.language) == (code, language)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            "1. Like this:\n\n   ```python\n   def f():\n       return 1\n   ```\n2. Next", id="under the text"
        ),
        pytest.param("- ```python\n  def f():\n      return 1\n  ```\n", id="on the marker's line"),
        pytest.param("10. ```python\n    def f():\n        return 1\n    ```\n", id="wide marker"),
        pytest.param("    ```python\n    def f():\n        return 1\n    ```\n", id="indented like a code block"),
        pytest.param("\t```python\n\tdef f():\n\t    return 1\n\t```\n", id="tabs"),
    ],
)
def test_block_in_a_list_loses_the_lists_indentation(answer: str) -> None:
    assert solution(answer).code == "def f():\n    return 1\n"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("    ```\n\tx\n    y\n    ```", "x\ny\n"),  # a tab is four columns
        ("\t```\n    x\n\t\ty\n\t```", "x\n\ty\n"),
        ("\t\t```\n        x\n\t    y\n\t\t```", "x\ny\n"),
        ("  ```\n      ```\n  x\n  ```", "    ```\nx\n"),  # four columns further in: no closing fence
        ("  ```\n  x\n     ```\nend", "x\n"),  # three are
        ("```\nx\n\t```\ny\n```", "x\n\t```\ny\n"),
    ],
)
def test_columns_before_a_fence_are_counted_with_tabs_of_four(answer: str, code: str) -> None:
    assert [block.code for block in blocks(answer)] == [code]


def test_only_blanks_are_taken_as_indentation() -> None:
    assert solution("  ```\n  a\n b\nc\n   d\n  ```").code == "a\nb\nc\n d\n"


def test_a_tab_that_reaches_beyond_the_indentation_stays() -> None:
    assert [block.code for block in blocks("  ```\n\tx\n  ```")] == ["\tx\n"]


DOCSTRING = '''"""Module.

```
add(1, 2)
```
"""
def add(a, b):
    """Also here:

    ```python
    add(1, 2)
    ```
    """
    return a + b
'''


@pytest.mark.parametrize("tag", ["python", ""])
def test_fence_inside_a_docstring_does_not_close(tag: str) -> None:
    answer = f"Look:\n```{tag}\n{DOCSTRING}```\nThat is ```all```."
    assert [block.code for block in blocks(answer)] == [DOCSTRING]
    assert solution(answer).code == DOCSTRING


def test_quotes_that_never_close_say_nothing() -> None:
    answer = '```python\nx = """\n```\nThen\n```python\ndef f(): pass\n```\n'
    assert [block.code for block in blocks(answer)] == ['x = """\n', "def f(): pass\n"]


@pytest.mark.parametrize(
    "line",
    [
        '# it\'s """ in a comment',
        's = \'a """ b\'',
        "s = \"\\\"'''\"",
        's = """one line"""',
        's = r"""a\\""" + """b"""',
    ],
)
def test_quotes_in_comments_and_strings_do_not_count(line: str) -> None:
    answer = f"```python\n{line}\n```\nText\n```text\nout\n```\n"
    assert blocks(answer)[0].code == line + "\n"


def test_triple_quotes_of_other_languages_do_not_count() -> None:
    answer = '```text\na """ b\n```\n```text\nc """ d\n```\n'
    assert [block.code for block in blocks(answer)] == ['a """ b\n', 'c """ d\n']


class TestWhichBlock:
    def test_the_definition_not_the_longer_example_after_it(self) -> None:
        example = "print(add(1, 2))\n" * 20
        assert solution(f"```python\n{FUNCTION}```\nUse:\n```python\n{example}```").code == FUNCTION

    def test_not_the_tests_after_it(self) -> None:
        tests = "def test_add():\n    assert add(1, 2) == 3\n"
        assert solution(f"```python\n{FUNCTION}```\n```python\n{tests}```").code == FUNCTION

    def test_a_later_version_that_defines_the_same(self) -> None:
        better = "def add(a, b):\n    return sum((a, b))\n"
        assert solution(f"```python\n{FUNCTION}```\nBetter:\n```python\n{better}```").code == better

    def test_a_later_version_that_was_cut_off_does_not_replace_a_whole_one(self) -> None:
        assert (
            solution(f"```python\n{FUNCTION}```\nBetter:\n```python\ndef add(a, b):\n    return su(").code == FUNCTION
        )

    def test_not_the_shell_commands(self) -> None:
        answer = f"```bash\npip install a-package-with-a-very-long-name and-another-one\n```\n```python\n{FUNCTION}```"
        assert solution(answer).code == FUNCTION

    def test_shell_commands_when_there_is_nothing_else(self) -> None:
        assert solution("Run:\n```bash\nls\n```\n").code == "ls\n"

    def test_the_longest_of_another_language(self) -> None:
        assert solution("```go\na\n```\n```go\nfunc long() {}\n```\n```go\nb\n```").code == "func long() {}\n"

    def test_python_before_others_even_when_broken(self) -> None:
        assert solution('```json\n{"a": "long, long, long"}\n```\n```python\ndef f(:\n```').code == "def f(:\n"

    def test_an_answer_wrapped_in_markdown(self) -> None:
        assert solution(f"````markdown\n# Title\n```python\n{FUNCTION}```\n````").code == FUNCTION
        assert solution(f"```markdown\n# Title\n```python\n{FUNCTION}```\nText\n```").code == FUNCTION


BYTES = {
    "tabs and mixed indentation": "def f():\n\tif 1:\n        return 2\n",
    "trailing blanks": "x = 1  \t \n \n",
    "CRLF": "x = 1\r\ny = 2\r\n",
    "a mix of line ends": "a = 1\rb = 2\nc = 3\r\n",
    "NBSP": "x =\u00a01\n",
    "U+2028, NEL, form feed": "x = 'a\u2028b\u2029c\x85d\x0ce\x1cf'\n",
    "BOM": "\ufeffx = 1\n",
    "escapes": "print('\x1b[31mred\x1b[0m\x07')\n",
    "markup": "x: list[<T>] = '&amp;<b>'\n",
    "right to left": "x = '\u202eabc\u202c\u200f'\n",
    "NUL": "x = '\x00'\n",
    "beyond the BMP": "x = '😀é'\n",
}


@pytest.mark.parametrize("code", BYTES.values(), ids=BYTES.keys())
def test_no_byte_changes(code: str) -> None:
    assert solution(f"Text\n```python\n{code}```\nmore").code == code
    assert solution(f"```python\r\n{code}```\r\n").code == code
    assert solution(f"```python\n{code.rstrip()}").code == code.rstrip()  # unclosed, no final newline
    assert solution(code).code == code


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("ab \t\r\n\u2028'\"#\\~-1.é"), max_size=60))
def test_a_block_of_anything_without_ticks_comes_back_whole(code: str) -> None:
    code = code.rstrip("\r\n") + "\n"
    assert [block.code for block in blocks(f"```text\n{code}```\n")] == [code]


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("a`~ \n\r\t'\"-"), max_size=80))
def test_any_answer_gives_code_that_is_part_of_it(answer: str) -> None:
    for line in solution(answer).code.splitlines():
        assert line in answer


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("```python\nx = '''\n```\n" * 1000, id="2,000 lines with fences in unbalanced quotes"),
        pytest.param("```python\nx = 1\n```\n" * 1000, id="1,000 blocks"),
        pytest.param("```python\n" + "x" * 1_000_000 + "\n```", id="one line of a million characters"),
        pytest.param("```python\n" + "'" * 1_000_001 + "\n```", id="a million quotes"),
        pytest.param("`" * 1_000_000, id="a million ticks"),
        pytest.param(" " * 1_000_000 + "x", id="a million blanks"),
        pytest.param("- " * 500_000, id="a million list markers"),
        pytest.param("```python\n" + "def f():\n    return 'some text'\n" * 12_000 + "```", id="400 kB of Python"),
    ],
)
def test_large_answers_take_no_time(answer: str) -> None:
    start = time.process_time()
    solution(answer)
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize("code", ["(" * 5000, "-" * 50_000 + "1", "x = '\\d'", "\x00", "é" * 300_000, "if 1"])
def test_parsing_a_candidate_never_raises_or_warns(code: str) -> None:
    parse_python(code)


BARE = "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (f"{BARE}```", BARE),
        (f"{BARE}```\n\nThis code defines a function.\n", BARE),
        (f"{BARE}```\nAn example:\n```python\nf(1)\n```\n", BARE),
        (f"Here it is:\n```\n{BARE}```\n", BARE),  # an opening fence: prose is no Python
        (f"x = 1\n```\n{BARE}```\n", BARE),  # nothing is defined before it
        (f"{BARE}```python\nf(1)\n```\n", BARE),  # a block that only uses it
    ],
)
def test_code_that_began_without_a_fence_ends_at_the_first_one(answer: str, code: str) -> None:
    assert solution(answer).code == code
