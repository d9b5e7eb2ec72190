"""Tests as they stand in other texts: doctests in docstrings, stubs, Markdown and sessions; code between fences."""

import ast
import doctest
import re
from typing import Any

FILE = "tests.py"  # what the user's tests are called in messages
_PROMPT = re.compile(r"^[ \t]*(?:[rRuU]?(?:\"{3}|'{3}))?[ \t]*>>>", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^`\n]*$")
_QUOTES = re.compile(r"\"\"\"|'''")


def has_prompts(text: str) -> bool:
    return _PROMPT.search(text) is not None


def examples(text: str) -> list[doctest.Example]:
    """The examples of ``text`` with the lines where they stand. Raises ValueError where they do not parse.

    Of a file of Python they are those in its strings, and what it imports and assigns comes first; the functions that
    it shows are the candidate's to define.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _of_lines(_without_marks(text))
    lines = [""] * len(text.splitlines())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and has_prompts(node.value):
            for number, line in enumerate(node.value.splitlines(), node.lineno - 1):
                lines += [""] * (number + 1 - len(lines))
                lines[number] = line
    setup = [
        doctest.Example(f"{ast.unparse(statement)}\n", "", lineno=statement.lineno - 1)
        for statement in tree.body
        if isinstance(statement, ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign)
        and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")
    ]
    return setup + _of_lines("\n".join(lines) + "\n")


def _of_lines(text: str) -> list[doctest.Example]:
    text = re.sub(r"^([ \t]*>>>)(?=[^\s>])", r"\1 ", text, flags=re.MULTILINE)
    return doctest.DocTestParser().get_examples(text, FILE)


def _without_marks(text: str) -> str:
    """``text`` without the fences and quotes around examples, which would be taken for what should come out."""
    lines = []
    for line in text.splitlines():
        if _FENCE.match(line):
            line = ""
        elif len(_QUOTES.findall(line)) % 2:
            at = list(_QUOTES.finditer(line))[-1]
            rest = line[at.end() :]
            line = (line[: at.start()] if not rest.strip() else rest).rstrip()
        lines.append(line)
    return "\n".join(lines) + "\n"


def between_fences(text: str) -> str:
    """Only the lines between Markdown's fences, each where it stands; empty when there are no fences."""
    kept, inside = [], False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
            kept.append("")
        else:
            kept.append(line if inside else "")
    return "\n".join(kept) + "\n" if any(kept) else ""


def same_value(wanted: str, got: str) -> bool:
    """Whether both spell the same value of Python's own: with other quotes or spaces, a set in another order."""
    values: list[Any] = []
    for text in (wanted, got):
        try:
            values.append(ast.literal_eval(text.strip()))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return False
    first, second = values
    if type(first) is not type(second):
        return False
    return repr(first) == repr(second) or (isinstance(first, set | frozenset) and _spelled(first) == _spelled(second))


def _spelled(items: set[Any] | frozenset[Any]) -> list[str]:
    return sorted(map(repr, items))
