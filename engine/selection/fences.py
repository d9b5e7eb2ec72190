"""The fences around blocks of code, as CommonMark has them and as models really write them, line by line."""

import re
from dataclasses import dataclass
from pathlib import PurePath

from engine.selection.languages import EXTENSIONS, tag_of

PYTHON = frozenset({"python", "py", "python3", "py3"})
TRANSCRIPTS = frozenset({"pycon", "pycon3", "python-repl", "python-console", "doctest", "repl"})
ASIDE = TRANSCRIPTS | frozenset(
    {"bash", "sh", "shell", "shellscript", "zsh", "console", "terminal", "powershell", "pwsh", "ps1", "cmd", "bat"}
    | {"text", "txt", "plaintext", "plain", "output", "stdout", "stderr", "stdin", "result", "log", "diff", "traceback"}
)
MARKDOWN = frozenset({"markdown", "md"})
_KNOWN = PYTHON | ASIDE | MARKDOWN | (EXTENSIONS.keys() - {""})

# A line ends at LF, CRLF or CR, and nowhere else: U+2028 and form feeds belong to the code.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
# Any indentation may come before a fence, list markers and those of quotations: nobody means "indented code" by an
# indented fence.
_PREFIX = r"(?P<prefix>[ \t]*(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])[ \t]+)*)"
_OPENING = re.compile(_PREFIX + r"(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")
_CLOSING = re.compile(r"(?P<prefix>[ \t]*)(?P<marks>`{3,}|~{3,}|'{3}|\"{3})[ \t]*[\r\n]*\Z")
_IN_QUOTES = re.compile(
    r"(?P<prefix>[ \t]*)(?P<fence>'{3}|\"{3})[ \t]*(?P<info>python|python3|py)[ \t]*\Z", re.IGNORECASE
)
_QUOTATION = re.compile(r"[ \t]{0,3}>[ \t]?")
_TAG = re.compile(
    r"(?P<prefix>[ \t]*)(?:\[(?P<brackets>python|py|code)\]|<(?P<name>python|py)>"
    r"|(?P<html><(?:pre|code)\b[^>]*>(?:[ \t]*<code\b[^>]*>)?)"
    r"|\\begin\{(?P<tex>lstlisting|minted|verbatim|python|code)\}(?:\[[^\]]*\])?(?:\{python\})?)",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(r"[\s{.]*([\w+#-]+)")
_FIRST_WORD = re.compile(r"[\s{.]*([^\s{}:,;=\"'()\[\]<>|]+)")
_A_PYTHON = re.compile(r"(?:i?python|py|pyi|jupyter|sage|cython)[-_]?[\d.]*")
_CODE_BEHIND = re.compile(r"[ \t]*(?=(?:async[ \t]+def|def|class|from|import)[ \t]+\w|@\w)")
_PYTHON_LEXEME = re.compile(r"""\#.*|`{3,}|\"{3}|'{3}|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?""", re.DOTALL)


@dataclass(frozen=True)
class Fence:
    """What opens a block, and so what closes it.

    ``marks``: its ticks, tildes or quotation marks; ``tag``: the tag that closes it, where a tag opened it.
    ``width``: columns in front of it; ``quotations``: how many ``>`` stand there. ``code_at``: where code goes on
    in the fence's own line, or -1.
    """

    marks: str
    language: str
    width: int
    quotations: int = 0
    code_at: int = -1
    tag: str = ""

    @property
    def may_hold_python(self) -> bool:
        return not self.language or self.language in PYTHON

    @property
    def names_python(self) -> bool:
        return self.language in PYTHON


def lines_of(text: str) -> list[str]:
    """Its lines with their ends; all of them together are ``text``."""
    return _LINE.findall(text)


def opening(line: str) -> Fence | None:
    """The fence that ``line`` is, or ends with, if it can open a block."""
    bare = line.rstrip("\r\n")
    if match := _OPENING.match(bare):
        language, code_at = _info(match["info"])
        quotations = match["prefix"].count(">")
        width = _columns(without_quotation(match["prefix"], quotations))
        at = match.start("info") + code_at if code_at >= 0 else -1
        return Fence(match["fence"], language, width, quotations, at)
    if match := _IN_QUOTES.match(bare):
        return Fence(match["fence"], match["info"].lower(), _columns(match["prefix"]))
    return _behind_text(bare) if "```" in bare else _tagged(bare)


def closes(line: str, fence: Fence) -> bool:
    """Whether ``line``, without its marks of quotation, closes ``fence``: with as many marks, not further in."""
    match = _CLOSING.match(line)
    return (
        match is not None
        and match["marks"][0] == fence.marks[:1]
        and len(match["marks"]) >= len(fence.marks)
        and _columns(match["prefix"]) < fence.width + 4
    )


def is_bare_fence(line: str) -> bool:
    """A line of marks and nothing else: what closes a block of somebody who did not count them."""
    match = _CLOSING.match(line)
    return match is not None and match["marks"][0] in "`~"


def without_quotation(line: str, depth: int) -> str:
    """The line without at most ``depth`` marks of quotation."""
    for _ in range(depth):
        line = _QUOTATION.sub("", line, count=1) if _QUOTATION.match(line) else line
    return line


def without_indent(line: str, width: int) -> str:
    """Take off at most ``width`` columns of blanks; a tab that reaches beyond them stays whole."""
    column = cut = 0
    while column < width and line[cut : cut + 1] in (" ", "\t"):
        column += 1 if line[cut] == " " else 4 - column % 4
        cut += column <= width
    return line[cut:]


def follow(line: str, quote: str) -> tuple[str, int]:
    """Read a line of Python behind which ``quote``, a triple one, was open (empty for none).

    The triple quote that is open after it, and where three ticks stand outside of strings and comments, or -1.
    """
    at, ticks = 0, -1
    while True:
        if quote:
            close = re.compile(rf"(?:\\.|[^\\])*?{quote}", re.DOTALL).match(line, at)
            if close is None:
                return quote, ticks
            quote, at = "", close.end()
        for lexeme in _PYTHON_LEXEME.finditer(line, at):
            if lexeme[0] in ('"""', "'''"):
                quote, at = lexeme[0], lexeme.end()
                break
            if ticks < 0 and lexeme[0].startswith("```"):
                ticks = lexeme.start()
        else:
            return "", ticks


def _behind_text(line: str) -> Fence | None:
    """A fence behind words on the same line ("So: ```python"), if a known language or a colon says that it is one."""
    ends = line.rfind("```") + 3
    begins = len(line[:ends].rstrip("`"))
    before, info = line[:begins].rstrip(), line[ends:]
    if "```" in before or not before:
        return None
    language, code_at = _info(info)
    if not (language in _KNOWN if info.strip() and code_at < 0 else before.endswith((":", "：")) or code_at >= 0):
        return None
    if code_at < 0 and language and len(info.split()) > 1:
        return None
    return Fence(line[begins:ends], language, 0, 0, ends + code_at if code_at >= 0 else -1)


def _tagged(line: str) -> Fence | None:
    match = _TAG.match(line)
    if match is None:
        return None
    rest = line[match.end() :]
    at = match.end() if rest.strip() else -1
    if match["html"]:
        closing = "</code>" if "<code" in match["html"].lower() else "</pre>"
        if "</code>" in rest.lower():  # a word of prose
            return None
        language = "python" if "python" in match["html"].lower() else ""
        return Fence("", language, _columns(match["prefix"]), 0, at, closing)
    if match["tex"]:
        language = "python" if "python" in line.lower() else ""
        return Fence("", language, _columns(match["prefix"]), 0, -1, f"\\end{{{match['tex'].lower()}}}")
    name = (match["brackets"] or match["name"]).lower()
    closing = f"[/{name}]" if match["brackets"] else f"</{name}>"
    return Fence("", "python" if name != "code" else "", _columns(match["prefix"]), 0, at, closing)


def _info(info: str) -> tuple[str, int]:
    """The language that a fence names, in lower case; and where code begins right behind it, or -1."""
    if match := _CODE_BEHIND.match(info):
        return "", match.end()
    word = _LANGUAGE.match(info)
    if word is None:
        return "", -1
    first = _FIRST_WORD.match(info)
    language = _language(word[1].lower(), first[1].lower() if first else "", info.lower())
    if language in PYTHON and (match := _CODE_BEHIND.match(info, word.end())):
        return language, match.end()
    return language, -1


def _language(word: str, first: str, info: str) -> str:
    if tag := tag_of(PurePath(first)):  # the name of a file
        return tag
    if word in _KNOWN:
        return word
    if _A_PYTHON.fullmatch(first) or re.search(r"\.py\b", info) or PYTHON & set(re.split(r"[^\w.+#-]+", info)):
        return "python"
    return word


def _columns(prefix: str) -> int:
    return len(prefix.expandtabs(4))
