"""``history``: list and search earlier runs, show one, delete one."""

import argparse
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from typing import Any

from app.cli import summary
from app.cli.output import one_line, print_code, print_object, say
from engine.contract import BadRequest
from engine.session.journal import HistoryEntry, Journal, history_file
from engine.session.record import StoredRun
from engine.session.states import TestState

_LISTED = 50
_HELP = """\
  history                 the latest runs, newest first
  history WORDS           runs whose prompt or code contains all these words
  history show ID         the code of the best candidate on stdout, everything else on stderr
  history delete ID       delete a run

To search for the words "show 3", write: history "show 3"."""


def add_history(commands: "argparse._SubParsersAction[Any]") -> None:
    command = commands.add_parser(
        "history",
        help="earlier runs: list, search, show, delete",
        description="Earlier runs of the window and the command line.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument("words", nargs="*", metavar="WORDS", help="words to search for, or: show ID, delete ID")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument("--candidate", type=int, metavar="N", help="with show: this candidate instead of the best")
    command.add_argument(
        "--limit", type=int, default=_LISTED, metavar="N", help=f"list at most N runs (default: {_LISTED})"
    )


def history(arguments: argparse.Namespace) -> int:
    """Raises BadRequest, NotInHistory and HistoryUnavailable."""
    words: list[str] = arguments.words
    if arguments.candidate is not None and words[:1] != ["show"]:
        raise BadRequest("--candidate is for: history show ID --candidate N.")
    if words[:1] == ["show"]:
        return _show(_number(words), arguments)
    if words[:1] == ["delete"]:
        return _delete(_number(words))
    with _opened() as journal:
        entries = journal.entries(" ".join(words), max(1, arguments.limit))
    if arguments.json:
        print_object([_row(entry) for entry in entries])
        return 0
    for line in _lines(entries):
        print(line)
    if not entries:
        say(f"No run contains {' '.join(words)!r}." if words else "There are no runs yet.")
    return 0


def _opened() -> "closing[Journal]":
    journal = Journal(history_file())
    if journal.notice:
        say(f"bassline: {journal.notice}")
    return closing(journal)


def _number(words: list[str]) -> int:
    if len(words) != 2 or not words[1].isdecimal():
        raise BadRequest(f"Say which run: history {words[0]} ID, with a number that `history` lists.")
    return int(words[1])


def _show(id: int, arguments: argparse.Namespace) -> int:
    with _opened() as journal:
        kept = journal.load(id)
    run = kept.run
    number = run.best() if arguments.candidate is None else arguments.candidate
    if number is not None and number not in run.candidates:
        raise BadRequest(f"Run {id} has no candidate {number}; it has {', '.join(map(str, sorted(run.candidates)))}.")
    if arguments.json:
        print_object({"id": id, "began": kept.began.isoformat(), "prompt": run.request.prompt} | run.result())
        return 0
    for line in _about(kept):
        say(line)
    if number is not None:
        if run.candidates[number].has_no_code:
            say(f"Candidate {number} wrote no code; --json prints what it wrote instead.")
        print_code(run.candidates[number].code)
    return 0


def _about(kept: StoredRun) -> Iterator[str]:
    run, ready = kept.run, kept.run.provenance.ready
    yield f"Run {kept.id}, {_when(kept.began)}: {run.request.prompt.rstrip()}"
    yield f"seed {run.request.seed}" + (f", model {ready.model}" if ready else "")
    if run.reason:
        yield run.reason
    for number, candidate in sorted(run.candidates.items()):
        tests = f", tests {candidate.tests_label}" if candidate.test_state != TestState.NOT_RUN else ""
        like = f", {candidate.likeness}" if candidate.likeness else ""
        like += f", {candidate.agreement}" if candidate.agreement else ""
        like += ", no code" if candidate.has_no_code else ""
        yield f"  {number}: {candidate.state}, {candidate.tokens} tokens{tests}{like}"
    yield summary.outcome(run)


def _delete(id: int) -> int:
    with _opened() as journal:
        kept = journal.load(id)
        if journal.is_open(id):
            raise BadRequest(f"Run {id} is still going on; stop it first, or wait, and then delete it.")
        journal.delete(id)
    say(f"Deleted run {id}: {one_line(kept.run.request.prompt, 60)}")
    return 0


def _lines(entries: list[HistoryEntry]) -> Iterator[str]:
    width = max((len(str(entry.id)) for entry in entries), default=1)
    for entry in entries:
        yield f"{entry.id:>{width}}  {_when(entry.began)}  {_counts(entry):<14}  {one_line(entry.title, 70)}"


def _counts(entry: HistoryEntry) -> str:
    if entry.tested:
        return f"{entry.passed} of {entry.candidates} pass"
    return f"{entry.finished} of {entry.candidates}"


def _when(began: datetime) -> str:
    return f"{began.astimezone():%Y-%m-%d %H:%M}"


def _row(entry: HistoryEntry) -> dict[str, str | int | bool]:
    return {**vars(entry), "began": entry.began.isoformat()}
