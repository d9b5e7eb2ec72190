"""The one entry. Without a command the window; else generate, test or models."""

import os
import sys

from engine.device import prepare_environment

_NO_DISPLAY = """\
There is no display here, so no window. The same job as a command:

  python main.py generate "Write a Python function add(a, b)." -n 8 --tests tests.py --export out/

python main.py --help lists everything."""


def has_display() -> bool:
    """Whether a window can open: always on macOS and Windows, elsewhere when a display server is named."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def main(arguments: list[str] | None = None) -> int:
    prepare_environment()
    words = sys.argv[1:] if arguments is None else arguments
    from app.cli import main as command_line  # after the environment, which numeric libraries read when imported

    if words not in ([], ["--demo"]):
        return command_line(words)
    if not has_display():
        print(_NO_DISPLAY)
        return 0
    from app.start import main as open_window  # Qt, only now

    return open_window(words)


if __name__ == "__main__":
    sys.exit(main())
