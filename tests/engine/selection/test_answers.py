"""Answers as models really write them: their code runs and is right."""

import json

import pytest

from engine.selection.code_blocks import solution

ADD = "def add(a, b):\n    return a + b\n"
WRONG = "def helper(x):\n    return -x\n\ndef add(a, b):\n    return a - helper(b) * 2\n"
DRAFT = f"First try:\n\n```python\n{WRONG}```\n\nThat is wrong.\n"
BLOCK = f"```python\n{ADD}```\n"


def space_of(answer: str) -> dict[str, object]:
    space: dict[str, object] = {"__name__": "solution"}
    exec(compile(solution(answer).code, "solution.py", "exec"), space)
    return space


def adds(answer: str) -> bool:
    return space_of(answer)["add"](1, 2) == 3  # type: ignore[operator]


THOUGHTS = {
    "think": f"<think>\n{DRAFT}</think>\n\n",
    "thinking": f"<thinking>\n{DRAFT}</thinking>\n",
    "reasoning, on one line with the answer": f"<reasoning>{DRAFT}</reasoning>",
    "capitals": f"<THINK>\n{DRAFT}</THINK>\n",
    "attributes": f'<thought type="plan">\n{DRAFT}</thought>\n',
    "blank lines before it": f"\n\n<think>\n{DRAFT}</think>\n",
    "never opened": f"{DRAFT}</think>\n\n",
    "never opened, on a line with words": f"I'd add.\n{DRAFT}So that's it.</think>\n\n",
    "never opened, with an open fence": f"Try\n```python\n{WRONG}</think>\n\n",
    "opened in a fence that it never closes": f"<think>\n```python\n{WRONG}\n</think>\n",
    "Seed": f"<seed:think>\n{DRAFT}<seed:cot_budget_reflect>Half is left.</seed:cot_budget_reflect></seed:think>",
    "Magistral": f"[THINK]{DRAFT}[/THINK]",
    "gpt-oss": f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>",
    "gpt-oss, its turn opened": (
        f"<|start|>assistant<|channel|>analysis<|message|>{DRAFT}<|end|>"
        "<|start|>assistant<|channel|>final <|constrain|>code<|message|>"
    ),
    "gpt-oss without control tokens": f"analysisWe need add. {DRAFT}assistantfinal",
    "gpt-oss, two channels": (
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>commentary<|message|>"
        f"{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>"
    ),
    "Kimi": f"◁think▷{DRAFT}◁/think▷",
    "OpenThinker": f"<|begin_of_thought|>\n{DRAFT}<|end_of_thought|>\n\n<|begin_of_solution|>\n",
    "Command": f"<|START_THINKING|>{DRAFT}<|END_THINKING|><|START_RESPONSE|>",
    "two of them": f"<think>\n{DRAFT}</think>\n\n<think>\n{DRAFT}</think>\n",
    "quoting its own end": "<think>\nI end with `</think>` soon? No:</think>\n",
}


@pytest.mark.parametrize("thought", THOUGHTS.values(), ids=THOUGHTS.keys())
@pytest.mark.parametrize(
    "said",
    [
        pytest.param(f"Here it is:\n\n{BLOCK}", id="block"),
        pytest.param(f"\n{BLOCK}", id="only a block"),
        pytest.param(f"\n{ADD}", id="no fence"),
        pytest.param(f"\n{ADD}\nThis adds two numbers.\n", id="no fence, prose"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_thought_is_no_answer(thought: str, said: str, newline: str) -> None:
    answer = (thought + said).replace("\n", newline)
    assert adds(answer)
    assert "helper" not in solution(answer).code


def test_a_second_thought_behind_the_answer_changes_nothing() -> None:
    assert adds(f"{BLOCK}\n<think>\n{DRAFT}</think>\nThat is it.\n")


@pytest.mark.parametrize(
    "answer",
    [
        f"<think>\n{DRAFT}\nSo I simply",
        "<think>\nNo code yet",
        f"<think>\n```python\n{WRONG}",
        f"[THINK]{DRAFT}",
        f"<|channel|>analysis<|message|>{DRAFT}",
        f"{DRAFT}\n</think>\n",
    ],
)
def test_an_answer_that_ended_inside_its_thought_has_no_code(answer: str) -> None:
    assert solution(answer).code == ""


def test_a_thought_that_nobody_ended_and_that_ends_with_a_block_is_taken_for_the_answer() -> None:
    assert adds(f"<think>\n{DRAFT}\nHere is the function:\n\n{BLOCK}")


STRIP = '''import re

def strip(text):
    """Take out what is between
    <think> and
    </think>
    """
    # everything before </think> goes
    return re.sub(r"<think>.*?</think>\\s*", "", text.split('</think>')[-1])
'''


@pytest.mark.parametrize(
    "answer", [f"```python\n{STRIP}```\n", f"It removes `<think>`…`</think>`:\n```\n{STRIP}```\n", STRIP]
)
def test_code_about_thoughts_is_no_thought(answer: str) -> None:
    assert solution(answer).code == STRIP


@pytest.mark.parametrize("word", ["`x</think>`", '"x</think>"', "'x</think>'"])
def test_words_about_thoughts_behind_the_code_end_none(word: str) -> None:
    assert adds(f"{BLOCK}\nIt doesn't look for {word} at all.\n")


FENCES = {
    "behind text": f"Here is the code: ```python\n{ADD}```\n",
    "behind text, no language": f"Here is the code: ```\n{ADD}```\n",
    "behind bold text": f"**Solution** ```python\n{ADD}```\nDone.\n",
    "code on its line": f"```python {ADD}```\n",
    "code on its line, no language": f"```{ADD}```\n",
    "opened twice": f"```python\n```python\n{ADD}```\n",
    "opened twice, closed twice": f"```\n```python\n{ADD}```\n```\n",
    "opened by another first": f"~~~\n```python\n{ADD}```\n~~~\n",
    "opened bare behind": f"```python\n```\n{ADD}```\n",
    "closed behind code": f"```python\n{ADD.rstrip()}```\n\nIt returns the sum.\n",
    "closed behind code, no language": f"```\n{ADD.rstrip()}```\n\nIt returns the sum.\n",
    "closed behind code, words on the line": f"```python\n{ADD.rstrip()}``` It's the sum.\n",
    "closed, words on the line": f"```python\n{ADD}``` This isn't hard.\n",
    "five ticks, closed by three": f"`````python\n{ADD}```\n\nDone.\n",
    "four ticks, closed by three, no language": f"````\n{ADD}```\n\nDone.\n",
    "tildes, closed by ticks": f"~~~python\n{ADD}```\n\nDone.\n",
    "tildes, closed by too few": f"~~~~python\n{ADD}~~~\n\nDone, all of it.\n",
    "ticks, closed by tildes": f"```python\n{ADD}~~~\n\nDone, all of it.\n",
    "single quotes": f"'''python\n{ADD}'''\n",
    "double quotes": f'"""python\n{ADD}"""\nDone.\n',
    "single quotes, docstring of its kind": "'''python\ndef add(a, b):\n    '''Add.'''\n    return a + b\n'''\n",
    "a file name": f"```solution.py\n{ADD}```\n",
    "a path": f"```src/calc/add.py\n{ADD}```\n",
    "language and file": f"```python:add.py\n{ADD}```\n",
    "attributes": f'```python title="add.py" linenums="1"\n{ADD}```\n',
    "file attribute first": f'```title="add.py"\n{ADD}```\n',
    "version": f"```python3.11\n{ADD}```\n",
    "capitals": f"```Python\n{ADD}```\n",
    "pandoc": f"```{{.python .numberLines}}\n{ADD}```\n",
    "MyST": f"```{{code-block}} python\n{ADD}```\n",
    "notebook": f"```ipython3\n{ADD}```\n",
    "an unknown word": f"```code\n{ADD}```\n",
    "called text": f"```text\n{ADD}```\n",
    "four columns in": "    ```python\n    def add(a, b):\n        return a + b\n    ```\n",
    "a tab in": "\t```python\n\tdef add(a, b):\n\t    return a + b\n\t```\n",
    "code further in than its fence": "```python\n    def add(a, b):\n        return a + b\n```\n",
    "in a list, code not": f"1. So:\n   ```python\n{ADD}   ```\n2. Done\n",
    "in a nested list": "- a\n  - b\n\n    ```python\n    def add(a, b):\n        return a + b\n    ```\n",
    "behind text in a list": "1. So: ```python\n   def add(a, b):\n       return a + b\n   ```\n",
    "in a quotation": "> ```python\n> def add(a, b):\n>     return a + b\n> ```\n> Done.\n",
    "in a quotation of a quotation": "> > ```python\n> > def add(a, b):\n> >     return a + b\n> > ```\n",
    "in a quotation without blanks": ">```python\n>def add(a, b):\n>    return a + b\n>```\n",
    "a list in a quotation": "> 1. So:\n>    ```python\n>    def add(a, b):\n>        return a + b\n>    ```\n",
    "brackets": f"[PYTHON]\n{ADD}[/PYTHON]\n",
    "brackets on the code's lines": f"[PYTHON]{ADD.rstrip()}[/PYTHON]\n[TESTS]\nassert add(1, 2)\n[/TESTS]\n",
    "brackets around a fence": f"[PYTHON]\n{BLOCK}[/PYTHON]\n",
    "brackets never closed": f"[PYTHON]\n{ADD}",
    "HTML": f"<code>\n{ADD}</code>\n",
    "HTML, preformatted": f'<pre><code class="language-python">{ADD}</code></pre>\nDone.\n',
    "HTML, escaped": (
        "<pre><code>def add(a, b):\n    if a &lt; b and b &gt; a:\n        pass\n    return a + b\n</code></pre>\n"
    ),
    "HTML around a fence": f"<code>\n{BLOCK}</code>\n",
    "a tag": f"<python>\n{ADD}</python>\n",
    "LaTeX": f"\\begin{{lstlisting}}[language=Python]\n{ADD}\\end{{lstlisting}}\nDone.\n",
    "minted": f"\\begin{{minted}}{{python}}\n{ADD}\\end{{minted}}\n",
    "escaped for HTML, where that parses too": f"```python\n{ADD.replace('a + b', '(a &lt; 9 or a) and a + b')}```\n",
    "escaped for HTML, preformatted, where that parses too": (
        f"<pre><code>{ADD.replace('a + b', '(a &lt; 9 or a) and a + b')}</code></pre>\n"
    ),
    "numbered lines": "```python\n1 def add(a, b):\n2     return a + b\n```\n",
    "numbered lines, a bar": "```python\n 9 | def add(a, b):\n10 |     return a + b\n```\n",
    "a transcript of IPython": (
        "```python\nIn [1]: def add(a, b):\n   ...:     return a + b\n   ...:\n\nIn [2]: add(1, 2)\nOut[2]: 3\n```\n"
    ),
    "a transcript of IPython, no fence": (
        "In [1]: def add(a, b):\n   ...:     return a + b\n   ...:\n\nIn [2]: add(1, 2)\nOut[2]: 3\n"
    ),
    "an edit": (
        "add.py\n```python\n<<<<<<< SEARCH\ndef add(a, b):\n    return a - b\n=======\n"
        + ADD
        + ">>>>>>> REPLACE\n```\n"
    ),
    "a diff": (
        "```diff\n--- a/add.py\n+++ b/add.py\n@@ -1,2 +1,2 @@\n"
        " def add(a, b):\n-    return a - b\n+    return a + b\n```\n"
    ),
    "a diff of a new file, language not named": "```\n+def add(a, b):\n+    return a + b\n```\n",
    "JSON": f"{json.dumps({'code': ADD, 'explanation': 'It adds two numbers, whatever they are, and nothing more.'})}",
    "JSON, in a fence": f"```json\n{json.dumps([{'why': 'It adds.', 'code': ADD}], indent=2)}\n```\n",
    "JSON that holds a fence": json.dumps({"answer": f"Here:\n{BLOCK}"}),
    "JSON behind a thought": "<think>\nEasy.\n</think>\n" + json.dumps({"code": ADD}),
    "the call of a tool": (
        "<tool_call>\n" + json.dumps({"name": "write", "arguments": {"code": ADD}}) + "\n</tool_call>\n"
    ),
    "the next turns behind it": (
        f"{BLOCK.rstrip()}<|im_end|>\n<|im_start|>user\nNow wrong<|im_end|>\n"
        f"<|im_start|>assistant\n```python\n{WRONG}```\n"
    ),
    "the next turns behind it, on a line": f"{BLOCK}\nDone.<|eot_id|>\n\nuser\n\n```python\n{WRONG}```\n",
    "written in HTML, in a fence": f"```python\n{ADD.replace('a + b', '(a &lt; 9 and a) + b')}```\n",
    "within a line": "Use `add = lambda a, b: a + b` for `a` and `b`.\n",
    "answer tags around it": f"<answer>\n{BLOCK}</answer>\n",
    "answer tags, no fence": f"<answer>\n{ADD}</answer>\n",
    "never closed": f"Here:\n```python\n{ADD}",
    "never closed, prose behind": f"```python\n{ADD}\nThis function adds its arguments, and returns the sum.\n",
    "a control token behind it": f"```python\n{ADD}```<|im_end|>\n",
    "a control token, no fence": f"{ADD.rstrip()}<|endoftext|>",
    "two in one block of Markdown": f"```markdown\nFirst:\n```python\n{ADD}```\nDone.\n```\n",
    "begun without a language, python inside": f"```\n3\n```python\n{ADD}```\n",
    "followed by the next before it is closed": f"```python\n{ADD}\n```python\nprint(add(1, 2))\n```\n",
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", FENCES)
def test_fences_as_models_write_them(name: str, newline: str) -> None:
    assert adds(FENCES[name].replace("\n", newline))


BESIDE = {
    "installing": "```bash\npip install a-package-with-a-long-name and-another-one-that-is-longer\n```\n",
    "a prompt of a shell": "```console\n$ python solution.py --with a lot --of options --and more\n```\n",
    "expected output": "```\n3\n5\n[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]\n```\n",
    "output with words": "```\nThe sum of one and two is: 3. The program ends here, without a word more.\n```\n",
    "JSON": '```json\n{"a": 1, "b": 2, "sum": 3, "more": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}\n```\n',
    "a table of versions": "```toml\n[project]\nname = 'add'\ndependencies = ['one', 'two', 'three', 'four']\n```\n",
    "a transcript": "```pycon\n>>> add(1, 2)\n3\n>>> add(3, 4)\n7\n```\n",
    "a transcript, no language": "```\n>>> add(1, 2)\n3\n```\n",
    "an example": "Example:\n```python\nfor a in range(9):\n    for b in range(9):\n        print(add(a, b))\n```\n",
    "an example that imports": "```python\nfrom solution import add\n\ndef show():\n    print(add(1, 2))\n\n```\n",
    "an example in main": "```python\ndef main():\n    print(add(1, 2))\n\nmain()\n```\n",
    "asserts": "```python\nassert add(1, 2) == 3\nassert add(0, 0) == 0\n```\n",
    "tests": "```python\nimport pytest\n\ndef test_add():\n    assert add(1, 2) == 3\n```\n",
    "unittest": (
        "```python\nimport unittest\n\nclass TestAdd(unittest.TestCase):\n    def test_add(self):\n"
        "        self.assertEqual(add(1, 2), 3)\n\nunittest.main()\n```\n"
    ),
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE.keys())
def test_what_stands_beside_the_code_is_not_taken_for_it(beside: str) -> None:
    for answer in (f"{beside}\nThen:\n\n{BLOCK}", f"{BLOCK}\nThen:\n\n{beside}", f"{beside}\n{BLOCK}\n{beside}"):
        assert solution(answer).code == ADD


@pytest.mark.parametrize("beside", [text for name, text in BESIDE.items() if "output" in name or "transcript" in name])
def test_code_without_a_fence_beside_blocks_of_something_else(beside: str) -> None:
    assert adds(f"{ADD}\nIt prints:\n\n{beside}")


def fenced(*codes: str) -> str:
    return "\n".join(f"Step {number}:\n\n```python\n{code}```\n" for number, code in enumerate(codes, 1))


STEPS = {
    "imports first": ("import math\n", "def f(a, b):\n    return int(math.hypot(a, b))\n"),
    "imports last": ("def f(a, b):\n    return int(math.hypot(a, b))\n", "import math\n"),
    "a helper first": (
        "def square(x):\n    return x * x\n",
        "def f(a, b):\n    return int((square(a) + square(b)) ** 0.5)\n",
    ),
    "a helper last": (
        "def f(a, b):\n    return int((square(a) + square(b)) ** 0.5)\n",
        "def square(x):\n    return x * x\n",
    ),
    "a constant": ("POWER = 2\n", "def f(a, b):\n    return int((a**POWER + b**POWER) ** 0.5)\n"),
    "a constant last": ("def f(a, b):\n    return int((a**POWER + b**POWER) ** 0.5)\n", "POWER = 2\n"),
    "three steps": (
        "from math import sqrt\n",
        "def square(x):\n    return x * x\n",
        "def f(a, b):\n    return int(sqrt(square(a) + square(b)))\n",
    ),
    "a helper of a helper": (
        "def f(a, b):\n    return root(a, b)\n",
        "def root(a, b):\n    return int(total(a, b) ** 0.5)\n",
        "def total(a, b):\n    return a * a + b * b\n",
    ),
    "a class that stands on one that comes later": (
        "class Hypotenuse(Side):\n    pass\n\ndef f(a, b):\n    return Hypotenuse().of(a, b)\n",
        "class Side:\n    def of(self, a, b):\n        return int((a * a + b * b) ** 0.5)\n",
    ),
    "a decorator that comes later": (
        "@whole\ndef f(a, b):\n    return (a * a + b * b) ** 0.5\n",
        "def whole(f):\n    return lambda *given: int(f(*given))\n",
    ),
    "a class that goes on": (
        "class Side:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n",
        "    def length(self):\n        return int((self.a**2 + self.b**2) ** 0.5)\n",
        "def f(a, b):\n    return Side(a, b).length()\n",
    ),
    "the whole at the end": (
        "def square(x):\n    return -x\n",
        "def f(a, b):\n    return square(a) + square(b)\n",
        "def square(x):\n    return x * x\n\ndef f(a, b):\n    return int((square(a) + square(b)) ** 0.5)\n",
    ),
    "the helper corrected": (
        "def square(x):\n    return x + x\n",
        "def f(a, b):\n    return int((square(a) + square(b)) ** 0.5)\n",
        "def square(x):\n    return x * x\n",
    ),
    "a skeleton first": ("def f(a, b):\n    ...\n", "def f(a, b):\n    return int((a * a + b * b) ** 0.5)\n"),
    "a reminder of the signature last": (
        "def f(a, b):\n    return int((a * a + b * b) ** 0.5)\n",
        'def f(a, b):\n    """The longest side."""\n    ...\n',
    ),
    "an improved version that needs the import": (
        "import math\n\ndef f(a, b):\n    return math.hypot(a, b)\n",
        "def f(a, b):\n    return int(math.hypot(a, b))\n",
    ),
    "a future import": (
        "def square(x):\n    return x * x\n",
        "from __future__ import annotations\n\ndef f(a: int, b):\n    return int((square(a) + square(b)) ** 0.5)\n",
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_an_answer_in_several_blocks(name: str) -> None:
    assert space_of(fenced(*STEPS[name]))["f"](3, 4) == 5  # type: ignore[operator]


def test_a_complete_later_version_stands_alone() -> None:
    old = "def square(x):\n    return x * x\n\ndef f(a):\n    return square(a)\n"
    new = "def f(a):\n    return a * a\n"
    assert solution(fenced(old, new)).code == new


def test_what_is_shown_as_a_mistake_does_not_replace_the_code() -> None:
    wrong = "def add(a, b):\n    return a - b\n"
    assert solution(f"{BLOCK}\nA common mistake:\n\n```python\n{wrong}```\n").code == ADD


@pytest.mark.parametrize(
    "caption",
    [
        "错误的写法（不要这样）：",
        "常见错误：",
        "Häufiger Fehler (so nicht):",
        "Ein falsches Beispiel:",
        "Versión incorrecta:",
        "Erreur fréquente :",
        "よくある間違い:",
        "Неправильный вариант:",
    ],
)
def test_a_mistake_is_known_in_other_languages(caption: str) -> None:
    wrong = "def add(a, b):\n    return a - b\n"
    assert solution(f"{BLOCK}\n{caption}\n\n```python\n{wrong}```\n").code == ADD


@pytest.mark.parametrize(
    "caption",
    ["正确的写法：", "Das war falsch. Die verbesserte Fassung:", "Esto es incorrecto. Versión corregida:", "Corrigé :"],
)
def test_a_correction_replaces_the_code_in_other_languages(caption: str) -> None:
    wrong = "def add(a, b):\n    return a - b\n"
    assert solution(f"```python\n{wrong}```\n{caption}\n\n{BLOCK}").code == ADD


def test_code_in_two_files_becomes_one() -> None:
    helper, rest = (
        "def square(x):\n    return x * x\n",
        "def f(a, b):\n    return int((square(a) + square(b)) ** 0.5)\n",
    )
    for line in ("from utils import square\n\n", "from .utils import (\n    square,\n)\n"):
        guard = '\nif __name__ == "__main__":\n    print(f(3, 4))\n'
        answer = f"utils.py\n```python\n{helper}```\nsolution.py\n```python\n{line}{rest}{guard}```\n"
        assert space_of(answer)["f"](3, 4) == 5  # type: ignore[operator]


def test_what_is_imported_from_the_library_is_not_the_answer_s_own() -> None:
    answer = fenced("def gcd(a, b):\n    return a\n", "from math import gcd\n\ndef f(a, b):\n    return gcd(a, b)\n")
    assert "from math import gcd" in solution(answer).code


@pytest.mark.parametrize(
    "code",
    [
        "import html\n\ndef escape(s):\n    return s.replace('<', '&lt;')  # & becomes &amp;\n",
        "def mask(a, lt):\n    return a & lt\n",
        'CONFIG = {"code": "def f(): pass"}\n',
        "END = '<|im_end|>'\n\ndef end(s):\n    return s + END\n",
    ],
)
def test_code_that_only_looks_like_another_form_stays_as_it_is(code: str) -> None:
    assert solution(f"```python\n{code}```\n").code == code


def test_a_diff_of_a_part_is_not_taken_for_the_whole() -> None:
    diff = "@@ -10,2 +10,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"
    assert solution(f"```diff\n{diff}```\n").code == diff


def test_json_without_code_is_what_it_is() -> None:
    answer = '```json\n{"name": "add", "words": ["def", "return"]}\n```\n'
    assert solution(answer).code == '{"name": "add", "words": ["def", "return"]}\n'


def test_two_functions_that_were_both_asked_for_are_both_there() -> None:
    answer = "The first:\n```python\ndef f(): return 1\n```\nThe second:\n```python\ndef g(): return 2\n```\n"
    assert {"f", "g"} <= space_of(answer).keys()


def test_a_second_version_under_a_name_of_its_own_is_there_too() -> None:
    assert adds(f"```python\ndef add_v1(a, b):\n    return a - b\n```\nor, better:\n{BLOCK}")


def test_an_alternative_is_left_out() -> None:
    answer = f"{BLOCK}\nAlternatively:\n```python\nimport operator\n\ndef add_by_operator(a, b):\n    return 0\n```\n"
    assert solution(answer).code == ADD


def test_a_program_keeps_its_end() -> None:
    answer = fenced("def double(n):\n    return 2 * n\n", "n = int(input())\nprint(double(n))\n")
    assert "print(double(n))" in solution(answer).code


def test_a_script_in_steps_is_joined() -> None:
    answer = fenced("words = input().split()\n", "words.sort()\n", "print(*words)\n")
    assert solution(answer).code == "words = input().split()\n\nwords.sort()\n\nprint(*words)\n"


def test_a_constant_like_any_other_name_is_not_enough_to_join_an_example() -> None:
    answer = fenced("def f(x):\n    y = x + 1\n    return y\n", "y = f(2)\nprint(y)\n")
    assert solution(answer).code == "def f(x):\n    y = x + 1\n    return y\n"


def test_tests_that_were_asked_for_are_an_answer() -> None:
    tests = "def test_add():\n    assert add(1, 2) == 3\n"
    assert solution(f"```python\n{tests}```\n").code == tests


UNFENCED = {
    "alone": ADD,
    "prose before": f"Sure! Here's the function:\n\n{ADD}",
    "prose behind": f"{ADD}\nThis function adds two numbers (a and b).\n",
    "prose around": f"Certainly.\n\n{ADD}\nNote: it doesn't check its arguments.\n",
    "prose with an open bracket": f"Here it is (as you wished:\n{ADD}",
    "prose that parses": f"Sure\n\n{ADD}\nDone\n",
    "a list behind": f"{ADD}\n- first it adds\n- then it returns\n",
    "a heading before": f"## Solution\n\n{ADD}\n## Explanation\n\nIt adds.\n",
    "a transcript behind": f"{ADD}\n>>> add(1, 2)\n3\n>>> add(5, 6)\n11\n",
    "a transcript before": f">>> add(1, 2)\n3\n\n{ADD}",
    "a transcript of all": ">>> def add(a, b):\n...     return a + b\n...\n>>> add(1, 2)\n3\n",
    "output behind": f"{ADD}\nOutput: 3\n",
    "a language's name before": f"python\n{ADD}",
    "a button's words before": f"python\nCopy code\n{ADD}",
    "in two parts": (
        "First:\n\ndef plus(a, b):\n    return a + b\n\n"
        "Then what was asked for:\n\ndef add(a, b):\n    return plus(a, b)\n"
    ),
    "imports apart": "Import this:\n\nimport operator\n\nand then:\n\ndef add(a, b):\n    return operator.add(a, b)\n",
    "four columns in": "So:\n\n    def add(a, b):\n        return a + b\n\nThat's all.\n",
    "a tab in": "So:\n\n\tdef add(a, b):\n\t\treturn a + b\n\nThat's all.\n",
    "if and else": (
        "Here:\n\ndef add(a, b):\n    return a + b\n\n"
        "if add(1, 1) == 2:\n    x = 1\nelse:\n    x = 2\n\nFine, isn't it?\n"
    ),
    "a decorator": "Here:\n\nimport functools\n\n@functools.cache\ndef add(a, b):\n    return a + b\n\nIt's fast.\n",
    "a call over lines": "Here:\n\nadd = dict(\n    a=lambda a, b: a + b,\n)['a']\n\nIt's odd, isn't it?\n",
    "a stray fence behind": f"{ADD}```\n\nThis adds.\n",
    "a stray fence behind, prose before": f"Sure:\n\n{ADD}```\n\nThis adds.\n",
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", UNFENCED)
def test_where_nothing_is_fenced_what_parses_is_the_code(name: str, newline: str) -> None:
    assert adds(UNFENCED[name].replace("\n", newline))


@pytest.mark.parametrize(
    "prose",
    [
        "I cannot help with that.",
        "Sure",
        "To add two numbers, use the plus sign. For example, 1 + 2 is 3.",
        "- first\n- second\n",
        "1. Read the file.\n2. Sort its lines.\n",
        "# Title\n\nSome words, and more of them.\n",
        "Which language do you want?\n\nTell me: Python or Go?\n",
        "",
        "   \n",
        "```\n```",
        "```python\n\n```\nThat was it.",
    ],
)
def test_an_answer_without_code_has_none(prose: str) -> None:
    block = solution(prose)
    assert (block.code, block.fenced) == ("", False)


@pytest.mark.parametrize(
    "code",
    [
        "def add(a, b:\n    return a + b\n",
        "def add(a, b):\n    return a +\n\nprint(add(1, 2))\n",
        "package main\n\nfunc add(a int, b int) int {\n\treturn a + b\n}\n",
        "function add(a, b) {\n  return a + b;\n}\n",
        "#include <stdio.h>\nint main() {\n  return 0;\n}\n",
    ],
)
def test_broken_code_and_code_of_other_languages_is_code_all_the_same(code: str) -> None:
    assert solution(code).code == code
