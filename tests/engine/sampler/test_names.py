"""What drafters, policies and rules are called: known without torch, and open to new ones from outside."""

import subprocess
import sys

import pytest

from engine.contract import BadRequest, Generate, Load, ModelChoice, RunFinished, Speculation
from engine.sampler.acceptance import Coupled, Proposals
from engine.sampler.budget import DraftBudget
from engine.sampler.drafters import Drafter
from engine.sampler.names import DRAFTERS, POLICIES, RULES, Registry, check
from engine.sampler.policies import Policy
from tests.engine.sampler.test_engine import modules, of, request, talk, texts  # noqa: F401


class Parrot(Drafter):
    """Says the last token again."""

    name = "parrot"

    def propose(self, rows, budget):
        tokens = [row.tokens[-1:] * count for row, count in zip(rows, budget.guesses, strict=True)]
        return Proposals(tokens, survival=[[0.5**n for n in range(1, len(row) + 1)] for row in tokens])


class Alternating(Policy):
    """So many drafts in every other step."""

    def __init__(self, length):
        self.name, self._length, self._step = f"alternating:{length}", length, 0

    def budget(self, rows):
        self._step += 1
        return DraftBudget.of([self._length * (self._step % 2)] * len(rows))

    def observe(self, outcomes, times):
        self.seen = outcomes


class Named(Coupled):
    name, kernel = "named", ""


@pytest.fixture
def registries(monkeypatch):
    """What is added is gone after the test."""
    for registry in (DRAFTERS, POLICIES, RULES):
        monkeypatch.setattr(registry, "entries", dict(registry.entries))


@pytest.mark.usefixtures("registries")
def test_a_drafter_and_a_policy_from_outside_take_one_registration_each(talk):  # noqa: F811
    with pytest.raises(BadRequest, match="Drafter 'parrot' is not known"):
        check(Speculation("parrot", "alternating:3"))
    DRAFTERS.add("parrot", lambda pair, request, rule: Parrot())
    POLICIES.add(
        "alternating", lambda length, costs, drafter: Alternating(int(length)), argument=r"\d", form="alternating:N"
    )
    check(Speculation("parrot", "alternating:3"))
    asked = [request(3, tokens=40, drafter="none"), request(3, tokens=40, drafter="parrot", policy="alternating:3")]
    load = Load(ModelChoice("target"))
    plain, drafted = (talk([load, Generate("r", each)]) for each in asked)
    (end,) = of(RunFinished, drafted)
    assert (end.metrics.drafter, end.metrics.policy) == ("parrot", "alternating:3")
    assert 0 < end.metrics.mean_draft_length < 3
    assert 0 < end.metrics.plain_step_share < 1
    assert texts(drafted) == texts(plain)


@pytest.mark.usefixtures("registries")
def test_a_rule_from_outside_takes_one_registration(talk):  # noqa: F811
    RULES.add("named", Named)
    asked = [request(3, drafter="suffix", acceptance=rule) for rule in ("coupled", "named")]
    first, second = (talk([Load(ModelChoice("target")), Generate("r", each)]) for each in asked)
    assert of(RunFinished, second)[0].metrics.acceptance == "named"
    assert texts(first) == texts(second)


def test_names_are_known_without_torch():
    listed = "import sys; from engine.sampler.names import DRAFTERS; print(DRAFTERS.forms, 'torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == f"{DRAFTERS.forms} False"


@pytest.mark.parametrize("registry", [DRAFTERS, POLICIES, RULES], ids=lambda registry: registry.kind)
def test_there_is_something_behind_every_name(registry):
    for entry in registry.entries.values():
        assert callable(entry.load())


@pytest.mark.parametrize("text", ["oracle", "goodput:3", "fixed", "fixed:100", "fixed:4:4", "fixed:x", ""])
def test_what_is_not_registered_is_refused_with_what_there_is(text):
    with pytest.raises(BadRequest) as caught:
        POLICIES.check(text)
    assert str(caught.value) == (
        f"Policy {text!r} is not known; choose auto, goodput, bass or fixed:N with N from 0 to 99."
    )


def test_a_name_is_given_once():
    registry = Registry("Drafter")
    registry.add("parrot", Parrot)
    with pytest.raises(ValueError, match="registered already"):
        registry.add("parrot", Parrot)


def test_every_combination_that_is_listed_is_allowed():
    for drafter in DRAFTERS.forms:
        for rule in RULES.forms:
            check(Speculation(drafter, "fixed:7", rule))
