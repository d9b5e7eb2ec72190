"""The one entry. Without a command the window; else a command, such as generate, test or models."""

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import NoReturn

_INTERRUPTED, _NO_WINDOW = 130, 2
_FOR_THE_WINDOW: tuple[list[str], ...] = ([], ["--demo"])


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


if __name__ == "__main__":  # before the imports, which take seconds in which Ctrl-C may come
    fill_missing_streams()
    if sys.argv[1:] not in _FOR_THE_WINDOW and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))

try:
    from engine.device import has_display, prepare_environment
except ModuleNotFoundError as error:
    sys.exit(
        f"This Python lacks the package {error.name}. Run `make setup` once, then `.venv/bin/python main.py`; "
        "`make run` does both."
    )

_NO_DISPLAY = """\
{why} The same job as a command:

  echo 'assert add(2, 3) == 5' > tests.py
  {python} main.py generate "Write a Python function add(a, b)." -n 8 --tests tests.py --export out/

{python} main.py --help lists everything, and {python} main.py doctor what is missing here."""


def shell_name(program: str) -> str:
    """How the running Python is called from here: short when it lies below the current folder."""
    path = Path(program)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else program


def main(arguments: list[str] | None = None) -> int:
    prepare_environment()
    words = sys.argv[1:] if arguments is None else arguments
    from app.cli import guarded  # after the environment, which numeric libraries read when imported

    return guarded(lambda: _start(words))


def _start(words: list[str]) -> int:
    from engine.session.paths import ensure_home

    ensure_home()
    if words not in _FOR_THE_WINDOW:
        from app.cli import main as command_line

        return command_line(words)
    if not has_display():
        print(_without_a_window("There is no display here, so no window."))
        return 0
    try:
        from app.start import main as open_window  # Qt, only now
    except ImportError as error:  # a library of the system that Qt needs
        return no_window(f"The window cannot open, because Qt does not load ({error}).")
    return open_window(words, no_window)


def no_window(why: str) -> int:
    """Say why no window opens, and what to do without one. Returns the exit code."""
    print(_without_a_window(why), file=sys.stderr)
    return _NO_WINDOW


def _without_a_window(why: str) -> str:
    return _NO_DISPLAY.format(why=why, python=shell_name(sys.executable))


def _run() -> NoReturn:
    from app.leaving import end

    try:
        code = main()
    except Exception:
        traceback.print_exc()
        end(1)  # here, where what the error holds still lives: threads may be among it
    end(code)


if __name__ == "__main__":
    _run()
