"""Stdout and stderr: exact bytes into files and pipes; on a terminal, no control sequences."""

import contextlib
import json
import os
import sys
import unicodedata
from typing import Any, TextIO


def print_object(value: Any) -> None:
    """One JSON object (or array) on stdout, ASCII only, so that no encoding can spoil it."""
    _write((json.dumps(value, indent=2) + "\n").encode("ascii"))


def print_code(code: str) -> None:
    """Code on stdout: byte for byte into a pipe or file; on a terminal without control characters."""
    if sys.stdout.isatty():
        sys.stdout.write(shown(code.replace("\r\n", "\n")))
        if not code.endswith("\n"):
            sys.stdout.write("\n")
        sys.stdout.flush()
    else:
        _write(code.encode("utf-8", "surrogatepass"))


def say(sentence: str) -> None:
    """One line on stderr for a user."""
    put(sys.stderr, shown(sentence) + "\n")


def put(stream: TextIO, text: str) -> None:
    """Write what is nice to know. A reader who left, or a full disk, silences the stream and ends nothing else."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        silence(stream)


def silence(stream: TextIO) -> None:
    """From now on nothing that is written there goes anywhere, so that nothing fails when Python flushes it."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def shown(text: str) -> str:
    """``text`` with control and direction characters written as escapes; tabs and line ends stay."""
    return "".join(c if c in "\t\n" or not _commands(c) else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str, width: int = 100) -> str:
    """The first line of ``text``, at most ``width`` characters."""
    line = next((line.strip() for line in shown(text).splitlines() if line.strip()), "")
    return line if len(line) <= width else line[: width - 1] + "…"


def _commands(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
