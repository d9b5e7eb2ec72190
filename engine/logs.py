"""The log of a run, for whoever wants to know what was decided and why: one file, of this process and its children.

Modules log with ``logging.getLogger(__name__)``; without ``--log`` nothing is written anywhere. Prompts, answers and
code are wrapped in ``Text``, which gives their length alone unless the user asked for more.
"""

import contextlib
import logging
import os
import platform
import re
import sys
from pathlib import Path

_FILE, _TEXTS = "BASSLINE_LOG", "BASSLINE_LOG_TEXT"
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
_OURS = ("app", "engine", "kernels")
_LIBRARIES = ("httpx2",)  # one line for each request: method, address and status

for _name in _OURS:  # else Python would write warnings to standard error as long as there is no file
    logging.getLogger(_name).addHandler(logging.NullHandler())


def start(file: Path, texts: bool = False) -> None:
    """Append to ``file`` from now on, here and in child processes. ``texts``: prompts and code as well.

    Raises OSError when the file cannot be written.
    """
    path = file.expanduser().absolute()
    _open(path)
    os.environ[_FILE] = str(path)
    os.environ[_TEXTS] = "1" if texts else ""
    logging.getLogger(__name__).info("Python %s on %s; texts: %s", platform.python_version(), sys.platform, texts)


def start_in_child() -> None:
    """In a process that Bassline has started: the same file, if there is one."""
    if path := os.environ.get(_FILE):
        try:
            _open(Path(path))
        except OSError:  # removed or full meanwhile; the work goes on
            pass


class _LogFile(logging.FileHandler):
    """Whatever is logged can be written; where the disk cannot take it, one sentence says so, and the log ends."""

    def __init__(self, path: Path):
        super().__init__(path, encoding="utf-8", errors="backslashreplace")  # appends: each line is one write

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self.addFilter(lambda record: False)
        with contextlib.suppress(OSError):
            print(f"bassline: The log {self.baseFilename} ends here: {error.strerror or error}.", file=sys.stderr)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what is left in its buffer finds no room either
            super().close()


def _open(path: Path) -> None:
    handler = _LogFile(path)
    handler.setFormatter(logging.Formatter(_FORMAT))
    for name in (*_OURS, *_LIBRARIES):
        logger = logging.getLogger(name)
        for before in [h for h in logger.handlers if isinstance(h, logging.FileHandler)]:
            logger.removeHandler(before)
            before.close()
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    handler.addFilter(_without_secrets)


def address(url: object) -> str:
    """Without the password that may stand before the host and the signature that may stand behind the path."""
    return re.sub(r"(?<=//)[^/@]*@|\?.*", "", str(url))


def _without_secrets(record: logging.LogRecord) -> bool:
    if record.name in _LIBRARIES and isinstance(record.args, tuple):
        record.args = tuple(arg if isinstance(arg, int) else address(arg) for arg in record.args)
    return True


class Text:
    """What a user or a model wrote, as an argument of a log call."""

    def __init__(self, text: str):
        self._text = text

    def __str__(self) -> str:
        return repr(self._text) if os.environ.get(_TEXTS) else f"{len(self._text):,} characters"
