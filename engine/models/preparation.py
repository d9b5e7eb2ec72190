"""From a model's name to a folder that can be loaded: find, fetch, convert. No torch in this process."""

import hashlib
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.device import default_kind, nvidia_gpus
from engine.models import hub, sources
from engine.models.catalog import DEFAULT, Entry, PublishedFile, catalog
from engine.models.child import Cancelled, Progress
from engine.models.conversion import FORMAT, convert, read_manifest
from engine.models.errors import DownloadFailed, ModelNotFound, PrecisionNotAvailable, WrongFile
from engine.models.folders import check_weights_folder
from engine.models.lock import alone
from engine.session import paths

_ON_CPU = ("int8", "float32", "bfloat16")
_ON_CUDA = ("bfloat16", "float16", "float32")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Prepared:
    """A folder ready to load. ``device`` is ``cpu`` or ``cuda`` (or ``cuda:N``); ``entry`` only for catalog models."""

    name: str
    folder: Path
    device: str
    precision: str
    entry: Entry | None = None


def prepare(
    name: str,
    *,
    precision: str = "auto",
    device: str = "auto",
    offline: bool = False,
    progress: Progress,
    cancelled: Cancelled,
) -> Prepared:
    """Fetch and convert what ``name`` needs on this device; nothing to do on a second start.

    ``name``: ``default``, a catalog name or alias, a folder of safetensors, a GGUF file, or ``owner/name`` on the hub.
    Raises ModelNotFound, PrecisionNotAvailable, DownloadFailed, DiskFull, WrongFile, UnsupportedModel,
    ConversionFailed or LoadCancelled.
    """
    device = default_kind() if device == "auto" else device
    precision = choose_precision(precision, device)
    entry = find_entry(name)
    path = Path(name).expanduser()
    work = _Work(precision, offline, progress, cancelled)
    if entry is not None:
        name, folder = entry.name, work.published(entry, on_gpu=device != "cpu")
    elif path.is_dir():
        name, folder = path.name, work.local_folder(path.absolute())
    elif path.is_file():
        name, folder = path.stem, work.local_file(path.absolute())
    elif _HUB_NAME.fullmatch(name) and not path.parent.is_dir():
        folder = work.repository(name)
    else:
        known = ", ".join(e.name for e in catalog().model)
        raise ModelNotFound(
            f"No model is called {name!r}; choose one of {known}, a folder, a .gguf file or owner/name on the hub."
        )
    return Prepared(name, folder, device, precision, entry)


def find_entry(name: str) -> Entry | None:
    """The catalog's entry for a name, an alias or ``default``."""
    if name == DEFAULT:
        return catalog().default_for(nvidia_gpus() if default_kind() == "cuda" else ())
    return catalog().find(name)


def choose_precision(precision: str, device: str) -> str:
    """The precision to compute in; ``auto`` is int8 on a CPU that has it, bfloat16 on a GPU."""
    if device == "cpu":
        if precision == "auto":
            return "int8" if _cpu_has_int8() else "float32"
        if precision == "int8" and not _cpu_has_int8():
            raise PrecisionNotAvailable("int8 needs an x86 processor; choose float32.")
        possible = _ON_CPU
    elif device.partition(":")[0] == "cuda":
        precision = "bfloat16" if precision == "auto" else precision
        possible = _ON_CUDA
    else:
        raise PrecisionNotAvailable(f"Device {device!r} is not known; choose auto, cpu or cuda.")
    if precision not in possible:
        raise PrecisionNotAvailable(f"{precision} is not available on {device}; choose {', '.join(possible)}.")
    return precision


def _cpu_has_int8() -> bool:
    """FBGEMM, which multiplies int8, exists for x86 alone."""
    return platform.machine().lower() in ("x86_64", "amd64")


@dataclass(frozen=True)
class _Work:
    """One preparation: where it may look and whom it tells."""

    precision: str
    offline: bool
    progress: Progress
    cancelled: Cancelled

    def published(self, entry: Entry, on_gpu: bool) -> Path:
        """A catalog model. On a GPU safetensors come first; on a CPU the smaller file does."""
        repository = entry.safetensors.repository if entry.safetensors else ""
        if entry.file is None or (on_gpu and repository and self._can_get(repository, entry.file)):
            return self.repository(repository)
        file = entry.file
        return self._converted(entry.name, file.sha256, lambda: self._fetch(file))

    def _fetch(self, file: PublishedFile) -> Path:
        return sources.fetch(file, offline=self.offline, progress=self.progress, cancelled=self.cancelled)

    def repository(self, repository: str) -> Path:
        """A repository on the hub, at the revision that is in the cache or newest."""
        folder = hub.cached_repository(repository)
        if folder is None:
            if self.offline:
                raise DownloadFailed(f"{repository} is not on this machine yet; start once without --offline.")
            if not hub.reachable():
                raise DownloadFailed(f"The hub cannot be reached, and {repository} is not on this machine yet.")
            folder = hub.fetch_repository(repository, progress=self.progress, cancelled=self.cancelled)
        return self._from_folder(repository.replace("/", "--"), folder)

    def local_folder(self, folder: Path) -> Path:
        return folder if read_manifest(folder) is not None else self._from_folder(folder.name, folder)

    def local_file(self, file: Path) -> Path:
        if file.suffix.lower() != ".gguf":
            raise WrongFile(f"{file.name} is not a model; give a .gguf file or a folder with config and safetensors.")
        return self._converted(file.stem, _fingerprint([file]), lambda: file)

    def _can_get(self, repository: str, instead: PublishedFile) -> bool:
        if hub.cached_repository(repository) is not None:
            return True
        return not self.offline and not sources.is_here(instead) and hub.reachable()

    def _from_folder(self, name: str, folder: Path) -> Path:
        """Float precisions load from safetensors as they are; int8 is converted."""
        weights = check_weights_folder(folder)
        if self.precision != "int8":
            return folder
        return self._converted(name, _fingerprint(weights), lambda: folder)

    def _converted(self, name: str, key: str, source: Callable[[], Path]) -> Path:
        """The converted folder; ``source`` is asked for what to convert only where there is none yet."""
        target = self._target(name, key)
        if read_manifest(target) is None:
            with alone(target, self.cancelled):
                if read_manifest(target) is None:  # unless another process has just made it
                    convert(source(), target, self.precision, self.progress, self.cancelled)
        return target

    def _target(self, name: str, key: str) -> Path:
        digest = hashlib.sha256(f"{FORMAT} {self.precision} {key}".encode()).hexdigest()[:12]
        return paths.models() / "converted" / f"{name}-{self.precision}-{digest}"


def _fingerprint(files: list[Path]) -> str:
    """Tells files apart without reading gigabytes: names, sizes and times of change."""
    stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return repr(sorted(stats))
