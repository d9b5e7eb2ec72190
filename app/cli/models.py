"""``models list`` and ``models fetch``."""

import argparse
import threading

from app.cli.interrupts import on_interrupt
from app.cli.output import print_object
from app.cli.progress import open_progress
from engine.contract import Loading
from engine.models import hub, sources
from engine.models.catalog import DEFAULT, Entry, catalog
from engine.models.preparation import find_entry, prepare


def list_models(arguments: argparse.Namespace) -> int:
    entries = catalog().model
    if arguments.json:
        print_object([_row(entry) for entry in entries])
        return 0
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        size = f"{entry.file.bytes / 1e6:,.0f} MB" if entry.file else ""
        notes = [text for text, true in (("on this disk", _here(entry)), ("the default here", _default(entry))) if true]
        print(f"{entry.name:<{width}}  {entry.parameters / 1e9:5.2f} B  {size:>9}  {', '.join(notes)}".rstrip())
    return 0


def _row(entry: Entry) -> dict[str, str | int | bool]:
    return {
        "name": entry.name,
        "title": entry.title,
        "parameters": entry.parameters,
        "context": entry.context,
        "licence": entry.licence,
        "draft": entry.draft,
        "download_bytes": entry.file.bytes if entry.file else 0,
        "here": _here(entry),
        "default": _default(entry),
    }


def _here(entry: Entry) -> bool:
    """Whether it can be loaded without the network."""
    on_hub = entry.safetensors is not None and hub.cached_repository(entry.safetensors.repository) is not None
    return on_hub or (entry.file is not None and sources.is_here(entry.file))


def _default(entry: Entry) -> bool:
    return entry is find_entry(DEFAULT)


def fetch(arguments: argparse.Namespace) -> int:
    """Download and convert. Raises the errors of ``engine.models.preparation.prepare``."""
    progress = open_progress(arguments.progress)
    stopped = threading.Event()

    def show(event: Loading) -> None:
        progress.event(event)

    try:
        with on_interrupt(stopped.set):
            prepared = prepare(
                arguments.model,
                precision=arguments.precision,
                device=arguments.device,
                offline=arguments.offline,
                progress=show,
                cancelled=stopped.is_set,
            )
    finally:
        progress.close()
    progress.note(f"{prepared.name} is ready to load ({prepared.precision}, {prepared.device}).")
    return 0
