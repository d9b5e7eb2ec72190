"""Reads what a command needs before it starts. Every failure is one sentence."""

import argparse
import sys
from pathlib import Path
from typing import BinaryIO

from engine.contract import BadRequest
from engine.runner import layers
from engine.session import attachments, settings
from engine.session.checked_tests import TOO_DEEP, check

STDIN = "-"
LARGEST = 16 << 20  # bytes of one input: far more than any context holds, far less than memory


def read_prompt(arguments: argparse.Namespace) -> str:
    """The prompt from the argument, a file or stdin. Raises BadRequest."""
    if arguments.prompt is not None and arguments.prompt_file is not None:
        raise BadRequest("Give the prompt either as an argument or with --prompt-file, not both.")
    if STDIN in (arguments.prompt, arguments.prompt_file):
        return _decoded(_read_stdin("The prompt on stdin"), "The prompt on stdin")
    if arguments.prompt_file is not None:
        return read_text(Path(arguments.prompt_file), "prompt file")
    if arguments.prompt is None:
        raise BadRequest("There is no prompt; write it in quotes, or use - for stdin or --prompt-file.")
    return check_text(arguments.prompt, "The prompt")


def read_suffix(arguments: argparse.Namespace) -> str:
    """The text after the gap that is to be filled; empty when there is none. Raises BadRequest."""
    return "" if arguments.suffix_file is None else read_text(Path(arguments.suffix_file), "suffix file")


def check_text(text: str, subject: str) -> str:
    """``text`` as it is. Raises BadRequest when the shell handed over bytes that are not UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadRequest(f"{subject} is not UTF-8 text; write it as UTF-8.") from None
    return text


def export_folder(name: str | None) -> Path | None:
    """Where to export to, if anywhere. Raises BadRequest for an empty name, which would mean the current folder."""
    if name is not None and not name.strip():
        raise BadRequest("The name of the export folder is empty; name one, or . for this folder.")
    return None if name is None else Path(name)


def environment_folder(name: str) -> str:
    """The virtual environment that ``--environment`` names; empty when it names none. Raises BadEnvironment.

    It is refused here, before a model is loaded. The path is absolute, since tests run in a process whose current
    folder is another one.
    """
    layers.environment(name)
    return str(Path(name).expanduser().absolute()) if name else ""


def read_tests(path: Path | None) -> str:
    """The tests, byte for byte; empty when none were named. Raises BadRequest, also when they cannot be used."""
    if path is None:
        return ""
    if not settings.load().settings.run_code:
        raise BadRequest(f"Running code is switched off in {settings.settings_file()} (run_code); nothing was run.")
    tests = read_text(path, "tests file")
    if not tests.strip():
        raise BadRequest(f"The tests file {path} is empty; write at least one assert in it.")
    if objection := check(tests).objection:
        raise BadRequest(f"The tests file {path} is nested too deeply." if objection == TOO_DEEP else objection)
    return tests


def read_code(path: Path | None) -> tuple[str, bytes]:
    """A file that is to be corrected, as text and as bytes; None: it comes from stdin. Raises BadRequest."""
    subject = "The code on stdin" if path is None else f"The file {path}"
    data = _read_stdin(subject) if path is None else read_bytes(path, "file")
    code = _decoded(data, subject)
    if not code.strip():
        raise BadRequest(f"{subject} is empty; `generate` writes code from a prompt.")
    if len(data) > attachments.LARGEST:
        raise BadRequest(
            f"{subject} has {len(data) / 1000:,.0f} kB; no context holds that. Fix a part of up to "
            f"{attachments.LARGEST / 1000:,.0f} kB."
        )
    return code, data


def read_text(path: Path, what: str) -> str:
    """UTF-8 text with its line endings and byte order mark as they are. Raises BadRequest."""
    return _decoded(read_bytes(path, what), f"The {what} {path}")


def read_bytes(path: Path, what: str) -> bytes:
    """Raises BadRequest, also for what is larger than any input can be."""
    try:
        with path.open("rb") as file:
            return _bounded(file, f"The {what} {path}")
    except FileNotFoundError:
        raise BadRequest(f"The {what} {path} does not exist.") from None
    except IsADirectoryError:
        raise BadRequest(f"The {what} {path} is a folder; name a file.") from None
    except OSError as error:
        raise BadRequest(f"The {what} {path} cannot be read: {error.strerror or error}.") from None


def _read_stdin(subject: str) -> bytes:
    try:
        return _bounded(sys.stdin.buffer, subject)
    except OSError as error:
        raise BadRequest(f"{subject} cannot be read: {error.strerror or error}.") from None


def _bounded(file: BinaryIO, subject: str) -> bytes:
    data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise BadRequest(f"{subject} is larger than {LARGEST >> 20} MiB; give a smaller one.")
    return data


def _decoded(data: bytes, subject: str) -> str:
    if b"\0" in data:
        raise BadRequest(f"{subject} is not text, since it has NUL bytes; name a text file in UTF-8.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadRequest(f"{subject} is not UTF-8 text (line {line}); save it as UTF-8.") from None
