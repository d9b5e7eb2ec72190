"""The start of the process, in a checkout and an installation: opens the window or runs a command.

Streams and Ctrl-C are set up before anything heavy is imported, because the imports take seconds. Until then, and until
the window has handlers of its own, whoever calls ``run`` answers a KeyboardInterrupt with the exit code 130.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import NoReturn

from app.invocation import shell_name
from app.system.leaving import end

_INTERRUPTED = 130
_BAD_USE = 2
_NO_WINDOW = """\
{why} The same job as a command:

  echo 'assert add(2, 3) == 5' > tests.py
  {program} generate "Write a Python function add(a, b)." -n 8 --tests tests.py --export out/

{program} --help lists everything, and {program} doctor what is missing here."""
_LACKS = (
    "This Python lacks the package {name}. In a checkout run `make setup` once, then `.venv/bin/bassline`; otherwise "
    "install Bassline again, with its dependencies."
)
_NO_QT = (
    "bassline: The window needs the package {name}, which is not installed; the commands work without it, and "
    "`{program} doctor` says how to install it."
)


def run() -> NoReturn:
    """The whole process: reads ``sys.argv``, ends with the exit code."""
    words = sys.argv[1:]
    if not opens_window(words) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    fill_missing_streams()
    try:
        code = _start(words)
    except Exception:
        traceback.print_exc()
        end(1)  # here, where what the error holds still lives: threads may be among it
    end(code)


def fill_missing_streams() -> None:
    """Where the shell closed stdin, stdout or stderr (``>&-``), nothing is read, and output goes nowhere."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def opens_window(words: Iterable[str]) -> bool:
    """Whether there is no command, only options of the window. Anything else is for the command line to judge."""
    left = iter(words)
    for word in left:
        if word == "--log" and next(left, None) is not None:
            continue
        if word not in ("--demo", "--log-text") and not word.startswith("--log="):
            return False
    return True


def _start(words: list[str]) -> int:
    try:
        from engine.device import prepare_environment

        prepare_environment()
        from app.cli import guarded  # after the environment, which numeric libraries read when imported
        from app.cli import main as command_line
    except ModuleNotFoundError as error:
        sys.exit(_LACKS.format(name=error.name))
    return guarded(lambda: _with_a_home(lambda: _window(words) if opens_window(words) else command_line(words)))


def _with_a_home(play: Callable[[], int]) -> int:
    from engine.session.paths import ensure_home

    ensure_home()
    return play()


def _window(words: list[str]) -> int:
    from app.cli.arguments import parser
    from engine import logs
    from engine.device import has_display

    arguments = parser().parse_args(words)
    if not has_display():
        print(_without_a_window("There is no display here, so no window."))
        return 0
    if arguments.log is not None:
        logs.start(arguments.log, texts=arguments.log_text)
    try:
        from app.window.start import main as open_window  # Qt, only now
    except ModuleNotFoundError as error:
        print(_NO_QT.format(name=error.name, program=shell_name()), file=sys.stderr)
        return _BAD_USE
    except ImportError as error:  # a library of the system that Qt needs
        return no_window(f"The window cannot open, because Qt does not load ({error}).")
    return open_window(["--demo"] if arguments.demo else [], no_window)


def no_window(why: str) -> int:
    """Say why no window opens, and what to do without one. Returns the exit code."""
    print(_without_a_window(why), file=sys.stderr)
    return _BAD_USE


def _without_a_window(why: str) -> str:
    return _NO_WINDOW.format(why=why, program=shell_name())
