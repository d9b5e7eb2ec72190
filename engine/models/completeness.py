"""Did every weight come from the file? Decided from names and shapes, however the weights were read. No torch."""

import re
from collections.abc import Iterable, Mapping, Sequence

from engine.models.errors import UnsupportedModel, WrongFile

# What older files keep beside the weights: masks and frequencies that are computed again.
_HARMLESS = re.compile(
    r"rotary_emb\.|inv_freq$|position_ids$|causal_mask$|(^|\.)(attn|attention|self_attention)\.(bias|masked_bias)$"
)
_BESIDE = ("v.", "a.", "mm.", "rope_freqs.", "mtp.")  # of a GGUF: pictures, sound, frequencies, further tokens
_NUMBER = re.compile(r"\.\d+(?=\.)")


def check_missing(name: str, missing: Iterable[str], stored: Sequence[str]) -> None:
    """Raises WrongFile where weights of the model are in none of its files, which hold ``stored``."""
    names = sorted(missing)
    if not names:
        return
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    example = f" (the files name theirs like {min(stored)})" if stored else ""
    raise WrongFile(
        f"The weights of {name} are not all there: {names[0]}{others} {'are' if others else 'is'} in none of its files"
        f"{example}, and a model does not run on invented ones; fetch it again, or choose another version."
    )


def check_shapes(name: str, stored: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Raises UnsupportedModel for the first weight of another shape than the config makes of it."""
    for key in sorted(stored.keys() & wanted.keys()):
        if stored[key] != wanted[key]:
            raise UnsupportedModel(
                f"The config of {name} does not fit its weights: {key} is {_by(stored[key])} in the file "
                f"and {_by(wanted[key])} by config.json; fetch both again, or choose another version."
            )


def check_unexpected(name: str, unexpected: Iterable[str], model: Iterable[str], modules: Iterable[str]) -> None:
    """Raises UnsupportedModel where the files hold weights that belong into the model, but have no place there.

    ``model`` has the names of its own weights and ``modules`` of its parts. Heads for other purposes and towers for
    pictures are left out without a word; a bias, a norm or a layer more is part of the very computation.
    """
    parts, layers = set(modules), _layers(model)
    for key in sorted(unexpected):
        if _HARMLESS.search(key) or not _belongs(key, parts, layers):
            continue
        what = "an adapter that is not merged" if ".lora_" in key or "base_layer" in key else "weights"
        raise UnsupportedModel(
            f"{name} holds {what} for which its config has no place, {key} first, and without them it would say other "
            "things; choose another version."
        )


def check_leftovers(name: str, unknown: Iterable[str]) -> None:
    """``check_unexpected`` for the names of a GGUF: ``unknown`` found no place in the model."""
    for key in sorted(unknown):
        if key.startswith(_BESIDE) or ".nextn." in key or "rot_embd" in key:
            continue
        raise UnsupportedModel(
            f"{name} holds weights that its kind of model has no place for here, {key} first, and without them it "
            "would say other things; choose another file, or safetensors."
        )


def _belongs(key: str, parts: set[str], layers: set[str]) -> bool:
    """Whether a weight stands inside of a layer, in a further layer, or is one more of a part that the model has."""
    if ".lora_" in key:
        return True
    if not key.endswith((".weight", ".bias")):
        return False
    number = _NUMBER.search(key)
    if number is not None and key[: number.start()] in layers:
        return True
    return key.rpartition(".")[0] in parts


def _layers(names: Iterable[str]) -> set[str]:
    """The lists of layers: what stands before the first number of a weight's name."""
    return {name[: number.start()] for name in names if (number := _NUMBER.search(name))}


def _by(shape: tuple[int, ...]) -> str:
    return " by ".join(map(str, shape)) or "one number"
