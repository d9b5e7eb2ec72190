"""Who cannot draft for whom, and why, before anything is fetched."""

import pytest

from engine.models.catalog import catalog
from engine.models.drafts import reasons, why_not

NAMES = [entry.name for entry in catalog().model]


def test_another_family_is_named_with_both_vocabularies() -> None:
    why = reasons("qwen2.5-coder-7b", NAMES)
    assert why["smollm2-135m"] == (
        "Another family: its vocabulary has 49,152 tokens and the model's 152,064; choose a draft of the same family."
    )
    assert why["qwen2.5-coder-0.5b"] == why["qwen2.5-coder-1.5b"] == ""  # padded differently, and of one family
    assert "drafting for itself" in why["qwen2.5-coder-7b"]
    assert "no smaller than the model" in why["qwen2.5-coder-32b"]


def test_every_recommended_draft_can_draft() -> None:
    for entry in catalog().model:
        if entry.draft:
            assert reasons(entry.name, [entry.draft]) == {entry.draft: ""}


@pytest.mark.parametrize("name", ["nobody/has-fetched-this", "no such model", "/no/such/file.gguf"])
def test_what_nobody_knows_is_not_held_against_a_model(name: str) -> None:
    assert reasons("qwen2.5-coder-7b", [name]) == {name: ""}
    assert reasons(name, ["smollm2-135m"]) == {"smollm2-135m": ""}


def test_an_alias_is_the_model_itself() -> None:
    assert "itself" in reasons("qwen2.5-coder-0.5b-instruct", ["qwen2.5-coder-0.5b"])["qwen2.5-coder-0.5b"]


def test_sizes_that_are_equal() -> None:
    shape = catalog().model[0].shape
    assert "no smaller" in why_not(shape, shape)
