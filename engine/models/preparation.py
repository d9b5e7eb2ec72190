"""From a model's name to a folder that can be loaded: find, fetch, convert. No torch in this process."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.backends import registry
from engine.models import hub, sources
from engine.models.catalog import CatalogEntry, PublishedFile
from engine.models.child import Cancelled, Progress
from engine.models.conversion import FORMAT, convert, read_manifest
from engine.models.errors import DownloadFailed
from engine.models.folders import check_weights_folder, read_json, stored_tensors
from engine.models.kinds import check_kind
from engine.models.lock import alone
from engine.models.memory_plan import MemoryPlan, ModelPart
from engine.models.model_shape import ModelShape
from engine.models.names import ResolvedModel, resolve
from engine.models.quantization import scales_of
from engine.models.shape_readers import shape_of_folder, shape_of_gguf
from engine.session import paths

_READING = 2  # raise it when something else is made of the same files; the catalog's own files never were read wrongly
_JSON = ("config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json")
_TOKENIZER = ("tokenizer.json", "chat_template.jinja", "chat_template.json")


@dataclass(frozen=True)
class PreparedModel:
    """A folder ready to load. ``device``: see ``backends.registry.find``; ``entry`` only for catalog models."""

    name: str
    folder: Path
    device: str
    precision: str
    entry: CatalogEntry | None = None


def prepare(
    name: str,
    *,
    precision: str = "auto",
    device: str = "auto",
    offline: bool = False,
    must_fit: bool = False,
    progress: Progress,
    cancelled: Cancelled,
) -> PreparedModel:
    """Fetch and convert what ``name`` needs on this device; nothing to do on a second start.

    See ``names.resolve`` for names. ``must_fit``: what will not fit into the memory that is free is
    refused, before anything is fetched where its size is known by then.
    Raises ModelNotFound, PrecisionNotAvailable, DoesNotFit, DownloadFailed, DiskFull, WrongFile, UnsupportedModel,
    ConversionFailed, OutOfMemory or LoadCancelled.
    """
    named = resolve(name, precision=precision, device=device)
    if must_fit:
        shape = shape_of(named)
        if shape is not None:
            plan(named, shape).check(named.name)
    work = _Work(named, offline, progress, cancelled)
    return PreparedModel(named.name, work.folder(), named.device, named.precision, named.entry)


def shape_of(named: ResolvedModel) -> ModelShape | None:
    """The model's shape as far as it is known without fetching anything; raises WrongFile or UnsupportedModel."""
    if named.entry is not None:
        return named.entry.shape
    if named.path is not None:
        folder = named.path
        if folder.is_file():
            return shape_of_gguf(folder)
        return None if read_manifest(folder) is not None else shape_of_folder(folder)
    cached = hub.cached_repository(named.repository, named.revision)
    return shape_of_folder(cached) if cached is not None else None


def plan(named: ResolvedModel, shape: ModelShape, draft: tuple[ResolvedModel, ModelShape] | None = None) -> MemoryPlan:
    """The memory plan of a target, perhaps with a draft, against what is free now on its device."""
    parts = [ModelPart(one, who.precision, who.device) for who, one in [(named, shape), *([draft] if draft else [])]]
    return MemoryPlan(parts[0], parts[1] if draft else None, registry.named(named.device).memory_free())


@dataclass(frozen=True)
class _Work:
    """One preparation: for what, where it may look and whom it tells."""

    named: ResolvedModel
    offline: bool
    progress: Progress
    cancelled: Cancelled

    def folder(self) -> Path:
        named = self.named
        if named.entry is not None:
            return self._published(named.entry)
        if named.path is None:
            return self._repository(named.repository, named.revision)
        if named.path.is_dir():
            converted = read_manifest(named.path) is not None
            return named.path if converted else self._from_folder(named.path.name, named.path)
        file = named.path
        return self._converted(named.name, _fingerprint([file]), lambda: file)

    def _published(self, entry: CatalogEntry) -> Path:
        """A catalog model: its safetensors, or the one file that is converted; see ``_prefers``."""
        file, source = entry.file, entry.safetensors
        if source is not None and (file is None or self._prefers(source.repository, entry.name, file)):
            return self._repository(source.repository, source.revision)
        assert file is not None, "the catalog's tests see to it that an entry has a source"
        return self._converted(entry.name, file.sha256, lambda: self._fetch(file))

    def _prefers(self, repository: str, name: str, file: PublishedFile) -> bool:
        """On a GPU safetensors come first, if they can be had; on a CPU only where the smaller file is not here."""
        cached = hub.cached_repository(repository) is not None
        if self.named.device != "cpu":
            return cached or (not self.offline and not sources.is_here(file) and hub.reachable())
        copy = converted_folder(name, self.named.precision, file.sha256)
        return cached and not sources.is_here(file) and read_manifest(copy) is None

    def _fetch(self, file: PublishedFile) -> Path:
        return sources.fetch(file, offline=self.offline, progress=self.progress, cancelled=self.cancelled)

    def _repository(self, repository: str, revision: str) -> Path:
        """A repository on the hub, at the revision that is in the cache or newest."""
        named = repository if revision == hub.MAIN else f"{repository}@{revision}"
        folder = hub.cached_repository(repository, revision)
        if folder is None:
            if self.offline:
                raise DownloadFailed(f"{named} is not on this machine yet; start once without --offline.")
            if not hub.reachable():
                why = f" ({reason})" if (reason := hub.why_not()) else ""
                raise DownloadFailed(f"The hub cannot be reached{why}, and {named} is not on this machine yet.")
            with alone(paths.models() / "downloads" / repository.replace("/", "--"), self.cancelled):
                folder = hub.cached_repository(repository, revision) or hub.fetch_repository(
                    repository, revision=revision, progress=self.progress, cancelled=self.cancelled
                )
        return self._from_folder(repository, folder)

    def _from_folder(self, name: str, folder: Path) -> Path:
        """Float precisions load from safetensors as they are, and so do those that a GPU makes of them; a CPU's int8 is
        converted. What cannot be run is refused before torch is imported."""
        weights = check_weights_folder(folder)
        for file in _JSON:
            if (folder / file).is_file():
                read_json(folder / file)
        config = read_json(folder / "config.json")
        check_kind(name, folder, config)
        scales_of(name, config, stored_tensors(weights))
        if self.named.device != "cpu" or self.named.precision != "int8":
            return folder
        beside = [folder / file for file in (*_JSON, *_TOKENIZER) if (folder / file).is_file()]
        return self._converted(name, _fingerprint([*weights, *beside]), lambda: folder)

    def _converted(self, name: str, key: str, source: Callable[[], Path]) -> Path:
        """The converted folder; ``source`` is asked for what to convert only where there is none yet."""
        precision = stored_precision(self.named.device, self.named.precision)
        target = converted_folder(name, precision, key)
        if read_manifest(target) is None:
            with alone(target, self.cancelled):
                if read_manifest(target) is None:  # unless another process has just made it
                    convert(source(), target, precision, self.progress, self.cancelled)
        return target


def stored_precision(device: str, precision: str) -> str:
    """The precision of a converted copy: a GPU quantises as it loads, from bfloat16."""
    return "bfloat16" if device != "cpu" and precision in ("int8", "int4") else precision


def converted_folder(name: str, precision: str, key: str) -> Path:
    """Where the copy of what ``key`` tells from all other files is, or will be."""
    digest = hashlib.sha256(f"{FORMAT} {precision} {key}".encode()).hexdigest()[:12]
    return converted_root() / f"{as_file_name(name)}-{precision}-{digest}"


def converted_root() -> Path:
    """The folder of all converted copies."""
    return paths.models() / "converted"


def as_file_name(name: str) -> str:
    """A model's name as the beginning of its converted copy's."""
    return name.replace("/", "--").replace(":", "-")


def _fingerprint(files: list[Path]) -> str:
    """Tells files apart without reading gigabytes: names, sizes and times of change."""
    stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return f"{_READING} {sorted(stats)}"
