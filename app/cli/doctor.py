"""``doctor``: check this machine, and say how to get what is missing."""

import argparse
import textwrap
from typing import Any

from app.cli.output import print_object, shown
from engine.doctor.finding import BAD, MARKS

_WIDTH = 112


def add_doctor(commands: "argparse._SubParsersAction[Any]") -> None:
    command = commands.add_parser(
        "doctor",
        help="check this machine, and say how to get what is missing",
        description="Looks at machine, packages, sandbox, models and display. Exit code: 0, or 1 if anything is BAD.",
        allow_abbrev=False,
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")


def doctor(arguments: argparse.Namespace) -> int:
    from engine.doctor.examination import examine  # what it looks at is its own: nothing of it is needed elsewhere here

    subjects = examine()
    if arguments.json:
        print_object({subject: [vars(finding) for finding in findings] for subject, findings in subjects.items()})
    else:
        for subject, findings in subjects.items():
            print(subject)
            for finding in findings:
                _print(MARKS[finding.state], finding.name, finding.text)
                if finding.advice:
                    _print("", "", f"-> {finding.advice}")
            print()
    return int(any(finding.state == BAD for findings in subjects.values() for finding in findings))


def _print(mark: str, name: str, text: str) -> None:
    """Three columns; long text goes on below itself."""
    beginning = f"  {mark:<5} {name:<19} "
    lines = textwrap.wrap(shown(text), _WIDTH - len(beginning), break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines):
        print((beginning if number == 0 else " " * len(beginning)) + line)
