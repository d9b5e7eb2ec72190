"""The models of this machine as one list: what the catalog offers, what lies on the disk, what fits. No torch.

For the command line and for the window's model manager. ``preparation.prepare`` fetches what is listed here;
stopping it is pausing.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.backends import registry
from engine.models import found, hub, sources
from engine.models.catalog import DEFAULT, CatalogEntry, catalog
from engine.models.child import Cancelled, Progress
from engine.models.conversion import read_manifest
from engine.models.errors import ModelNotFound, UnsupportedModel, WrongFile
from engine.models.folders import check_weights_folder
from engine.models.gguf_file import read_header
from engine.models.memory_plan import MemoryPlan, ModelPart
from engine.models.model_shape import ModelShape
from engine.models.names import choose_device, choose_precision, find_entry, resolve
from engine.models.preparation import as_file_name, converted_root, stored_precision
from engine.models.shape_readers import shape_of_folder, shape_of_gguf

_CONVERTED = re.compile(r"(?P<name>.+)-(?P<precision>int8|bfloat16|float16|float32)-[0-9a-f]{12}(\.unfinished)?")


@dataclass(frozen=True)
class ListedModel:
    """One model. ``name`` is what ``ModelChoice.model`` and the other functions here take.

    ``source``: Catalog, Hub cache, LM Studio, Ollama, or Converted copy (of a file that was named by its path).
    ``download_bytes``: what fetching it would bring, 0 when it is ``here``, which means: loads without the network.
    ``original_bytes`` and ``converted_bytes``: on this disk, as published and as loaded. ``removable``: there is
    something here that ``remove`` would free. ``fits``: at least one candidate; ``fit`` says it with numbers.
    """

    name: str
    title: str
    source: str
    parameters: int
    context: int
    licence: str
    draft: str
    download_bytes: int
    original_bytes: int
    converted_bytes: int
    here: bool
    removable: bool
    default: bool
    fits: bool
    fit: str


@dataclass(frozen=True)
class _Files:
    """What of a model is on the disk. ``others``: files that belong to another program."""

    originals: tuple[Path, ...] = ()
    converted: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()

    @property
    def ours(self) -> tuple[Path, ...]:
        return self.originals + self.converted


def listed(device: str = "auto", precision: str = "auto") -> list[ListedModel]:
    """The catalog in its order, then everything else that is on this disk. A fraction of a second.

    ``device`` and ``precision`` are those it would be loaded with. Raises PrecisionNotAvailable.
    """
    device = choose_device(device)
    return list(_Listing(device, choose_precision(precision, device), registry.named(device).memory_free()).all())


def remove(name: str, *, originals_only: bool = False) -> int:
    """Delete what we hold of a model and give the bytes that are free by it.

    ``originals_only``: keep the converted copies, which load without their original. What LM Studio or Ollama brought
    is theirs and stays; only our converted copy of it goes. Raises ModelNotFound for a name that means nothing.
    """
    files = _files_of(name)
    freed = 0
    for path in files.originals if originals_only else files.ours:
        freed += _size(path)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return freed


def check(name: str, progress: Progress, cancelled: Cancelled) -> list[str]:
    """Read what is here of a model and give a sentence for each file that is not what it should be.

    A published file is held against its SHA-256, which takes a few seconds per GB; other files against what their
    headers say. Raises ModelNotFound, or LoadCancelled.
    """
    problems = []
    entry, files = find_entry(name), _files_of(name)
    published = sources.local(entry.file) if entry is not None and entry.file is not None else None
    if entry is not None and entry.file is not None and published is not None:
        try:
            sources.check(published, entry.file, progress, cancelled, remove=False)
        except WrongFile as error:
            problems.append(str(error))
    for path in (*files.ours, *files.others):
        try:
            if path.is_dir() and (path / "config.json").is_file():
                check_weights_folder(path)
            elif path.suffix == ".gguf" or path in files.others:
                read_header(path)
        except (WrongFile, UnsupportedModel) as error:
            problems.append(str(error))
    return problems


@dataclass(frozen=True)
class _Listing:
    """What is listed is planned for one device and precision, and the bytes that are ``free`` there."""

    device: str
    precision: str
    free: int | None

    def all(self) -> Iterator[ListedModel]:
        yield from (self._of_the_catalog(entry) for entry in catalog().model)
        taken = {entry.safetensors.repository for entry in catalog().model if entry.safetensors}
        named = {as_file_name(entry.name) for entry in catalog().model}
        for repository in found.found_repositories():
            named.add(as_file_name(repository.name))
            if repository.name not in taken:
                yield self._found(repository.name, "Hub cache", shape_of_folder(repository.path), repository.bytes)
        for file in found.found_files():
            named.add(as_file_name(file.name))
            yield self._found(file.name, file.program, _shape_or_none(file.path), file.bytes)
        for folder in _converted_folders():
            match = _CONVERTED.fullmatch(folder.name)
            if match is not None and match["name"] not in named and read_manifest(folder) is not None:
                yield self._copy(folder, match["name"])

    def _of_the_catalog(self, entry: CatalogEntry) -> ListedModel:
        files, here = _files_of(entry.name), self._is_here(entry)
        fits, fit = self._fit(entry.shape)
        return ListedModel(
            name=entry.name,
            title=entry.title,
            source="Catalog",
            parameters=entry.parameters,
            context=entry.context,
            licence=entry.licence,
            draft=entry.draft,
            download_bytes=0 if here else entry.download_bytes,
            original_bytes=sum(map(_size, files.originals)),
            converted_bytes=sum(map(_size, files.converted)),
            here=here,
            removable=bool(files.ours),
            default=entry is find_entry(DEFAULT),
            fits=fits,
            fit=fit,
        )

    def _is_here(self, entry: CatalogEntry) -> bool:
        """Whether it loads without the network in this precision: from a copy, or from what one is made of."""
        stored = stored_precision(self.device, self.precision)
        copies = (_CONVERTED.fullmatch(folder.name) for folder in _converted_of(entry.name))
        if any(copy is not None and copy["precision"] == stored for copy in copies):
            return True
        if entry.file is not None and sources.local(entry.file) is not None:
            return True
        return entry.safetensors is not None and hub.cached_repository(entry.safetensors.repository) is not None

    def _found(self, name: str, source: str, shape: ModelShape | None, size: int) -> ListedModel:
        converted = _converted_of(name)
        return self._here(
            name, name, source, shape, size, sum(map(_size, converted)), source == "Hub cache" or converted
        )

    def _copy(self, folder: Path, title: str) -> ListedModel:
        return self._here(str(folder), title, "Converted copy", None, 0, _size(folder), True)

    def _here(
        self,
        name: str,
        title: str,
        source: str,
        shape: ModelShape | None,
        original: int,
        converted: int,
        removable: object,
    ) -> ListedModel:
        fits, fit = self._fit(shape)
        return ListedModel(
            name=name,
            title=title,
            source=source,
            parameters=shape.parameters if shape else 0,
            context=shape.context if shape else 0,
            licence="",
            draft="",
            download_bytes=0,
            original_bytes=original,
            converted_bytes=converted,
            here=True,
            removable=bool(removable),
            default=False,
            fits=fits,
            fit=fit,
        )

    def _fit(self, shape: ModelShape | None) -> tuple[bool, str]:
        """Whether one candidate fits, and the sentence; what is not known is not held against a model."""
        if shape is None:
            return True, ""
        plan = MemoryPlan(ModelPart(shape, self.precision, self.device), free=self.free)
        return plan.largest_width(most=1) > 0, plan.sentence()


def _files_of(name: str) -> _Files:
    """What is on the disk of the model that goes by ``name``. Raises ModelNotFound."""
    entry = find_entry(name)
    if entry is not None:
        originals: list[Path] = []
        if entry.file is not None:
            folder = sources.place(entry.file).parent
            originals += [folder] if folder.is_dir() and any(not _is_lock(path) for path in folder.iterdir()) else []
            originals += hub.cached_copies(entry.file.repository) if entry.file.repository else []
        if entry.safetensors is not None:
            originals += hub.cached_copies(entry.safetensors.repository)
        return _Files(tuple(originals), tuple(_converted_of(entry.name)))
    path = Path(name).expanduser()
    if path.is_dir() and path.absolute().parent == converted_root() and read_manifest(path) is not None:
        return _Files(converted=(path,))
    named = resolve(name, device="cpu")
    if named.repository:
        return _Files(tuple(hub.cached_copies(named.repository)), tuple(_converted_of(named.repository)))
    if named.path is None or (found.find_file(name) is None and not _converted_of(named.name)):
        raise ModelNotFound(f"Nothing is kept of {name}; see `models list` for what is.")
    return _Files(converted=tuple(_converted_of(named.name)), others=(named.path,))


def _converted_folders() -> list[Path]:
    root = converted_root()
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def _converted_of(name: str) -> list[Path]:
    wanted = as_file_name(name)
    matches = [(folder, _CONVERTED.fullmatch(folder.name)) for folder in _converted_folders()]
    return [folder for folder, match in matches if match is not None and match["name"] == wanted]


def _is_lock(path: Path) -> bool:
    return path.suffix == ".lock"


def _shape_or_none(path: Path) -> ModelShape | None:
    try:
        return shape_of_gguf(path)
    except (WrongFile, UnsupportedModel):
        return None


def _size(path: Path) -> int:
    """Bytes on the disk; links are followed by nobody, or the hub's blobs would count twice."""
    if not path.is_dir():
        return path.lstat().st_size
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())
