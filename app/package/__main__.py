"""The command ``bassline``, and ``python -m bassline``."""

import os
import sys


def main() -> int:
    try:
        here = os.path.dirname(os.path.abspath(__file__))
        installed = os.path.isdir(os.path.join(here, "engine"))
        sys.path.insert(0, here if installed else os.path.dirname(os.path.dirname(here)))
        from app.entry import run

        return run()
    except KeyboardInterrupt:  # before there is a handler
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
