"""The one entry. Without a command the window; else generate, test or models."""

import os
import sys
from pathlib import Path

try:
    from engine.device import prepare_environment
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


def has_display() -> bool:
    """Whether a window can open: always on macOS and Windows, elsewhere when a display server is named."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def shell_name(program: str) -> str:
    """How the running Python is called from here: short when it lies below the current folder."""
    path = Path(program)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else program


def main(arguments: list[str] | None = None) -> int:
    prepare_environment()
    words = sys.argv[1:] if arguments is None else arguments
    from app.cli import main as command_line  # after the environment, which numeric libraries read when imported

    if words not in ([], ["--demo"]):
        return command_line(words)
    if not has_display():
        print(_NO_DISPLAY.format(python=shell_name(sys.executable)))
        return 0
    from app.start import main as open_window  # Qt, only now

    return open_window(words)


if __name__ == "__main__":
    sys.exit(main())
