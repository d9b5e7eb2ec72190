"""What a command reads before it starts. Every way in which that can fail is one sentence."""

import argparse
import sys
from pathlib import Path

from engine.contract import BadRequest

STDIN = "-"


def read_prompt(arguments: argparse.Namespace) -> str:
    """The prompt from the argument, a file or stdin. Raises BadRequest."""
    if arguments.prompt is not None and arguments.prompt_file is not None:
        raise BadRequest("Give the prompt either as an argument or with --prompt-file, not both.")
    if STDIN in (arguments.prompt, arguments.prompt_file):
        return _decoded(sys.stdin.buffer.read(), "The prompt on stdin")
    if arguments.prompt_file is not None:
        return read_text(Path(arguments.prompt_file), "prompt file")
    if arguments.prompt is None:
        raise BadRequest("There is no prompt; write it in quotes, or use - for stdin or --prompt-file.")
    return str(arguments.prompt)


def read_tests(path: Path | None) -> str:
    """The tests, byte for byte; empty when none were named. Raises BadRequest, also for a file without any."""
    if path is None:
        return ""
    tests = read_text(path, "tests file")
    if not tests.strip():
        raise BadRequest(f"The tests file {path} is empty; write at least one assert in it.")
    return tests


def read_text(path: Path, what: str) -> str:
    """UTF-8 text with its line endings and byte order mark as they are. Raises BadRequest."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadRequest(f"The {what} {path} does not exist.") from None
    except IsADirectoryError:
        raise BadRequest(f"The {what} {path} is a folder; name a file.") from None
    except OSError as error:
        raise BadRequest(f"The {what} {path} cannot be read: {error.strerror or error}.") from None
    return _decoded(data, f"The {what} {path}")


def _decoded(data: bytes, subject: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadRequest(f"{subject} is not UTF-8 text (line {line}); save it as UTF-8.") from None
