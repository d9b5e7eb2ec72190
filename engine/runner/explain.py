"""What went wrong in a test, in a line that a user reads."""

import re

import pytest

from engine.runner import forms
from engine.runner.verdicts import Outcome

LONGEST = 2000  # characters of an explanation that travel
# pytest shows what is called at the top level of a script as an object; its name is what was written there.
_CALLED = re.compile(r"<(?:function|built-in function|class) '?(?:solution\.)?([\w.]+)'?(?: at 0x[0-9a-f]+)?>\(")
_FILE = f"{forms.SOLUTION}.py"


def message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be shown)"


def of_the_candidate(error: BaseException) -> bool:
    """Whether it came out of the candidate: over the link between the boxes, or through the candidate's own lines."""
    if getattr(error, "_bassline_at", None) is not None:
        return True
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.endswith(("/split/link.py", f"/{_FILE}")):
            return True
        trace = trace.tb_next
    return False


def is_good_end(error: SystemExit) -> bool:
    """``sys.exit()``, ``exit(0)`` and ``unittest.main()`` of the tests, when nothing has failed."""
    return error.code in (None, 0) and not of_the_candidate(error)


def explain(error: BaseException) -> tuple[Outcome, str]:
    """Outcome and explanation: FAILED for an assertion of the tests, ERROR for anything else that was raised."""
    lines: dict[str, int] = {}  # name of a file -> the innermost line of it
    trace = error.__traceback__
    while trace is not None:
        lines[trace.tb_frame.f_code.co_filename.rpartition("/")[2]] = trace.tb_lineno
        trace = trace.tb_next
    # From another box only the line comes over, if the candidate raised it.
    at = getattr(error, "_bassline_at", None) or lines.get(_FILE)
    text = message(error)
    if isinstance(error, AssertionError | pytest.fail.Exception) and at is None:
        text = "\n".join(line for line in text.splitlines() if "Use -v to get more diff" not in line).strip()
        text = _CALLED.sub(r"\1(", text)
        return Outcome.FAILED, (f"line {lines[forms.FILE]}: {text}" if forms.FILE in lines else text)[:LONGEST]
    where = ""
    if at is not None:
        where = f" (line {at} of the candidate)"
    elif forms.FILE in lines:
        where = f" (line {lines[forms.FILE]} of the tests)"
    if isinstance(error, SyntaxError) and str(error.filename).rpartition("/")[2] == _FILE:
        text, where = str(error.msg), f" (line {error.lineno} of the candidate)"
    elif isinstance(error, ImportError) and forms.SOLUTION in (error.name, _imported(text)):
        text = text.replace(" from 'solution'", "").split(" (")[0] + ": the candidate does not define it"
    return Outcome.ERROR, f"{type(error).__name__}: {text[:LONGEST]}".rstrip(": ") + where


def _imported(text: str) -> str:
    found = re.match(r"cannot import name '\w+' from '(\w+)'", text)
    return found[1] if found else ""
