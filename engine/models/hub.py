"""Files from the Hugging Face hub, through its own library: its cache, its resume, its checks.

The download runs in a child process (``python -m engine.models.hub REPOSITORY [FILE]``), so that it can be stopped.
"""

import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from engine.contract import BasslineError
from engine.models import child
from engine.models.errors import DownloadFailed, ModelNotFound, WrongFile
from engine.models.folders import check_weights_folder

PROBE_S = 3.0
_WANTED = ["*.safetensors", "*.json", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt"]


def reachable() -> bool:
    """Whether the hub answers at all, known within three seconds also where the network swallows packets."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    answered = threading.Event()

    def ask() -> None:
        try:
            urllib.request.urlopen(urllib.request.Request(constants.ENDPOINT, method="HEAD"), timeout=PROBE_S).close()
        except urllib.error.HTTPError as error:
            if error.code < 500:
                answered.set()
        except (OSError, ValueError):
            pass
        else:
            answered.set()
        finally:
            done.set()

    done = threading.Event()
    threading.Thread(target=ask, name="hub-probe", daemon=True).start()  # name look-up has no time-out of its own
    done.wait(PROBE_S)
    return answered.is_set()


def cached_file(repository: str, name: str) -> Path | None:
    """A file that is in the hub's cache already."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repository, name)
    return Path(found) if isinstance(found, str) else None


def cached_repository(repository: str) -> Path | None:
    """The folder of a repository whose weights are all in the hub's cache."""
    config = cached_file(repository, "config.json")
    if config is None:
        return None
    try:
        check_weights_folder(config.parent)
    except WrongFile:
        return None
    return config.parent


def fetch_file(repository: str, name: str, *, progress: child.Progress, cancelled: child.Cancelled) -> Path:
    """Download one file into the hub's cache; an interrupted one is resumed there."""
    return Path(_run([repository, name], progress, cancelled))


def fetch_repository(repository: str, *, progress: child.Progress, cancelled: child.Cancelled) -> Path:
    """Download config, tokenizer and safetensors of a repository into the hub's cache."""
    return Path(_run([repository], progress, cancelled))


def _run(arguments: list[str], progress: child.Progress, cancelled: child.Cancelled) -> Any:
    return child.run_module(
        "engine.models.hub", arguments, failure=DownloadFailed, progress=progress, cancelled=cancelled
    )


# ---------------------------------------------------------------------------------------------- in the child


def _download(repository: str, name: str | None, reporter: child.Reporter) -> str:
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    bars = _bars(reporter)
    try:
        if name is None:
            return str(snapshot_download(repository, allow_patterns=_WANTED, tqdm_class=bars))
        return str(hf_hub_download(repository, name, tqdm_class=bars))
    except RepositoryNotFoundError as error:
        raise ModelNotFound(f"The hub has no repository {repository}, or it is not open to you.") from error
    except (HfHubHTTPError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise DownloadFailed(f"{repository} could not be fetched from the hub: {reason}") from error


def _bars(reporter: child.Reporter) -> Any:
    """A progress bar that speaks to the parent in place of a terminal."""
    import io

    from tqdm import tqdm

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(*args, **kwargs | {"file": io.StringIO()})

        def update(self, n: float | None = 1) -> bool | None:
            shown = super().update(n)
            if self.unit == "B":
                reporter.progress("download", int(self.n), int(self.total or 0))
            return shown

    return Bar


def _main(repository: str, name: str | None) -> None:
    reporter = child.Reporter()
    try:
        path = _download(repository, name, reporter)
    except BasslineError as error:
        reporter.failed(error)
    reporter.result(path)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
