"""``models``: list what there is, fetch one, free its disk space, check its files."""

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from app.cli.interrupts import on_interrupt
from app.cli.output import print_object, say
from app.cli.parameters import add_parameter
from app.cli.progress import Progress, open_progress
from engine.backends import registry
from engine.contract import LoadCancelled, ModelChoice
from engine.contract.parameters import PRECISION

if TYPE_CHECKING:  # what looks at models takes a third of a second to import, and other commands do without
    from engine.models.library import ListedModel

DEVICES = "{" + ",".join(("auto", *registry.kinds())) + "}"  # as help shows them

_HELP = """\
  models list             the models of the catalog, and others found on this computer
  models fetch NAME       download and convert now, so that it is ready later; Ctrl-C pauses, the same command goes on
  models remove NAME      free its disk space; --original keeps the converted copy, which is what is loaded
  models check NAME       check that its files are complete"""


def add_models(commands: "argparse._SubParsersAction[Any]") -> None:
    models = commands.add_parser(
        "models",
        help="list, fetch, remove or check models",
        description="List, download, remove and check models.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    what = models.add_subparsers(dest="models_command", metavar="COMMAND", required=True, parser_class=type(models))
    listing = what.add_parser("list", help="the models of the catalog, and others found on this computer")
    listing.add_argument("--json", action="store_true", help="print one JSON array")
    fetch = what.add_parser("fetch", help="download and convert a model now, so that it is ready later")
    fetch.add_argument("model", nargs="?", default=ModelChoice.model, help="a name from 'models list', or owner/name")
    fetch.add_argument("--offline", action="store_true", help="never use the network: say whether the model is here")
    for command in (listing, fetch):
        _add_target(command)
    remove = what.add_parser("remove", help="free the disk space of a model")
    remove.add_argument("--original", action="store_true", help="only what was downloaded; the converted copy stays")
    check = what.add_parser("check", help="check that a model's files are complete")
    for command in (remove, check):
        command.add_argument("model", help="a name from 'models list'")
    for command in (fetch, check):
        command.add_argument(
            "--progress", choices=("auto", "jsonl", "none"), default="auto", help="what to show on stderr while it runs"
        )


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--device",
        default=ModelChoice.device,
        metavar=DEVICES,
        help="where it will run, which decides the form of the weights (default: auto)",
    )
    add_parameter(command, PRECISION)


def models(arguments: argparse.Namespace) -> int:
    """Raises the errors of ``engine.models``."""
    return {"list": _list, "fetch": _fetch, "remove": _remove, "check": _check}[arguments.models_command](arguments)


def _list(arguments: argparse.Namespace) -> int:
    from engine.models import library

    rows = library.listed(arguments.device, arguments.precision)
    if arguments.json:
        print_object([vars(row) for row in rows])
        return 0
    width = max(len(row.name) for row in rows)
    for row in rows:
        print(f"{row.name:<{width}}  {_size(row):>9}  {row.licence:<10}  {_notes(row)}".rstrip())
    return 0


def _size(row: "ListedModel") -> str:
    return f"{row.parameters / 1e9:.2f} B" if row.parameters else ""


def _notes(row: "ListedModel") -> str:
    """Where it is and what it takes, in the order in which one wants to know it."""
    notes = ["the default here"] if row.default else []
    if row.source != "Catalog":
        notes.append(row.source)
    if row.original_bytes or row.converted_bytes:
        kinds = (("as published", row.original_bytes), ("converted", row.converted_bytes))
        notes.append("on this disk: " + " + ".join(f"{_mb(size)} {kind}" for kind, size in kinds if size))
    elif not row.here:
        notes.append(f"{_mb(row.download_bytes)} to fetch")
    if row.context:
        notes.append(f"context {row.context:,}")
    if row.fit:
        notes.append(row.fit)
    return "; ".join(notes)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _fetch(arguments: argparse.Namespace) -> int:
    from engine.models import library
    from engine.models.preparation import prepare

    with _watched(arguments) as (progress, stopped):
        try:
            prepared = prepare(
                arguments.model,
                precision=arguments.precision,
                device=arguments.device,
                offline=arguments.offline,
                progress=progress.event,
                cancelled=stopped.is_set,
            )
        except LoadCancelled:
            progress.note("Paused: what has arrived is kept, and the same command goes on from there.")
            raise
        progress.note(f"{prepared.name} is ready to load ({prepared.precision}, {prepared.device}).")
        row = next((row for row in library.listed() if row.name == prepared.name), None)
        if row is not None and row.original_bytes and row.converted_bytes:
            progress.note(
                f"Its converted copy is what is loaded; `models remove {row.name} --original` frees the "
                f"{_mb(row.original_bytes)} of the download."
            )
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    from engine.models import library

    freed = library.remove(arguments.model, originals_only=arguments.original)
    say(f"{_mb(freed)} are free again." if freed else f"There was nothing of {arguments.model} to remove.")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from engine.models import library

    with _watched(arguments) as (progress, stopped):
        problems = library.check(arguments.model, progress.event, stopped.is_set)
    for problem in problems:
        say(f"bassline: {problem}")
    if not problems:
        say(f"All files of {arguments.model} are complete.")
    return 1 if problems else 0


@contextmanager
def _watched(arguments: argparse.Namespace) -> Iterator[tuple[Progress, threading.Event]]:
    """Progress on stderr, and Ctrl-C as an event that long work looks at."""
    progress, stopped = open_progress(arguments.progress), threading.Event()
    try:
        with on_interrupt(stopped.set):
            yield progress, stopped
    finally:
        progress.close()
