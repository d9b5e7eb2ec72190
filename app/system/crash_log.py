"""Uncaught errors: into the log file, and one sentence to the user."""

import contextlib
import faulthandler
import logging
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QMessageLogContext, QObject, QtMsgType, Signal, qInstallMessageHandler

log = logging.getLogger("bassline")
_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
}


class CrashLog(QObject):
    """``broke`` gives a sentence and the trace, in the thread that this object lives in."""

    broke = Signal(str, str)

    def __init__(self, folder: Path, parent: QObject | None = None):
        super().__init__(parent)
        folder = _writable(folder)
        self._handler = RotatingFileHandler(folder / "window.log", maxBytes=1_000_000, backupCount=2, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._stacks = open(folder / "crash.log", "a", encoding="utf-8")  # noqa: SIM115 - faulthandler keeps it

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Hold the hooks of Python and Qt meanwhile."""
        log.addHandler(self._handler)
        log.setLevel(logging.INFO)
        before = sys.excepthook, threading.excepthook
        sys.excepthook = self._unhandled
        threading.excepthook = lambda args: self._unhandled(args.exc_type, args.exc_value, args.exc_traceback)
        qInstallMessageHandler(_qt_says)
        faulthandler.enable(self._stacks)
        try:
            yield
        finally:
            faulthandler.disable()
            qInstallMessageHandler(None)
            sys.excepthook, threading.excepthook = before
            log.removeHandler(self._handler)
            self._handler.close()
            self._stacks.close()

    def dump_stacks(self) -> None:
        """Where every thread is, before leaving by force."""
        faulthandler.dump_traceback(self._stacks)
        self._stacks.flush()

    def note_end(self) -> None:
        """The error that is being handled ends everything."""
        details = traceback.format_exc()
        log.error("the window ended\n%s", details)
        sys.stderr.write(details)

    def _unhandled(self, kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        details = "".join(traceback.format_exception(kind, error, trace))
        log.error("unhandled\n%s", details)
        sys.stderr.write(details)
        if issubclass(kind, Exception):
            self.broke.emit(
                f"Something went wrong inside Bassline: {error or kind.__name__}. Your texts are kept.", details
            )


def _writable(folder: Path) -> Path:
    """``folder``, or one among the temporary files: a full or read-only disk is no reason to have no window."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "crash.log", "a", encoding="utf-8"), open(folder / "window.log", "a", encoding="utf-8"):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="bassline-logs-"))


def _qt_says(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
    log.log(_LEVELS.get(kind, logging.ERROR), "Qt: %s", message)
    if kind not in _LEVELS or kind == QtMsgType.QtWarningMsg:
        sys.stderr.write(f"{message}\n")
