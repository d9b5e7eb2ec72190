"""Names and sentences that this project no longer uses; ``make lint`` runs it and fails for each one found.

Checked are identifiers, by their parts (``_heeded``, ``TestLamps``), and strings that a user sees: what goes through
``tr``, help of the command line, and sentences of errors. Prose, comments, other strings and recorded data are not.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("app", "benchmarks", "engine", "kernels", "main.py")

# A part of a name, in small letters, and what to say instead. Those with capitals are whole names.
NAMES = {
    "anew": "again",
    "errand": "task",
    "foretell": "predict",
    "heard": "received",
    "heed": "support, apply or listen",
    "heeded": "supported",
    "heeds": "supports",
    "lamp": "isolation, or layer",
    "lamps": "isolation, or layers",
    "said": "counts, messages, text, or a signal's event",
    "stretch": "group, range or span",
    "stretches": "groups, ranges or spans",
    "survey": "statistics, list or inspect",
    "team": "pool",
    "told": "shown, sent or reported",
    "Coming": "DeviceVerdict",
    "Flight": "InFlightStep",
    "Judged": "PendingVerdict",
    "sent": "to_device, for a function",
}

# What a user no longer reads. Those that begin with a capital are labels, and found only so; others in both cases.
PHRASES = {
    "a person": "a user, or you",
    "the person": "the user, or you",
    "anew": "again",
    "afresh": "again, or over",
    "all the same": "anyway",
    "amber": "unconfirmed",
    "soft pass": "unconfirmed pass",
    "Be quick with": "Optimize for",
    "Ends at": "Stop at",
    "At a time": "Batch size",
    "What held": "Isolation",
    "foretell": "predict",
    "heed": "support, or ignore",
    "is said": "is shown",
    "where it answers": "server URL",
    "lamp": "isolation",
}

_SHOWN_BY = ("tr", "say", "print", "add_argument", "add_parser", "ArgumentParser")
_HELP = ("help", "description", "epilog")


def parts(name: str) -> set[str]:
    """``_TestLamps2`` -> test, lamps."""
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def names_in(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Line, name and whether it is a function's or a class's, for every name that is given there."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name, True
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name, False


def texts_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every string that a user may see."""
    for node in ast.walk(tree):
        shown: list[ast.expr] = []
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            shown = list(node.exc.args)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            shown = [keyword.value for keyword in node.keywords if keyword.arg in _HELP]
            shown += node.args if name in _SHOWN_BY else []
        for expression in shown:
            for part in ast.walk(expression):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def findings(source: str) -> list[tuple[int, str]]:
    """Line and complaint, for one file's text."""
    tree = ast.parse(source)
    found = []
    for line, name, defined in names_in(tree):
        for banned, better in NAMES.items():
            whole = banned == name if banned[0].isupper() else banned in parts(name)
            if banned == "sent":
                whole = defined and name == banned
            if whole:
                found.append((line, f"the name {name}: write {better}"))
    for line, text in texts_in(tree):
        for banned, better in PHRASES.items():
            case = re.NOFLAG if banned[0].isupper() else re.IGNORECASE
            if re.search(rf"\b{re.escape(banned)}s?(?!\w)", text, case):
                found.append((line, f"“{banned}” in a text for the user: write {better}"))
    return sorted(set(found))


def main(root: Path) -> int:
    files = [
        file for name in FOLDERS for file in ([root / name] if name.endswith(".py") else (root / name).rglob("*.py"))
    ]
    complaints = [
        f"{file.relative_to(root)}:{line}: {complaint}"
        for file in sorted(files)
        for line, complaint in findings(file.read_text("utf-8"))
    ]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1]))
