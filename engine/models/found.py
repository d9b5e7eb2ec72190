"""Models that other programs left on this machine: LM Studio's and Ollama's GGUF files, and the hub's cache. No torch.

They are used where they lie, and never removed from here: they belong to the program that brought them.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PART_OF_SEVERAL = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_WEIGHTS, _PROJECTOR = "application/vnd.ollama.image.model", "application/vnd.ollama.image.projector"
_LIBRARY = ("registry.ollama.ai", "library")


@dataclass(frozen=True)
class FoundFile:
    """One GGUF. ``name`` can be given wherever a model is named, such as ``ollama/qwen2.5-coder:0.5b``."""

    name: str
    program: str
    path: Path
    bytes: int


@dataclass(frozen=True)
class FoundRepository:
    """A repository in the hub's cache with config and safetensors; ``bytes`` on disk over all its revisions."""

    name: str
    path: Path
    bytes: int


def found_files() -> list[FoundFile]:
    """All of them, by name; looking takes milliseconds."""
    return sorted([*_lm_studio(), *_ollama()], key=lambda file: file.name)


def find_file(name: str) -> FoundFile | None:
    """The file that goes by this name, letter case aside."""
    if not name.casefold().startswith(("ollama/", "lm-studio/")):
        return None
    return next((file for file in found_files() if file.name.casefold() == name.casefold()), None)


def found_repositories() -> list[FoundRepository]:
    """Repositories of transformers models that are whole in the hub's cache, by name."""
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    from engine.models.hub import cached_repository

    try:
        repositories = scan_cache_dir(constants.HF_HUB_CACHE).repos
    except CacheNotFound:
        return []
    found = []
    for repository in sorted(repositories, key=lambda one: str(one.repo_id)):
        folder = cached_repository(repository.repo_id) if repository.repo_type == "model" else None
        if folder is not None:
            found.append(FoundRepository(repository.repo_id, folder, repository.size_on_disk))
    return found


def _lm_studio() -> Iterator[FoundFile]:
    for root in _lm_studio_folders():
        for path in sorted(root.rglob("*.gguf")):
            # A projector turns pictures into tokens; a split file needs its siblings.
            if path.name.startswith("mmproj") or _PART_OF_SEVERAL.search(path.name) or not path.is_file():
                continue
            yield FoundFile(f"lm-studio/{path.relative_to(root).as_posix()}", "LM Studio", path, path.stat().st_size)


def _lm_studio_folders() -> list[Path]:
    home = Path.home()
    roots = [home / ".lmstudio", home / ".cache" / "lm-studio"]
    try:
        roots.insert(0, Path((home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip()))
    except (OSError, ValueError):
        pass
    folders = {(root / "models").resolve(): None for root in roots}
    return [folder for folder in folders if folder.is_dir()]


def _ollama() -> Iterator[FoundFile]:
    for root in _ollama_folders():
        manifests = root / "manifests"
        for manifest in sorted(path for path in manifests.rglob("*") if path.is_file()):
            blob = _weights_of(manifest, root / "blobs")
            if blob is not None:
                name = _ollama_name(manifest.relative_to(manifests).parts)
                yield FoundFile(f"ollama/{name}", "Ollama", blob, blob.stat().st_size)


def _ollama_folders() -> list[Path]:
    """Its own variable, the user's folder, and that of the service which its installer sets up on Linux."""
    named = os.environ.get("OLLAMA_MODELS", "")
    places = [Path(named)] if named else []
    places += [Path.home() / ".ollama" / "models", Path("/usr/share/ollama/.ollama/models")]
    found = []
    for place in places:
        try:
            if (place / "manifests").is_dir() and place not in found:
                found.append(place)
        except PermissionError:  # the service's folder may be closed to us
            continue
    return found


def _ollama_name(parts: tuple[str, ...]) -> str:
    """registry / namespace / model / tag; the registry and namespace that Ollama leaves out are left out."""
    if parts[:2] == _LIBRARY:
        parts = parts[2:]
    elif parts[:1] == _LIBRARY[:1]:
        parts = parts[1:]
    return f"{'/'.join(parts[:-1])}:{parts[-1]}"


def _weights_of(manifest: Path, blobs: Path) -> Path | None:
    """The one GGUF that a manifest names; None for anything we could not run."""
    try:
        layers = json.loads(manifest.read_text(encoding="utf-8"))["layers"]
        kinds = [layer["mediaType"] for layer in layers]
        digests = [layer["digest"] for layer in layers if layer["mediaType"] == _WEIGHTS]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if len(digests) != 1 or _PROJECTOR in kinds:
        return None
    blob = blobs / digests[0].replace(":", "-")
    return blob if blob.is_file() else None
