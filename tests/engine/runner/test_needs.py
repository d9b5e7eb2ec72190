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
    "import random\ndef test_a():\n    with made() as random.random: f()": "(random.random)",
    "def test_a(*, monkeypatch): f()": "monkeypatch",
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
    "import random\ndef test_a():\n    random.randint = lambda a, b: b\n    f()": "random.randint",
    "import random as r\ndef test_a():\n    r.randint = lambda a, b: b\n    f()": "random.randint",
    "import builtins\ndef test_a(): builtins.input = lambda: ''": "builtins.input",
    "import time\ndef test_a(): time.time, x = (lambda: 0), 1": "time.time",
    "import datetime\nclass Fake: pass\ndef test_a(): datetime.datetime = Fake": "datetime.datetime",
    "from pathlib import Path\ndef test_a(): Path.exists = lambda self: True": "pathlib.Path.exists",
    "import os.path\ndef test_a(): del os.path.exists": "os.path.exists",
    "from os import environ\ndef test_a(): environ['X'] = '1'": "os.environ",
    "import os\ndef test_a(): os.environ.update(X='1')": "os.environ",
    "import os\ndef test_a(): os.environ |= {'X': '1'}": "os.environ",
    "import random\ndef test_a(): setattr(random, 'random', f)": "random.random",
    "import random\ndef test_a(): vars(random)['random'] = f": "random",
    "import importlib\ndef test_a():\n    m = importlib.import_module('random')\n    m.random = f": "random.random",
    "import decimal\ndef test_a(): decimal.getcontext().prec = 3": "decimal",
    "from decimal import localcontext as l\ndef test_a():\n    with l() as c: c.prec = 3": "decimal",
    "import locale\ndef test_a(): locale.setlocale(locale.LC_ALL, 'C')": "locale",
    "import socket\ndef test_a(): socket.setdefaulttimeout(1)": "sockets",
    "import os\ndef test_a(): os.chdir('/')": "folder",
    "from contextlib import chdir\ndef test_a():\n    with chdir('/'): f()": "folder",
    "import os\ndef test_a(): os.umask(0)": "umask",
    "import sys\ndef test_a(): sys.setrecursionlimit(50)": "setrecursionlimit",
    "import sys\ndef test_a(): sys.set_int_max_str_digits(0)": "set_int_max_str_digits",
    "import signal\ndef test_a(): signal.alarm(1)": "signal",
    "import time\ndef test_a(): time.tzset()": "time zone",
    "import numpy as np\ndef test_a():\n    with np.errstate(all='raise'): f()": "numpy",
    "import logging\ndef test_a(): logging.getLogger('x').addHandler(h)": "log",
    "import csv\ndef test_a(): csv.register_dialect('x')": "registry",
    "import pytest\ndef test_a():\n    with pytest.MonkeyPatch.context() as m: f()": "MonkeyPatch",
    "from unittest.mock import patch as p\n@p('random.random')\ndef test_a(x): f()": "patch",
    "import pandas as pd\ndef test_a(): assert f(pd.DataFrame())": "pandas",
    "from sympy import Symbol\nassert f(Symbol('x'))": "sympy",
    "def test_a():\n    import networkx\n    f()": "networkx",
    "from scipy import sparse\ndef test_a(): f(sparse.eye(3))": "scipy",
    "import solution\ndef test_a():\n    B = type('B', (solution.A,), {})": "derive a class",
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
    "import random\ndef test_a():\n    s = random.getstate()\n    f()\n    random.setstate(s)",
    "import numpy as np\ndef test_a():\n    np.random.seed(1)\n    a = np.zeros(3)\n    a[0] = 1\n    f(a)",
    "import pytest\npytest.shared = {}\ndef test_a(): f()",
    "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.x = 1\n        f()",
    "import os, sys\nsys.path.insert(0, os.getcwd())\ndef test_a(): f()",
    "import array\ndef test_a():\n    array = [1]\n    array[0] = 2\n    f(array)",
    "import solution\ndef test_a():\n    solution.LIMIT = 3\n    f()",
    "import warnings\ndef test_a():\n    with warnings.catch_warnings(record=True): f()",
    "from hypothesis import given, strategies as st\n@given(st.integers())\ndef test_a(n): f(n)",
    "import os\ndef test_a(): assert f(os.environ.get('HOME'))",
    "import sqlite3, pytest\ndef test_a():\n    with pytest.raises(sqlite3.Error): f()",
]


@pytest.mark.parametrize("text", NEEDS)
def test_the_reason_is_named(text: str) -> None:
    assert NEEDS[text] in needs.same_process(forms.parse(text))


@pytest.mark.parametrize("text", KEPT_APART)
def test_two_boxes_will_do(text: str) -> None:
    assert needs.same_process(forms.parse(text)) == ""
