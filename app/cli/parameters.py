"""The parameters of a run as options of the command line, from the one table of them."""

import argparse
from typing import Any

from engine.contract.parameters import Parameter
from engine.sampler.names import REGISTRIES


def add_parameter(
    group: argparse._ActionsContainer, parameter: Parameter[Any], *flags: str, more: str = "", **changes: Any
) -> None:
    """``flags``: further ones. ``more``: what the help says besides; ``changes``: argparse's, not the table's."""
    keywords = {"dest": parameter.name, "default": parameter.default, "help": help_of(parameter, more)}
    group.add_argument(*flags, parameter.flag, **{**keywords, **_kind(parameter), **changes})


def help_of(parameter: Parameter[Any], more: str = "") -> str:
    """One line: what it does, what it may be, and what it is unless it is given."""
    words = parameter.help if parameter.help[1:2].isupper() else parameter.help[:1].lower() + parameter.help[1:]
    default = parameter.default_words or str(parameter.default)
    known = "; ".join(filter(None, (parameter.limits, f"default: {default}")))
    return f"{'; '.join(filter(None, (words, more)))} ({known})".replace("%", "%%")


def _kind(parameter: Parameter[Any]) -> dict[str, Any]:
    """What argparse needs to know to read it."""
    registry = REGISTRIES.get(parameter.name)
    if registry is not None:
        free = any(entry.argument for entry in registry.entries.values())
        return {"metavar": f"{{{','.join(registry.forms)}}}"} if free else {"choices": registry.forms}
    if parameter.choices:
        return {"choices": parameter.values}
    if isinstance(parameter.default, tuple):
        return {"action": "append", "default": [], "metavar": parameter.metavar}
    if parameter.range is not None:
        return {"type": int if parameter.range.whole else float, "metavar": parameter.metavar}
    return {"metavar": parameter.metavar}
