"""A file of the user's own as a run: its only candidate, which is there to be tested and corrected."""

import ast
import re
import sys
import warnings

from engine.contract import CandidateState, Request
from engine.contract.states import StopReason
from engine.runner.checks import SOLUTION
from engine.session.candidate import FILE, Candidate, Origin
from engine.session.run import Run

OWN = 1  # the number of the file among the candidates


def run_of(name: str, request: Request, code: str, tests: str) -> Run:
    """A run that has ended, with ``code`` as candidate 1; ``request`` says what the code is for."""
    own = Candidate(OWN, request.seed, state=CandidateState.DONE, stop_reason=StopReason.STOP, origin=Origin(FILE))
    own.end(code)
    return Run.restored(name, request, tests, [own])


def is_own(run: Run) -> bool:
    """Whether the run is about a file of the user's own."""
    return OWN in run.candidates and run.candidates[OWN].origin.arm == FILE


def in_style_of(original: str, code: str) -> str:
    """``code`` with the line ends of ``original`` and its byte order mark."""
    lines = original.count("\n")
    if lines and original.count("\r\n") == lines:
        code = code.replace("\r\n", "\n").replace("\n", "\r\n")
    if original.startswith("\ufeff") and not code.startswith("\ufeff"):
        code = "\ufeff" + code
    return code


def importing_solution(tests: str, module: str) -> str:
    """``tests`` with what they import from ``module`` imported from ``solution``, under which tests know the code.

    Every other character stays as it is. Unchanged where they know ``solution``, and where the name is Python's own.
    """
    if module == SOLUTION or not module.isidentifier() or module in sys.stdlib_module_names:
        return tests
    mark, text = ("\ufeff", tests[1:]) if tests.startswith("\ufeff") else ("", tests)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a "\d" in somebody's tests
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return mark + _in_text(text, module)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    if any(SOLUTION in _modules(node) for node in imports):
        return tests
    lines = text.encode("utf-8", "surrogatepass").splitlines(keepends=True)
    for node in sorted(imports, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        if module in _modules(node):
            _rename(lines, node, module)
    return mark + b"".join(lines).decode("utf-8", "surrogatepass")


def _in_text(tests: str, module: str) -> str:
    """In doctests as they are pasted, and in commands."""
    tests = re.sub(rf"(?m)^(\s*>>> from ){module}(?= import\b)", rf"\g<1>{SOLUTION}", tests)
    tests = re.sub(rf"(?m)^(\s*>>> import ){module}(?=\s*$)", rf"\g<1>{SOLUTION} as {module}", tests)
    return re.sub(rf"(?m)^(\s*\$ .*?(?<![\w./]))(?:\./)?{module}\.py\b", rf"\g<1>{SOLUTION}.py", tests)


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""] if node.level == 0 else []
    return [alias.name for alias in node.names]


def _rename(lines: list[bytes], node: ast.Import | ast.ImportFrom, module: str) -> None:
    """In the one statement of ``lines`` that ``node`` is, from its end to its beginning."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    first, last = node.lineno - 1, node.end_lineno - 1
    tail = lines[last][node.end_col_offset :]
    head = lines[first][: node.col_offset]
    body = b"".join(lines[first : last + 1])[node.col_offset : -len(tail) or None].decode("utf-8", "surrogatepass")
    if isinstance(node, ast.ImportFrom):
        body = re.sub(rf"\b{module}\b", SOLUTION, body, count=1)
    else:
        body = re.sub(rf"\b{module}\b(\s+as\b)", rf"{SOLUTION}\1", body)
        body = re.sub(rf"(?<!as )\b{module}\b", f"{SOLUTION} as {module}", body, count=1)
    lines[first : last + 1] = [head + body.encode("utf-8", "surrogatepass") + tail]
