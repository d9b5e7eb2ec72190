"""Can a model draft for another? Decided from their shapes alone, before either is fetched or loaded. No torch.

What is certain only with both tokenizers at hand, each token's text, is ``pairing.check_pair``'s to say at load.
"""

from collections.abc import Iterable

from engine.contract import BasslineError
from engine.models.model_shape import ModelShape
from engine.models.names import ResolvedModel, resolve
from engine.models.preparation import shape_of

_PADDING = 1024  # entries that the same vocabulary may differ by: embeddings are padded for the hardware


def why_not(target: ModelShape, draft: ModelShape) -> str:
    """A sentence when ``draft`` cannot, or should not, guess tokens for ``target``; empty when it may."""
    if abs(target.vocabulary - draft.vocabulary) > _PADDING:
        return (
            f"Another family: its vocabulary has {draft.vocabulary:,} tokens and the model's {target.vocabulary:,}; "
            "choose a draft of the same family."
        )
    if draft.parameters >= target.parameters:
        return "It is no smaller than the model, so guessing with it would save no time."
    return ""


def reasons(target: str, drafts: Iterable[str]) -> dict[str, str]:
    """For each model by name why it cannot draft for ``target``; an empty sentence where it may, or nobody knows."""
    for_whom = _known(target)
    answers = {}
    for name in drafts:
        draft = _known(name)
        if for_whom is None or draft is None:
            answers[name] = ""
        elif for_whom[0].name == draft[0].name:
            answers[name] = "A model gains nothing from drafting for itself."
        else:
            answers[name] = why_not(for_whom[1], draft[1])
    return answers


def _known(name: str) -> tuple[ResolvedModel, ModelShape] | None:
    """What can be said without fetching anything."""
    try:
        named = resolve(name)
        shape = shape_of(named)
    except BasslineError:
        return None
    return None if shape is None else (named, shape)
