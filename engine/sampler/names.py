"""The names of drafters, policies and acceptance rules, and what each of them opens. No torch.

The command line and the window list what is registered here, and the code behind a name is imported when a run asks
for it. To add a drafter, a policy or a rule: one file, and one ``add``.
"""

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from engine.contract import BadRequest, Speculation

if TYPE_CHECKING:
    from engine.sampler.acceptance import RuleFactory
    from engine.sampler.drafters import DrafterFactory
    from engine.sampler.policies import PolicyFactory

T = TypeVar("T")


@dataclass(frozen=True)
class RegisteredName(Generic[T]):
    """``factory``: what opens it, or where that is found, "module:attribute". ``argument``: a pattern for what follows
    ``name:``, empty if nothing may; ``form``: how to write it all; ``hint``: what to know about the argument."""

    factory: T | str
    argument: str
    form: str
    hint: str

    def load(self) -> T:
        if not isinstance(self.factory, str):
            return self.factory
        module, _, attribute = self.factory.partition(":")
        return cast(T, getattr(import_module(module), attribute))


class Registry(Generic[T]):
    """Factories by name. ``kind``: what they make, as a sentence begins with it."""

    def __init__(self, kind: str):
        self.kind = kind
        self.entries: dict[str, RegisteredName[T]] = {}

    def add(self, name: str, factory: T | str, *, argument: str = "", form: str = "", hint: str = "") -> None:
        if name in self.entries:
            raise ValueError(f"{self.kind} {name!r} is registered already.")
        self.entries[name] = RegisteredName(factory, argument, form or name, hint)

    @property
    def forms(self) -> tuple[str, ...]:
        """How each of them is written."""
        return tuple(entry.form for entry in self.entries.values())

    def check(self, text: str) -> None:
        """Raises BadRequest where ``text`` names nothing that is registered."""
        self._entry(text)

    def find(self, text: str) -> tuple[T, str]:
        """The factory that ``text`` names, and the argument behind its colon. Raises BadRequest."""
        return self._entry(text).load(), text.partition(":")[2]

    def _entry(self, text: str) -> RegisteredName[T]:
        name, colon, argument = text.partition(":")
        entry = self.entries.get(name)
        if entry is None or bool(colon) != bool(entry.argument) or re.fullmatch(entry.argument, argument) is None:
            hints = "".join(f" {entry.hint}" for entry in self.entries.values() if entry.hint)
            *most, last = self.forms
            raise BadRequest(f"{self.kind} {text!r} is not known; choose {', '.join(most)} or {last}{hints}.")
        return entry


DRAFTERS: "Registry[DrafterFactory]" = Registry("Drafter")
POLICIES: "Registry[PolicyFactory]" = Registry("Policy")
RULES: "Registry[RuleFactory]" = Registry("Acceptance")

DRAFTERS.add("auto", "engine.sampler.drafters.auto:open_best")
DRAFTERS.add("suffix", "engine.sampler.drafters.suffix:open_suffix")
DRAFTERS.add("speculator", "engine.sampler.drafters.suffix:open_speculator")
DRAFTERS.add("draft-model", "engine.sampler.drafters.draft_model:open_draft_model")
DRAFTERS.add("hybrid", "engine.sampler.drafters.hybrid:open_hybrid")
DRAFTERS.add("none", "engine.sampler.drafters:open_none")

POLICIES.add("auto", "engine.sampler.policies.goodput:open_goodput")
POLICIES.add("goodput", "engine.sampler.policies.goodput:open_goodput")
POLICIES.add("bass", "engine.sampler.policies.bass:open_bass")
POLICIES.add(
    "fixed",
    "engine.sampler.policies.fixed:open_fixed",
    argument=r"\d{1,2}",
    form="fixed:N",
    hint="with N from 0 to 99",
)

RULES.add("coupled", "engine.sampler.acceptance:Coupled")
RULES.add("rejection", "engine.sampler.acceptance:Rejection")

REGISTRIES: "dict[str, Registry[Any]]" = {"drafter": DRAFTERS, "policy": POLICIES, "acceptance": RULES}  # by parameter


def check(speculation: Speculation) -> None:
    """Raises BadRequest where one of its names is not registered."""
    for name, registry in REGISTRIES.items():
        registry.check(getattr(speculation, name))
