"""Options that several commands share."""

import argparse

from app.cli.models import DEVICES
from engine.contract import ModelChoice, Request, Speculation
from engine.contract.request import GOALS, PRECISIONS
from engine.sampler.names import DRAFTERS, POLICIES, RULES
from engine.session.arms import Budget


def add_budget(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--max-candidates",
        type=int,
        metavar="N",
        help=f"the most candidates until one passes (default: {Budget.candidates})",
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
        help="what stderr shows meanwhile; jsonl: one event a line",
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
        help="a virtual environment whose packages the tests need; it is shown to them read-only",
    )


def add_speculation(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("speculation (changes the speed, never the distribution of the text)")
    group.add_argument(
        "--drafter",
        choices=DRAFTERS.forms,
        default=Speculation.drafter,
        help=default(Speculation.drafter, "what drafts tokens ahead"),
    )
    group.add_argument(
        "--policy",
        default=Speculation.policy,
        metavar=f"{{{','.join(POLICIES.forms)}}}",
        help=default(Speculation.policy, "how many tokens to draft"),
    )
    group.add_argument(
        "--acceptance",
        choices=RULES.forms,
        default=Speculation.acceptance,
        help=default(Speculation.acceptance, "which drafts are accepted"),
    )
    group.add_argument(
        "--goal",
        choices=GOALS,
        help="what to optimize for: all candidates, or the first right one; it decides how many are written at a "
        "time (default: first when there are tests, else all)",
    )
    group.add_argument(
        "--width",
        type=int,
        default=Request.width,
        metavar="N",
        help="candidates written at a time, whatever the goal (default: 0, chosen from the measured cost of a step)",
    )


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
    group.add_argument(
        "--draft", default=ModelChoice.draft, metavar="NAME", help="a small model of the same family that guesses ahead"
    )
    group.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=ModelChoice.precision,
        help=default(ModelChoice.precision, "number format of the weights"),
    )
    group.add_argument(
        "--device",
        default=ModelChoice.device,
        metavar=DEVICES,
        help=default(ModelChoice.device, "where it runs"),
    )
    group.add_argument("--offline", action="store_true", help="never use the network")
    group.add_argument("--ignore-fit", action="store_true", help="load even what the memory plan says will not fit")


def default(value: object, sentence: str) -> str:
    return f"{sentence} (default: {value})"
