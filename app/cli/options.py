"""Options that several commands share."""

import argparse
from pathlib import Path

from app.cli.models import DEVICES
from app.cli.parameters import add_parameter
from engine.contract import ModelChoice
from engine.contract.parameters import GOAL, MODEL, SPECULATION, WIDTH, carried_by
from engine.session.arms import Budget


def add_budget(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--max-candidates",
        type=int,
        metavar="N",
        help=f"the most candidates until one passes (default: {Budget.candidates})",
    )


def add_comparison(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("comparing candidates (runs them, in the same boxes as for tests)")
    group.add_argument(
        "--compare",
        action="store_true",
        help="call all candidates with the same inputs and rank by what they do; --json then lists the groups and the "
        "inputs that split them",
    )
    group.add_argument(
        "--ask",
        action="store_true",
        help="the same, and ask on the terminal which result is right where candidates differ; answers become tests, "
        "which are added to --tests or, where there are none, judge this run",
    )
    group.add_argument(
        "--suggest-tests",
        type=Path,
        metavar="FILE",
        help="have the model write tests, order the candidates by them, and save those on which candidates agree",
    )


def add_results(command: argparse.ArgumentParser) -> None:
    """Where a run goes, and what is said of it."""
    command.add_argument("--export", metavar="FOLDER", help="save all candidates, the tests and result.json there")
    command.add_argument("--no-history", action="store_true", help="do not keep this run in the history")
    command.add_argument("--overwrite", action="store_true", help="let --export replace an earlier run in that folder")
    command.add_argument("--json", action="store_true", help="print the run as one JSON object instead of the code")
    command.add_argument(
        "--progress",
        choices=("auto", "jsonl", "none"),
        default="auto",
        help="what to show on stderr while it runs; jsonl: one event per line",
    )


def add_consent(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--yes",
        action="store_true",
        help="do not ask: run the code even where it cannot be sealed off or kept apart from the tests",
    )
    command.add_argument(
        "--environment",
        default="",
        metavar="FOLDER",
        help="a virtual environment whose packages the tests need; they can read it, not change it",
    )


def add_speculation(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("speculation (changes the speed, never the distribution of the text)")
    for parameter in carried_by(SPECULATION):
        add_parameter(group, parameter)
    add_parameter(group, GOAL, default="", more="for all of them soonest, or for the first right one")
    add_parameter(group, WIDTH)


def add_model(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("model")
    group.add_argument(
        "--model",
        default=ModelChoice.model,
        metavar="NAME",
        help="a name from 'models list', a folder or a GGUF file; 'scripted' plays recorded answers (default: default)",
    )
    group.add_argument(
        "--server",
        default="",
        metavar="NAME-OR-ADDRESS",
        help="use an OpenAI-compatible server; --model is then its name for a model (default: its first)",
    )
    for parameter in carried_by(MODEL):
        add_parameter(group, parameter)
    group.add_argument(
        "--device",
        default=ModelChoice.device,
        metavar=DEVICES,
        help=f"where it runs (default: {ModelChoice.device})",
    )
    group.add_argument("--offline", action="store_true", help="never use the network")
    group.add_argument(
        "--ignore-fit", action="store_true", help="load a model even if the memory plan says that it will not fit"
    )
