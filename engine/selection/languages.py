"""Programming languages by the tag of a code block and by the ending of a file."""

import re
from pathlib import PurePath

UNKNOWN = ".txt"

# Tag -> ending. Of several tags with one ending, the first is the one to write.
EXTENSIONS = {
    "": ".py",  # an answer without a tag: this program's default language
    "bash": ".sh",
    "c": ".c",
    "csharp": ".cs",
    "c#": ".cs",
    "cs": ".cs",
    "cpp": ".cpp",
    "c++": ".cpp",
    "css": ".css",
    "go": ".go",
    "golang": ".go",
    "haskell": ".hs",
    "html": ".html",
    "java": ".java",
    "javascript": ".js",
    "js": ".js",
    "json": ".json",
    "julia": ".jl",
    "kotlin": ".kt",
    "lua": ".lua",
    "markdown": ".md",
    "perl": ".pl",
    "php": ".php",
    "python": ".py",
    "py": ".py",
    "py3": ".py",
    "python3": ".py",
    "r": ".r",
    "ruby": ".rb",
    "rust": ".rs",
    "scala": ".scala",
    "sh": ".sh",
    "shell": ".sh",
    "sql": ".sql",
    "swift": ".swift",
    "toml": ".toml",
    "typescript": ".ts",
    "ts": ".ts",
    "xml": ".xml",
    "yaml": ".yaml",
}
_ALSO = {".pyi": "python", ".h": "c", ".hpp": "cpp", ".cc": "cpp", ".htm": "html", ".yml": "yaml", ".mjs": "javascript"}
_TAGS = {ending: tag for tag, ending in reversed(EXTENSIONS.items()) if tag} | _ALSO


def extension(tag: str) -> str:
    """The ending for a block's language, with its dot; ``.txt`` where it is not known."""
    return EXTENSIONS.get(tag, UNKNOWN)


def tag_of(path: PurePath) -> str:
    """The tag for a file's language; empty where it is not known."""
    return _TAGS.get(path.suffix.lower(), "")


def fenced(text: str, tag: str = "") -> str:
    """``text`` as a block of Markdown whose fence is longer than any inside, so that it ends where it should."""
    fence = "`" * max([2, *(len(ticks) for ticks in re.findall("`+", text))]) + "`"
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{tag}\n{text}{end}{fence}\n"
