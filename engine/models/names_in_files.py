"""Weights under a prefix that some program left in front of their names. No torch."""

import re
from collections.abc import Callable, Iterable

# torch.compile, FSDP and activation checkpointing put theirs anywhere; the others stand in front of all.
_WRAPPERS = re.compile(r"(?:(?<=\.)|^)(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|_forward_module)\.")
_IN_FRONT = re.compile(r"^(?:module\.|base_model\.model\.(?!embed_tokens|layers|norm))+")


def renamed(
    stored: Iterable[str], missing: Callable[[set[str]], set[str]], wanted: Iterable[str], base: str
) -> dict[str, str]:
    """The model's names by the stored ones.

    ``missing(names)``: what of the model would be lacking, were these all. ``wanted``: the model's own names.
    ``base``: what the whole model calls the part without its head. Names stay as they are unless a change makes the
    model whole, or takes off a wrapper.
    """
    as_they_are = {name: name for name in stored}
    if not missing(set(as_they_are)):
        return as_they_are
    bare = {name: _IN_FRONT.sub("", _WRAPPERS.sub("", name)) for name in as_they_are}
    if len(set(bare.values())) < len(bare):  # two names become one: which is meant is not known
        return as_they_are
    own = set(wanted)
    candidates = [bare, {old: f"{base}.{name}" if f"{base}.{name}" in own else name for old, name in bare.items()}]
    anchor = max(own, key=len, default="")
    prefixes = {name[: -len(anchor)] for name in bare.values() if anchor and name.endswith(f".{anchor}")}
    if len(prefixes) == 1:  # with more it is not known which model is meant
        (prefix,) = prefixes
        candidates.append({old: name.removeprefix(prefix) for old, name in bare.items()})
    for one in candidates:
        if len(set(one.values())) == len(one) and not missing(set(one.values())):
            return one
    return bare
