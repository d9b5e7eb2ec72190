"""The code inside an answer, byte for byte as the model wrote it.

CommonMark's fence rules, with what answers of small models need besides. A CommonMark library is no help
here: it rewrites line endings, tabs and NUL, and it ends a block at a fence inside a Python docstring.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

PYTHON = frozenset({"python", "py", "python3", "py3"})
ASIDE = frozenset(
    {"bash", "sh", "shell", "zsh", "console", "powershell", "cmd", "text", "txt", "plaintext", "output", "log", "diff"}
)
_MARKDOWN = frozenset({"markdown", "md"})
_LARGEST_PARSED = 200_000  # characters; above it a block is compared by its text only

# A line ends at LF, CRLF or CR, and nowhere else: U+2028 and form feeds belong to the code.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
# Any indentation may come before a fence, and list markers: nobody means "indented code" by an indented fence.
_OPENING = re.compile(r"(?P<prefix>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")
_CLOSING = re.compile(r"(?P<prefix>[ \t]*)(?P<marks>`{3,}|~{3,})[ \t]*[\r\n]*\Z")
_LANGUAGE = re.compile(r"[\s{.]*([\w+#-]+)")
_PYTHON_LEXEME = re.compile(r"""\#.*|\"{3}|'{3}|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?""", re.DOTALL)


@dataclass(frozen=True)
class CodeBlock:
    """``language`` is the fence's first word in lower case, or empty; ``closed``: its closing fence was there.

    ``fenced`` False means that the answer had no block and ``code`` is the whole answer.
    """

    code: str
    language: str = ""
    closed: bool = True
    fenced: bool = True

    @property
    def maybe_python(self) -> bool:
        return not self.language or self.language in PYTHON


@dataclass(frozen=True)
class Fence:
    """An opening fence: its ticks or tildes, the language it names, and the columns in front of it."""

    marks: str
    language: str
    width: int

    @property
    def may_hold_python(self) -> bool:
        return not self.language or self.language in PYTHON


def blocks(answer: str) -> list[CodeBlock]:
    """Every fenced block, in order. ``"".join`` of a block's lines is its code: no byte is added or changed.

    A fence closes with at least as many ticks (or tildes) as it opened with, indented less than four columns
    further, and not inside an open triple-quoted string of Python. Inside a list, the indentation of the
    opening fence is taken off every line. A block that is never closed reaches to the end.
    """
    lines = lines_of(answer)
    found: list[CodeBlock] = []
    at, strings_can_be_trusted = 0, True
    while at < len(lines):
        fence = opening(lines[at])
        at += 1
        if fence is None:
            continue
        closings = _closings(lines, at, fence)
        end = first = next(closings, None)
        if first is not None and strings_can_be_trusted and fence.may_hold_python:
            end = _outside_strings(lines, at, first, closings)
            if end is None:  # the quotes never balance, so they say nothing about this answer
                end, strings_can_be_trusted = first, False
        found.append(_block(lines, at, end, fence))
        at = len(lines) if end is None else end + 1
    return found


def end_of_first_block(answer: str) -> int | None:
    """Where the first block with an answer's code in it is over, whatever follows: right behind its closing fence.

    None while that is open. Shell commands, printed output and empty blocks are not what was asked for. A closing
    fence counts when its line has ended, because more on it would make it an opening one, and outside of strings.
    """
    lines = lines_of(answer)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines.pop()
    at = 0
    while at < len(lines):
        fence = opening(lines[at])
        at += 1
        if fence is None:
            continue
        closings = _closings(lines, at, fence)
        end = next(closings, None)
        if end is not None and fence.may_hold_python:
            end = _outside_strings(lines, at, end, closings)
        if end is None:
            return None
        block = _block(lines, at, end, fence)
        if block.code.strip() and block.language not in ASIDE:
            return sum(map(len, lines[:end])) + len(lines[end].rstrip("\r\n"))
        at = end + 1
    return None


def solution(answer: str) -> CodeBlock:
    """The one block that answers the prompt; the whole answer when it has no block.

    Of Python blocks: the first that defines a function or class, since what follows it is mostly an example of
    its use; unless a later block defines all of that again, as an improved version does. Of others: the longest.
    Shell commands and printed output count only when there is nothing else. Code that began without a fence and ends
    at one is what stands before it.
    """
    if begun := begun_without_fence(answer):
        return CodeBlock(begun)
    found = [block for block in blocks(answer) if block.code.strip()]
    if not found:
        return CodeBlock(answer, fenced=False)
    found = [block for block in found if block.language not in ASIDE] or found
    chosen: CodeBlock | None = None
    wanted: frozenset[str] = frozenset()
    for block in found:
        names = _definitions(block) if block.maybe_python else frozenset()
        if names and names >= wanted:
            chosen, wanted = block, wanted or names
    if chosen is None:
        python = [block for block in found if block.language in PYTHON]
        chosen = max(python or found, key=lambda block: len(block.code))
    if chosen.language in _MARKDOWN and blocks(chosen.code):
        return solution(chosen.code)  # the answer came wrapped in a block of Markdown
    return chosen


def begun_without_fence(answer: str) -> str:
    """What stands before the first fence, if that names no language and Python with a definition comes before it."""
    lines = lines_of(answer)
    first = next((at for at, line in enumerate(lines) if opening(line)), None)
    if not first or (fence := opening(lines[first])) is None or fence.language:
        return ""
    before = "".join(lines[:first])
    return before if _definitions(CodeBlock(before)) else ""


def parse_python(code: str) -> ast.Module | None:
    """The syntax tree, or None where there is none (or the code is too long or too deep to ask)."""
    if len(code) > _LARGEST_PARSED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a candidate is not our warning
            return ast.parse(code.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _definitions(block: CodeBlock) -> frozenset[str]:
    tree = parse_python(block.code)
    body = tree.body if tree else []
    return frozenset(
        node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )


def _columns(prefix: str) -> int:
    return len(prefix.expandtabs(4))


def _without_indent(line: str, width: int) -> str:
    """Take off at most ``width`` columns of blanks; a tab that reaches beyond them stays whole."""
    column = cut = 0
    while column < width and line[cut : cut + 1] in (" ", "\t"):
        column += 1 if line[cut] == " " else 4 - column % 4
        cut += column <= width
    return line[cut:]


def lines_of(text: str) -> list[str]:
    """Its lines with their ends; all of them together are ``text``."""
    return _LINE.findall(text)


def opening(line: str) -> Fence | None:
    """The fence that ``line`` is, if it can open a block."""
    match = _OPENING.match(line.rstrip("\r\n"))
    if match is None:
        return None
    language = _LANGUAGE.match(match["info"])
    return Fence(match["fence"], language[1].lower() if language else "", _columns(match["prefix"]))


def _block(lines: list[str], start: int, end: int | None, fence: Fence) -> CodeBlock:
    """The block from line ``start`` to its closing fence in line ``end``, or to the end of all lines."""
    code = "".join(_without_indent(line, fence.width) for line in lines[start:end])
    return CodeBlock(code, fence.language, closed=end is not None)


def closes(line: str, fence: Fence) -> bool:
    """Whether ``line`` can close ``fence``."""
    match = _CLOSING.match(line)
    return (
        match is not None
        and match["marks"][0] == fence.marks[0]
        and len(match["marks"]) >= len(fence.marks)
        and _columns(match["prefix"]) < fence.width + 4
    )


def _closings(lines: list[str], start: int, fence: Fence) -> Iterator[int]:
    """Line numbers from ``start`` on that can close ``fence``."""
    return (number for number in range(start, len(lines)) if closes(lines[number], fence))


def _outside_strings(lines: list[str], start: int, first: int, others: Iterator[int]) -> int | None:
    """The first of the closing lines that is not inside a triple-quoted string, if there is one."""
    quote, at, end = "", start, first
    while True:
        while at < end:
            quote = quote_after(lines[at], quote)
            at += 1
        if not quote:
            return end
        following = next(others, None)
        if following is None:
            return None
        end = following


def quote_after(line: str, quote: str) -> str:
    """The triple quote that is open after ``line`` when ``quote`` was open before it; empty for none."""
    at = 0
    while True:
        if quote:
            close = re.compile(rf"(?:\\.|[^\\])*?{quote}", re.DOTALL).match(line, at)
            if close is None:
                return quote
            quote, at = "", close.end()
        for lexeme in _PYTHON_LEXEME.finditer(line, at):
            if lexeme[0] in ('"""', "'''"):
                quote, at = lexeme[0], lexeme.end()
                break
        else:
            return ""
