"""One connection at a time: whatever a server does, the file is whole, or a sentence says why not."""

import hashlib
from dataclasses import replace

import httpx2
import numpy as np
import pytest

from engine.models.errors import DownloadFailed, WrongFile
from engine.models.transfer import TRIES, Download, Remote, here
from tests.engine.models.loopback import Faults, Loopback

CONTENT = np.random.default_rng(3).integers(0, 256, 200_000, dtype=np.uint8).tobytes()
OTHER = CONTENT[::-1]


@pytest.fixture
def server():
    loopback = Loopback()
    loopback.put("/file", CONTENT)
    with loopback.running():
        yield loopback


class Fetch:
    """``fetch(**changes of the remote)``: the bytes that arrive at ``target``; ``seen``: what progress was told."""

    def __init__(self, server, target):
        self.known = Remote(f"{server.url}/file", "file.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
        self.target = target
        self.seen = []

    def __call__(self, **changes):
        with httpx2.Client(trust_env=False) as client:
            download = Download(client, stall_s=0.4, pause_s=0.01)
            download.fetch(replace(self.known, **changes), self.target, lambda *counts: self.seen.append(counts))
        assert sorted(path.name for path in self.target.parent.iterdir()) == ["file"]
        return self.target.read_bytes()


@pytest.fixture
def fetch(server, tmp_path):
    return Fetch(server, tmp_path / "file")


def leave_a_part(target, tagged=True):
    """As after a kill: 70,000 bytes, and the tag that the server gave."""
    target.with_name("file.part").write_bytes(CONTENT[:70_000])
    if tagged:
        target.with_name("file.tag").write_text(f'"{hashlib.sha256(CONTENT).hexdigest()[:16]}"')


def test_a_whole_file(server, fetch):
    assert fetch() == CONTENT
    assert server.starts("/file") == [0]
    assert fetch.seen[-1] == (len(CONTENT), len(CONTENT))


def test_length_and_hash_need_not_be_known(fetch):
    assert fetch(bytes=0, sha256="") == CONTENT


def test_a_dropped_connection_goes_on_where_it_was(server, fetch):
    server.faults = Faults(drop_after=70_000)
    assert fetch() == CONTENT
    assert server.starts("/file") == [0, 70_000, 140_000]


def test_a_server_that_gives_nothing_more_is_left_and_nothing_is_lost(server, fetch):
    fetch.target.with_name("file.part").write_bytes(CONTENT[:70_000])
    server.faults = Faults(drop_after=0)
    with pytest.raises(DownloadFailed, match=r"file\.gguf: the server ended the connection early, 4 times in a row"):
        fetch()
    assert here(fetch.target) == 70_000
    server.faults = Faults()
    assert fetch() == CONTENT
    assert server.starts("/file") == [70_000] * (TRIES + 1)


def test_a_server_that_ignores_ranges_starts_over(server, fetch):
    server.faults = Faults(drop_after=70_000, times=2, ignore_ranges=True)
    assert fetch() == CONTENT
    assert len(server.starts("/file")) == 3


def test_a_file_that_changes_meanwhile_is_fetched_anew(server, fetch):
    """Its tag says so; what is here belongs to the old one."""
    leave_a_part(fetch.target)
    server.pages["/file"].body = OTHER
    assert fetch(sha256=hashlib.sha256(OTHER).hexdigest()) == OTHER
    assert server.starts("/file")[-1] == 0


def test_a_file_that_changes_without_a_tag_is_caught_by_its_hash(server, fetch):
    leave_a_part(fetch.target, tagged=False)
    server.pages["/file"].body = OTHER
    server.faults = Faults(no_tags=True)
    assert fetch(sha256=hashlib.sha256(OTHER).hexdigest()) == OTHER
    assert server.starts("/file")[-2:] == [70_000, 0]


def test_a_file_that_grew_is_not_the_one_asked_for(server, fetch):
    server.pages["/file"].body = CONTENT + b"more"
    with pytest.raises(WrongFile, match="200004 bytes on the server in place of 200000"):
        fetch()


def test_wrong_bytes_never_get_the_name(server, fetch):
    with pytest.raises(WrongFile, match="wrong bytes"):
        fetch(sha256="0" * 64)
    assert not fetch.target.exists()
    assert server.starts("/file") == [0, 0]  # once more from the start, in case two versions were mixed


def test_silence_is_noticed_and_the_file_asked_for_again(server, fetch):
    server.faults = Faults(stall_after=120_000, times=1)
    assert fetch() == CONTENT
    assert server.starts("/file") == [0, 120_000]


def test_silence_for_good_is_a_sentence(server, fetch):
    server.faults = Faults(stall_after=0)
    with pytest.raises(DownloadFailed, match="sent nothing for 0 s, 4 times in a row; what has arrived is kept"):
        fetch()
    assert len(server.asked) == TRIES


def test_nobody_there(fetch):
    with pytest.raises(DownloadFailed, match="cannot be reached"):
        fetch(url="http://127.0.0.1:9/file")


@pytest.mark.parametrize(("status", "said"), [(404, "answers 404 Not Found"), (403, "403 Forbidden"), (503, "4 times")])
def test_refusals(server, fetch, status, said):
    server.pages["/file"].status = status
    with pytest.raises(DownloadFailed, match=said):
        fetch()


def test_a_part_longer_than_the_file_starts_over(server, fetch):
    fetch.target.with_name("file.part").write_bytes(b"x" * 300_000)
    assert fetch() == CONTENT


def test_a_part_that_is_whole_is_not_fetched_again(server, fetch):
    fetch.target.with_name("file.part").write_bytes(CONTENT)
    assert fetch(bytes=0) == CONTENT  # the server says that there is nothing behind it
    fetch.target.rename(fetch.target.with_name("file.part"))
    server.asked.clear()
    assert fetch() == CONTENT
    assert server.asked == []
