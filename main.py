"""The one entry. Without a command the window; else a command, such as generate, test or models."""

import os
import signal
import sys
from pathlib import Path

_INTERRUPTED = 130
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
There is no display here, so no window. The same job as a command:

  echo 'assert add(2, 3) == 5' > tests.py
  {python} main.py generate "Write a Python function add(a, b)." -n 8 --tests tests.py --export out/

{python} main.py --help lists everything."""


def shell_name(program: str) -> str:
    """How the running Python is called from here: short when it lies below the current folder."""
    path = Path(program)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else program


def main(arguments: list[str] | None = None) -> int:
    prepare_environment()
    words = sys.argv[1:] if arguments is None else arguments
    from app.cli import guarded  # after the environment, which numeric libraries read when imported
    from app.cli import main as command_line

    if words not in _FOR_THE_WINDOW:
        return command_line(words)
    if not has_display():
        return guarded(lambda: print(_NO_DISPLAY.format(python=shell_name(sys.executable))) or 0)
    from app.start import main as open_window  # Qt, only now

    return open_window(words)


if __name__ == "__main__":
    code = main()
    if code == _INTERRUPTED:
        from app.cli import leave  # threads may compute still

        leave(code)
    sys.exit(code)
