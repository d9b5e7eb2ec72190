"""See the package."""

import argparse
import sys

import tests.seeded_bugs as package
from tests.seeded_bugs import AREAS, BUGS
from tests.seeded_bugs.planting import is_caught


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.seeded_bugs", description=(package.__doc__ or "").split("\n")[0]
    )
    parser.add_argument("names", nargs="*", choices=[[], *AREAS, *(bug.name for bug in BUGS)], metavar="NAME")
    names = parser.parse_args().names or list(AREAS)
    width = max(len(bug.name) for bug in BUGS)
    print(f"{'bug':{width}} {'caught':7} {'failures':16} what it is")
    missed = 0
    for area, bugs in AREAS.items():
        for bug in bugs:
            if area in names or bug.name in names:
                caught, counts = is_caught(bug)
                missed += not caught
                words = bug.what + (" (had to be taught)" if bug.taught else "")
                print(f"{bug.name:{width}} {'yes' if caught else 'NO':7} {counts:16} {words}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
