"""Which test files need the candidate's own process, and which only look as if they did."""

import pytest

from engine.runner import forms, needs

NEEDS = {
    "def test_a(monkeypatch): pass": "monkeypatch",
    "def test_a(tmp_path): pass": "tmp_path",
    "def test_a(caplog): pass": "caplog",
    "async def test_a(): pass": "async",
    "import asyncio\ndef test_a(): asyncio.run(f())": "asyncio",
    "from threading import Thread\ndef test_a(): Thread(target=f)": "threading",
    "from concurrent.futures import ThreadPoolExecutor\ndef test_a(): f": "concurrent.futures",
    "from unittest.mock import patch\n@patch('solution.x')\ndef test_a(x): pass": "patch",
    "from unittest import mock\ndef test_a():\n    with mock.patch.object(f, 'x'): pass": "patch",
    "import pytest\n@pytest.mark.usefixtures('tmp_path')\ndef test_a(): f": "tmp_path",
    "def test_a():\n    with open('x') as file: f(file)": "open",
    "from pathlib import Path\ndef test_a(): Path('x').write_text(f())": "write_text",
    "import os\ndef test_a(): os.environ['X'] = '1'": "os.environ",
    "import sys\ndef test_a(): sys.argv = ['x']": "sys.argv",
    "import sys, io\ndef test_a(): sys.stdin = io.StringIO('1')": "sys.stdin",
    "from solution import A\nclass B(A): pass\ndef test_a(): B()": "class B",
    "import solution\nclass B(solution.A[int]): pass\ndef test_a(): B()": "class B",
    "class B(A): pass\nassert B()": "class B",
    "import inspect\nassert inspect.signature(f)": "inspect",
    "import dataclasses\nassert dataclasses.asdict(f())": "asdict",
    "from dataclasses import asdict\nassert asdict(f())": "asdict",
    "import unittest\nclass T(unittest.TestCase):\n  def test_a(self):\n    with self.assertLogs(): f()": "assertLogs",
    "import solution\ndef test_a(): setattr(solution, 'x', 1)": "setattr",
    "assert issubclass(A, Enum)": "issubclass",
    "import doctest, solution\ndef test_a(): assert doctest.testmod(solution).failed == 0": "testmod",
}
KEPT_APART = [
    "assert f(1) == 2",
    "def test_a(capsys, request, recwarn): f()",
    "from unittest.mock import Mock\ndef test_a(): f(Mock())",
    "from solution import open\ndef test_a(): assert open('x')",  # the candidate's own
    "assert patch([1], 2) == [3]",
    "def test_a(): assert Account().open() and door.fields()",
    "import io\ndef test_a(): assert f(io.StringIO('1'))",
    "class Node:\n    pass\ndef test_a(): assert f(Node())",
    "import random\ndef test_a():\n    random.seed(1)\n    f()",
    "import time\ndef test_a(): time.sleep(0.1)",
    "import copy\ndef test_a(): assert f(copy.deepcopy([1]))",
    "from solution import Full\ndef test_a(): assert issubclass(Full, ValueError)",
    "class Node: pass\ndef test_a():\n    n = Node()\n    setattr(n, 'x', 1)\n    f(n)",
    "import sys, io\ndef test_a():\n    sys.stdout = io.StringIO()\n    f()",
]


@pytest.mark.parametrize("text", NEEDS)
def test_the_reason_is_named(text: str) -> None:
    assert NEEDS[text] in needs.same_process(forms.parse(text))


@pytest.mark.parametrize("text", KEPT_APART)
def test_two_boxes_will_do(text: str) -> None:
    assert needs.same_process(forms.parse(text)) == ""
