"""Code that no fence marks: the parts of a text that are Python, whatever prose stands around them."""

import ast
import re
from collections.abc import Iterator, Sequence

from engine.selection.fences import follow, lines_of
from engine.selection.python_code import parse_python

_GOES_ON = re.compile(r"(?:else|elif|except|finally|case)\b|[)\]}]")
_SURELY_CODE = re.compile(r"(?:async[ \t]+def|def|class)[ \t]+\w|import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b|@\w")
_PROMPT = re.compile(r"[ \t]*(>>>|\.\.\.:?|In \[\d*\]:)(?: |$)")  # of Python and of IPython
_LITERAL_OR_COMMENT = re.compile(r"""\#.*|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?""", re.DOTALL)
_LOOKS_LIKE_CODE = re.compile(
    r"\s*(?:(?:async\s+)?def\s+\w+\s*\(|class\s+\w+.*[:{]|import\s+[\w.{]+;?\s*$|from\s+\S+\s+import\b|@\w+|#include\b|"
    r"(?:func|fn|function|public|private|static|const|let|var|package|using|struct|impl|return)\s+\S+|"
    r"(?:for|while|if|elif|with|try)\b.*:\s*$|[\w.\[\]]+(?:\s*:\s*[^\s=]+(?:[\[|][^=]*)?)?\s*(?:[-+*/|&:]?=)\s*\S)"
    r"|.*[{};]\s*$|\s{2,}\S+\(.*\)\s*$",
    re.IGNORECASE,
)
_STRONG = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AugAssign),
    *(ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Assert, ast.Raise, ast.Match),
)
_STRONG_VALUES = (ast.Call, ast.Await, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LONGEST_LOOKED_AT = 200_000  # characters


def python_in(text: str) -> list[str]:
    """The stretches of ``text`` that are Python, in order; what stands indented counts if nothing stands at the margin.

    Of a transcript of the interactive interpreter, what was typed.
    """
    if len(text) > _LONGEST_LOOKED_AT or not text.strip():
        return []
    if is_code(text):
        return [text]
    lines = lines_of(text)
    if spans := _code_spans(lines):
        kept = {line for span in spans for line in lines_of(span)}
        rest = "".join(line for line in lines if line not in kept)
        return [text] if looks_like_code(rest) else spans  # code with a mistake in it, and no prose
    return _indented(lines) or _typed(lines)


def looks_like_code(text: str) -> bool:
    """Whether ``text`` is code of whatever language, broken perhaps, rather than prose."""
    lines = [line for line in lines_of(text[:_LONGEST_LOOKED_AT].removeprefix("\ufeff")) if line.strip()]
    return 3 * sum(_LOOKS_LIKE_CODE.match(line[:500]) is not None for line in lines) > len(lines)


def typed_in(text: str) -> str:
    """What was typed in a transcript of the interactive interpreter; empty if ``text`` is none."""
    return "".join(_typed(lines_of(text)))


def is_code(text: str) -> bool:
    """All of it parses, and neither its first nor its last statement is a word of prose."""
    tree = parse_python(text)
    return tree is not None and bool(tree.body) and all(map(_is_strong, (tree.body[0], tree.body[-1])))


def _is_strong(node: ast.stmt) -> bool:
    """A statement that nobody writes by accident: words are names, lists in Markdown are subtractions."""
    if isinstance(node, ast.Expr):
        is_docstring = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return is_docstring or isinstance(node.value, _STRONG_VALUES)
    return isinstance(node, _STRONG) or (isinstance(node, ast.AnnAssign) and node.value is not None)


def _code_spans(lines: Sequence[str]) -> list[str]:
    found: list[str] = []
    pending: list[str] = []  # blank lines and comments, which belong to the code if more of it follows
    code: list[str] = []
    for statement in _statements(lines):
        text = "".join(statement)
        tree = parse_python(text)
        if tree is not None and not tree.body:
            pending += statement
        elif tree is not None and all(map(_is_strong, tree.body)):
            code += pending if code else _directly_before(pending)
            code += statement
            pending = []
        else:
            found += ["".join(_without_blank_end(code))] if code else []
            code, pending = [], []
    return [*found, "".join(_without_blank_end(code))] if code else found


def _directly_before(lines: list[str]) -> list[str]:
    """Comments that stand right above what follows."""
    blank = max((at for at, line in enumerate(lines) if not line.strip()), default=-1)
    return lines[blank + 1 :]


def _without_blank_end(lines: list[str]) -> list[str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def _statements(lines: Sequence[str]) -> Iterator[list[str]]:
    """The lines of each statement at the margin, with what is indented below it."""
    statement: list[str] = []
    quote, depth, is_decorated, is_continued = "", 0, False, False
    for line in lines:
        at_margin = line[:1] not in (" ", "\t", "\r", "\n", "") and not quote
        if at_margin and depth and _SURELY_CODE.match(line):
            depth = 0  # it was a bracket of prose
        starts = at_margin and not (depth or is_continued or is_decorated or _GOES_ON.match(line))
        if statement and (starts or _is_comment_or_blank(line, statement)):
            yield statement
            statement = []
        statement.append(line)
        if not quote:
            is_decorated = at_margin and line.startswith("@")
            depth = _depth_after(line, depth)
        quote = follow(line, quote)[0]
        is_continued = line.rstrip("\r\n").endswith("\\")
    if statement:
        yield statement


def _is_comment_or_blank(line: str, statement: list[str]) -> bool:
    """A blank line behind nothing but blank lines and comments goes on with these."""
    return not line.strip() and all(not one.strip() or one.startswith("#") for one in statement)


def _depth_after(line: str, depth: int) -> int:
    plain = _LITERAL_OR_COMMENT.sub("", line)
    opened = sum(map(plain.count, "([{"))
    return max(0, depth + opened - sum(map(plain.count, ")]}"))) if opened or depth else 0


def _indented(lines: Sequence[str]) -> list[str]:
    """Code in stretches that stand in from the margin, without the columns that they share."""
    found: list[str] = []
    span: list[str] = []
    for line in [*lines, "end"]:
        if not line.strip() or line[:2].isspace() or line[:1] == "\t":
            span.append(line)
            continue
        found += _code_spans(dedented(span))
        span = []
    return found


def dedented(lines: Sequence[str]) -> list[str]:
    """The lines without the blanks that all of them begin with; blank ones as they are."""
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()]
    if not indents:
        return list(lines)
    shared = min(indents, key=len)
    while any(not indent.startswith(shared) for indent in indents):
        shared = shared[:-1]
    return [line[len(shared) :] if line.strip() else line.lstrip(" \t") for line in lines]


def _typed(lines: Sequence[str]) -> list[str]:
    typed = [line[match.end() :] for line in lines if (match := _PROMPT.match(line.rstrip("\r\n")))]
    if not any(line.lstrip().startswith((">>>", "In [")) for line in lines):
        return []
    code = "".join(typed)
    return [code] if parse_python(code) else []
