"""The entry of a checkout. Without a command the window; else a command, such as generate, test or models.

An installed Bassline begins in ``app/package/__main__.py``; both go on in ``app/entry.py``.
"""

import os
import sys

if __name__ == "__main__":
    try:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # `python -I` leaves it out
        from app.entry import run

        run()
    except KeyboardInterrupt:  # before there is a handler
        os._exit(130)
