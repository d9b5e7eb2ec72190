"""The side of the hub: an endpoint on this machine, with revisions, gates and faults."""

import hashlib
import json
from pathlib import Path

import huggingface_hub
import huggingface_hub.constants
import pytest

from engine.contract import LoadCancelled
from engine.models import hub
from engine.models.errors import DiskFull, DownloadFailed, ModelNotFound, WrongFile
from tests.engine.models.loopback import Faults, Loopback

NAME, COMMIT, OLD = "some/model", "c" * 40, "0" * 40
WEIGHTS = "model.safetensors"


class Repository:
    """``some/model`` on a hub of this machine, with the tiny model in it; one older commit under the tag v1."""

    def __init__(self, server: Loopback, folder: Path):
        self.server = server
        self.files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        self.publish("main", COMMIT, self.files)
        self.publish(COMMIT, COMMIT, self.files)
        self.publish("v1", OLD, self.files | {"config.json": self.files["config.json"] + b"\n"})

    def publish(self, revision: str, commit: str, files: dict[str, bytes]) -> None:
        siblings = []
        for name, content in files.items():
            large = {"lfs": {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 130}}
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            siblings.append(
                {"rfilename": name, "size": len(content), "blobId": blob} | (large if name == WEIGHTS else {})
            )
            self.server.put(self.path(name, commit), content)
        about = {"id": NAME, "modelId": NAME, "sha": commit, "siblings": siblings}
        self.server.put(f"/api/models/{NAME}/revision/{revision}", json.dumps(about).encode(), "application/json")

    @staticmethod
    def path(name: str, commit: str = COMMIT) -> str:
        return f"/{NAME}/resolve/{commit}/{name}"

    def refuse(self, status: int, code: str) -> None:
        page = self.server.pages[f"/api/models/{NAME}/revision/main"]
        page.status, page.headers, page.body = status, {"X-Error-Code": code, "X-Error-Message": "no"}, b"{}"


@pytest.fixture
def repository(tiny_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Loopback()
    with server.running():
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield Repository(server, tiny_folder())


class Fetch:
    def __init__(self, stop_at: int | None = None, stall_s: float = 5.0):
        self.stop_at, self.stall_s, self.seen = stop_at, stall_s, []

    def __call__(self, revision: str = "main", name: str = "") -> Path:
        options = {"progress": self.seen.append, "cancelled": self.cancelled, "stall_s": self.stall_s}
        if name:
            return hub.fetch_file(NAME, name, revision=revision, **options)
        return hub.fetch_repository(NAME, revision=revision, **options)

    def cancelled(self) -> bool:
        return self.stop_at is not None and any(event.done >= self.stop_at for event in self.seen)


def test_a_repository_lands_in_the_hubs_own_cache(repository, home):
    fetch = Fetch()
    folder = fetch()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == repository.files
    assert huggingface_hub.snapshot_download(NAME, local_files_only=True) == str(folder)
    assert hub.cached_repository(NAME) == folder
    assert fetch.seen[-1].done == fetch.seen[-1].total == sum(map(len, repository.files.values()))
    (found,) = huggingface_hub.scan_cache_dir(huggingface_hub.constants.HF_HUB_CACHE).repos
    assert (found.repo_id, found.size_on_disk) == (NAME, fetch.seen[-1].total)


def test_one_file(repository, home):
    path = Fetch()(name=WEIGHTS)
    assert path.read_bytes() == repository.files[WEIGHTS]
    assert path.resolve().name == hashlib.sha256(repository.files[WEIGHTS]).hexdigest()


def test_a_revision_is_pinned(repository, home):
    old = Fetch()("v1")
    assert old.name == OLD
    assert (old / "config.json").read_bytes() != repository.files["config.json"]
    assert hub.cached_repository(NAME, "v1") == old
    assert hub.cached_repository(NAME) is None
    assert hub.cached_repository(NAME, OLD) == old
    repository.server.asked.clear()
    assert Fetch()().name == COMMIT
    assert repository.server.starts(repository.path(WEIGHTS)) == []  # the same bytes are not fetched twice


def test_stopping_is_pausing(repository, home):
    repository.server.faults = Faults(wait_s=0.01)
    before = sum(len(content) for name, content in repository.files.items() if name < WEIGHTS)
    with pytest.raises(LoadCancelled):
        Fetch(stop_at=before + 20_000)()
    assert hub.cached_repository(NAME) is None
    repository.server.faults = Faults()
    repository.server.asked.clear()
    assert (Fetch()() / WEIGHTS).read_bytes() == repository.files[WEIGHTS]
    assert repository.server.starts(repository.path(WEIGHTS))[0] >= 20_000
    assert repository.server.starts(repository.path("config.json")) == []


@pytest.mark.parametrize(
    "faults",
    [Faults(drop_after=40_000), Faults(drop_after=40_000, times=2, ignore_ranges=True), Faults(stall_after=9_000)],
    ids=["drops", "ignores ranges", "stalls"],
)
def test_a_bad_server(repository, home, faults):
    repository.server.faults = faults
    faults.times = min(faults.times, 3)
    assert (Fetch(stall_s=0.5)() / WEIGHTS).read_bytes() == repository.files[WEIGHTS]


def test_bytes_that_are_not_the_published_ones(repository, home):
    page = repository.server.pages[repository.path(WEIGHTS)]
    page.body = page.body[::-1]
    with pytest.raises(WrongFile, match=r"model\.safetensors arrived with the wrong bytes"):
        Fetch()()
    assert hub.cached_repository(NAME) is None


@pytest.mark.parametrize(
    ("status", "code", "kind", "said"),
    [
        (403, "GatedRepo", DownloadFailed, "some/model is gated: accept its terms .*hf auth login"),
        (401, "RepoNotFound", ModelNotFound, "no repository some/model, or it is not open to you"),
        (404, "RevisionNotFound", ModelNotFound, "some/model has no revision main"),
        (500, "", DownloadFailed, "did not say what some/model holds"),
    ],
)
def test_refusals(repository, home, status, code, kind, said):
    repository.refuse(status, code)
    with pytest.raises(kind, match=said):
        Fetch()()


def test_a_gate_that_only_the_files_are_behind(repository, home):
    repository.server.pages[repository.path(WEIGHTS)].status = 403
    with pytest.raises(DownloadFailed, match="some/model is gated"):
        Fetch()()


def test_a_file_that_the_repository_does_not_have(repository, home):
    with pytest.raises(ModelNotFound, match=r"holds no other\.gguf"):
        Fetch()(name="other.gguf")


@pytest.mark.parametrize(("other", "said"), [("pytorch_model.bin", ", but pytorch_model"), ("README.md", ";")])
def test_a_repository_without_safetensors(repository, home, other, said):
    files = {name: content for name, content in repository.files.items() if not name.endswith(".safetensors")}
    repository.publish("main", COMMIT, files | {other: b"bytes"})
    with pytest.raises(ModelNotFound, match=rf"holds no safetensors{said}.*fetch a GGUF and name the file"):
        Fetch()()


def test_offline_by_the_hubs_own_variable(repository, home, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DownloadFailed, match="HF_HUB_OFFLINE"):
        Fetch()()


def test_room_is_looked_for_first(repository, home, tmp_path, small_disk):
    small_disk(tmp_path / "hf", 60_000)
    with pytest.raises(DiskFull, match=r"some/model needs 0 MB in .* only 0 MB are free"):
        Fetch()()
    assert repository.server.starts(repository.path("config.json")) == []


BLOCKED = {
    "a proxy of another kind": ("ALL_PROXY", "socks4://127.0.0.1:9", "ALL_PROXY names a socks4:// proxy"),
    "no proxy at all": ("https_proxy", "http://", "https_proxy holds no address of a proxy"),
    "a file that is gone": ("SSL_CERT_FILE", "/nonexistent/c.pem", "SSL_CERT_FILE names /nonexistent/c.pem"),
    "a proxy that is not there": ("HTTPS_PROXY", "127.0.0.1:9", "the proxy 127.0.0.1:9 (from HTTPS_PROXY) does not"),
}


@pytest.mark.parametrize(("name", "value", "words"), BLOCKED.values(), ids=BLOCKED.keys())
def test_what_of_the_environment_is_in_the_way_of_the_hub_is_told(repository, home, monkeypatch, name, value, words):
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example")
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "https://hub.example")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    for variable in ("ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, value)
    with pytest.raises(DownloadFailed) as raised:
        Fetch()()
    assert words in str(raised.value)
    assert hub.reachable() is False
    assert words in hub.why_not()


def test_a_hub_on_this_machine_is_asked_whatever_the_environment_holds(repository, home, monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("ALL_PROXY", "socks4://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "127.0.0.1:9")
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/c.pem")
    assert {path.name for path in Fetch()().iterdir()} == set(repository.files)
