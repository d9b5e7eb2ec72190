"""What every test stands on: no network hub, no file outside temporary folders, few threads; and one real model."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Before anything imports torch or huggingface_hub.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("TRITON_INTERPRET", "1")  # device kernels run in Triton's interpreter, on any machine
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"  # never the system's own
_home = tempfile.mkdtemp(prefix="bassline-tests-")
os.environ["BASSLINE_HOME"] = _home

import pytest  # noqa: E402

from engine.device import prepare_environment  # noqa: E402

prepare_environment()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:
    from engine.models.loaded_model import LoadedModel
    from tests.memory_keyring import MemoryKeyring

SMALL_MODEL = "smollm2-135m"


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """A class of the product that a test module imports is no class of tests, even if it is called TestResult."""
    module = getattr(collector, "module", None)
    imported = isinstance(obj, type) and name.startswith("Test") and obj.__module__ != getattr(module, "__name__", "")
    return [] if imported else None


def pytest_sessionfinish() -> None:
    shutil.rmtree(_home, ignore_errors=True)


def model_cache() -> Path:
    """Kept between runs: the small model is fetched and converted once."""
    return Path(os.environ.get("BASSLINE_TEST_CACHE") or Path.home() / ".cache" / "bassline-tests")


@pytest.fixture
def memory_keyring() -> Iterator["MemoryKeyring"]:
    """A keyring for one test."""
    import keyring

    from tests.memory_keyring import MemoryKeyring

    before, mine = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)


@pytest.fixture(scope="session")
def small_model_cache() -> Path:
    """A ``BASSLINE_HOME`` that holds the small model for int8; skips where it can be had from nowhere."""
    from engine.models.errors import DownloadFailed
    from engine.models.preparation import prepare

    home = model_cache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BASSLINE_HOME", str(home))
        try:
            prepare(SMALL_MODEL, precision="int8", device="cpu", progress=lambda _: None, cancelled=lambda: False)
        except DownloadFailed as error:
            pytest.skip(f"the small model is out of reach: {error}")
    return home


@pytest.fixture
def small_model_home(small_model_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh home for one test, set as ``BASSLINE_HOME``, that shares only the models."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "models").symlink_to(small_model_cache / "models", target_is_directory=True)
    monkeypatch.setenv("BASSLINE_HOME", str(home))
    return home


@pytest.fixture
def small_model(small_model_home: Path) -> str:
    """The small model's name; ``load(small_model, ...)`` works, and so does ``--model`` in a child process."""
    return SMALL_MODEL


@pytest.fixture(scope="session")
def loaded_small_model(small_model_cache: Path) -> "LoadedModel":
    """The small model in int8, loaded once for all tests: treat it as read-only."""
    from engine.models.loader import load

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BASSLINE_HOME", str(small_model_cache))
        return load(SMALL_MODEL, precision="int8", device="cpu", progress=lambda _: None, cancelled=lambda: False)
