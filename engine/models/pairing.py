"""Do a target and a draft model share a vocabulary: the same text for the same token id?"""

from itertools import compress

from engine.models.errors import IncompatibleDraft
from engine.models.loaded_model import LoadedModel


def check_pair(target: LoadedModel, draft: LoadedModel) -> None:
    """Compare the two vocabularies by id and text, up to the smaller one; padding beyond it may differ.

    Raises IncompatibleDraft, which names the first id that differs.
    """
    shared = min(target.vocabulary, draft.vocabulary)
    ids = list(range(shared))
    ours, theirs = target.tokenizer.convert_ids_to_tokens(ids), draft.tokenizer.convert_ids_to_tokens(ids)
    differing = compress(ids, (a != b for a, b in zip(ours, theirs, strict=True)))
    first = next(differing, None)
    if first is not None:
        raise IncompatibleDraft(
            f"{draft.name} cannot draft for {target.name}: token {first} is {ours[first]!r} in one "
            f"and {theirs[first]!r} in the other; choose a draft of the same family."
        )
