"""Where pip would look, and what a page of an index says."""

import json

import pytest

from engine.models.errors import DownloadFailed
from engine.models.package_index import PUBLIC_INDEX, IndexSettings, find_wheel, read_settings, settings_of_pip


def test_without_a_configuration_the_public_index():
    assert read_settings("") == IndexSettings((PUBLIC_INDEX,))


def test_the_environment_beats_the_command_beats_the_file():
    listing = """\
:env:.index-url='https://env.example/simple'
download.proxy='http://proxy.example:3128'
global.cert='/some/where.pem'
global.extra-index-url='https://a.example/simple https://b.example/simple'
global.index-url='https://file.example/simple'
global.proxy='http://other.example'
install.no-index='true'
"""
    assert read_settings(listing) == IndexSettings(
        ("https://env.example/simple", "https://a.example/simple", "https://b.example/simple"),
        proxy="http://proxy.example:3128",
        certificates="/some/where.pem",
    )


def test_links_alone():
    assert read_settings("global.no-index='1'\nglobal.find-links='/wheels file:///more'") == IndexSettings(
        (), ("/wheels", "file:///more")
    )


def test_pip_is_asked(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://mine.example/simple")
    settings_of_pip.cache_clear()
    try:
        assert settings_of_pip().indexes[0] == "https://mine.example/simple"
    finally:
        settings_of_pip.cache_clear()


def find(settings: IndexSettings, requirement: str):
    with settings.client() as client:
        return find_wheel(client, settings, requirement)


@pytest.mark.parametrize("form", ["html", "json"])
def test_both_forms_of_a_page(index, form):
    if form == "json":
        files = [
            {"filename": "tiny_part1-0.9-py3-none-any.whl", "url": "old.whl", "hashes": {}},
            {"filename": "notes.txt", "url": "notes.txt", "hashes": {}},
            {
                "filename": "tiny_part1-1.0-py3-none-any.whl",
                "url": "../.." + index.wheel(1),
                "hashes": {"sha256": "ab" * 32},
                "size": 123,
            },
        ]
        body = json.dumps({"files": files}).encode()
        index.server.put("/simple/tiny-part1/", body, "application/vnd.pypi.simple.v1+json")
    found = find(index.settings, "Tiny.Part1==1.0")
    assert found.url == index.server.url + index.wheel(1)
    assert found.name == "tiny_part1-1.0-py3-none-any.whl"
    assert (found.bytes, found.sha256) == (123, "ab" * 32) if form == "json" else len(found.sha256) == 64


def test_the_next_index_is_asked_when_one_is_away(index):
    settings = IndexSettings(("http://127.0.0.1:9/simple", *index.settings.indexes))
    assert find(settings, "tiny-part2==1.0").name == "tiny_part2-1.0-py3-none-any.whl"


def test_no_such_version_is_a_sentence(index):
    with pytest.raises(DownloadFailed, match=r"check the connection and try again \(no wheel of tiny-part1==7\.0\)"):
        find(index.settings, "tiny-part1==7.0")


def test_an_index_that_is_away_says_why(index):
    with pytest.raises(DownloadFailed, match=r"no wheel of tiny-part1==1\.0: .*refused"):
        find(IndexSettings(("http://127.0.0.1:9/simple",)), "tiny-part1==1.0")


@pytest.mark.parametrize("place", ["links", "index"])
def test_folders_of_this_machine(index, tmp_path, place):
    folder = tmp_path / "wheels with blank" if place == "links" else tmp_path / "simple" / "tiny-part1"
    folder.mkdir(parents=True)
    wheel = folder / "tiny_part1-1.0-py3-none-any.whl"
    wheel.write_bytes(index.bytes_of(1))
    if place == "index":
        (folder / "index.html").write_text(f'<a href="{wheel.name}#sha256={"0" * 64}">x</a>')
        settings = IndexSettings(((tmp_path / "simple").as_uri(),))
    else:
        settings = IndexSettings((), (str(folder),))
    assert find(settings, "tiny-part1==1.0").url == wheel.as_uri()
