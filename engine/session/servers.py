"""The servers a user has named, and their tokens: addresses in a file, tokens only in the system's keyring.

``servers.toml`` in the settings folder holds everything but the tokens. Where a system has no keyring, the
environment variable BASSLINE_SERVER_TOKEN stands in; it is sent to whatever server is chosen.
"""

import contextlib
import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import cattrs
import tomli_w

from engine.contract import BasslineError
from engine.network.proxies import is_loopback
from engine.session import paths
from engine.session.export import save

TOKEN_VARIABLE = "BASSLINE_SERVER_TOKEN"
_KEYRING = "bassline"  # the keyring's entries: this service, and the server's address for a user
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class BadServer(BasslineError):
    """A name, address, proxy, certificate file or token that cannot be used."""


class NoSuchServer(BasslineError):
    """Nobody has named a server so."""


class NoKeyring(BasslineError):
    """This system keeps no secrets for programs, or refused to."""


@dataclass(frozen=True)
class Server:
    """An OpenAI-compatible server. ``name`` is empty for one that was only ever given by its address.

    ``address``: up to and including the version, such as ``http://localhost:8000/v1``. ``model``: the name there;
    "default" is the first that the server lists. ``ca_file``: a PEM file with certificates to trust beside the
    system's own. ``proxy``: an address, or empty for what the environment says (HTTPS_PROXY and the like).
    ``keeps_token``: its token lies in the keyring. Raises BadServer.
    """

    name: str
    address: str
    model: str = "default"
    ca_file: str = ""
    proxy: str = ""
    keeps_token: bool = False

    def __post_init__(self) -> None:
        if self.name and not _NAME.fullmatch(self.name):
            raise BadServer(f"A server's name is made of letters, digits, dots and dashes, not {self.name!r}.")
        for text in (self.address, self.model, self.ca_file, self.proxy):
            if any("\ud800" <= character <= "\udfff" for character in text):  # bytes of a shell that are no text
                raise BadServer("A server's address, model, proxy and file are text in UTF-8; write it once more.")
        object.__setattr__(self, "address", full_address(self.address))
        if self.proxy:
            _checked(self.proxy, "proxy", ("http", "https"))
        if not self.model:
            raise BadServer("No model was named; leave it out for the first that the server lists.")

    @property
    def host(self) -> str:
        """Host and port, as people write them."""
        return urlsplit(self.address).netloc

    @property
    def is_here(self) -> bool:
        """It runs on this very machine."""
        return is_loopback(urlsplit(self.address).hostname or "")

    def elsewhere(self) -> list["Server"]:
        """Where else on this host the protocol may be spoken: the version is missing, or another way in was copied."""
        parts = urlsplit(self.address)
        root = f"{parts.scheme}://{parts.netloc}"
        places = [f"{self.address}/v1", f"{root}/v1", f"{root}/api/v1", f"{root}/api", f"{root}/openai/v1"]
        return [replace(self, address=place) for place in dict.fromkeys(places) if place != self.address]

    @property
    def is_encrypted(self) -> bool:
        return urlsplit(self.address).scheme == "https"


class Token:
    """A secret that shows itself to nobody by accident: not in a repr, a log line, a traceback or JSON."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str = ""):
        secret = secret.strip()
        # Other characters cannot travel in a header, and the error that says so would quote the token.
        if not all("!" <= character <= "~" for character in secret):
            raise BadServer("The token holds characters that no token has; copy it once more, without line breaks.")
        self._secret = secret

    def __repr__(self) -> str:
        return "Token(hidden)" if self else "Token()"

    def __bool__(self) -> bool:
        return bool(self._secret)

    def __reduce__(self) -> Any:
        raise TypeError("A token is not to be stored.")

    def reveal(self) -> str:
        """For the one header it is made for."""
        return self._secret

    def hide(self, text: str) -> str:
        """``text`` without the token: servers like to quote it in their errors."""
        return text.replace(self._secret, "(token)") if self else text


def servers() -> list[Server]:
    """All named servers, by name. Raises BadServer when the file is damaged."""
    try:
        text = _file().read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise BadServer(f"{_file()} cannot be read; repair it, or delete it to start over.") from error
    try:
        entries = tomllib.loads(text).get("server", [])
        return sorted(cattrs.structure(entries, list[Server]), key=lambda server: server.name)
    except (ValueError, TypeError, cattrs.BaseValidationError) as error:
        raise BadServer(f"{_file()} cannot be read; repair it, or delete it to start over.") from error


def find(name_or_address: str) -> Server:
    """The server of that name, or at that address, named or not. Raises NoSuchServer and BadServer."""
    known = servers()
    for server in known:
        if server.name == name_or_address:
            return server
    if _NAME.fullmatch(name_or_address) and not is_loopback(name_or_address):
        names = ", ".join(server.name for server in known) or "none yet"
        raise NoSuchServer(
            f"No server is named {name_or_address!r} (known: {names}); "
            "name one with 'servers add', or write its address, such as http://localhost:8000."
        )
    address = full_address(name_or_address)
    return next((server for server in known if server.address == address), Server("", address))


def add(server: Server, token: Token | None = None) -> Server:
    """Keep ``server``, in place of one of the same name, and its token if one is given.

    Servers at one address share their token. Returns what was kept. Raises BadServer, NoKeyring (and then nothing is
    kept) and CannotSave.
    """
    if not server.name:
        raise BadServer("A server that is to be kept needs a name.")
    if server.ca_file and not Path(server.ca_file).is_file():
        raise BadServer(f"There is no certificate file {server.ca_file}.")
    known = servers()
    before = [each for each in known if each.name == server.name]
    others = [each for each in known if each.name != server.name]
    if token:
        _keep_token(server, token)
    keeps = bool(token) or any(each.keeps_token and each.address == server.address for each in known)
    left = [replace(server, keeps_token=keeps)]
    left += [replace(each, keeps_token=keeps) if each.address == server.address else each for each in others]
    _write(left)
    for each in before:
        _forget_token(each, left)
    return left[0]


def remove(name: str) -> None:
    """Forget the server of that name, and its token. Raises NoSuchServer and CannotSave."""
    known = servers()
    server = next((each for each in known if each.name == name), None)
    if server is None:
        raise NoSuchServer(f"No server is named {name!r}; 'servers list' shows which are.")
    others = [each for each in known if each is not server]
    _write(others)
    _forget_token(server, others)


def token_of(server: Server) -> Token:
    """From the keyring if it keeps one, else from BASSLINE_SERVER_TOKEN, else an empty one. Raises BadServer."""
    if server.keeps_token:
        import keyring  # looks for the system's services when imported, so only where it is needed

        try:
            kept = keyring.get_password(_KEYRING, server.address)
        except Exception:  # each backend has its own; a locked or missing keyring is no reason to give up
            kept = None
        if kept:
            return Token(kept)
    return Token(os.environ.get(TOKEN_VARIABLE, ""))


def full_address(address: str) -> str:
    """``address`` in the one form that is kept and compared: with scheme and version, without a slash at its end.

    Raises BadServer, also for an address that holds a password or a query: it is written to journals and exports.
    """
    address = address.strip()
    if "://" not in address and _is_loopback_without_scheme(address):
        address = f"http://[{address}]" if address.count(":") > 1 and "[" not in address else f"http://{address}"
    parts = _checked(address, "server", ("http", "https"))
    return f"{parts.scheme}://{parts.netloc.lower()}{_base(parts.path)}"


def _base(path: str) -> str:
    """The part of a path that every way in has: pasted ways in, doubled versions and slashes are left out."""
    path = re.sub(r"/{2,}", "/", path).rstrip("/")
    path = re.sub(r"(/chat/completions|/completions|/chat|/models|/responses|/embeddings)$", "", path)
    path = re.sub(r"(/v\d+\w*)\1+$", r"\1", path)
    return path.rstrip("/") or "/v1"


def _is_loopback_without_scheme(address: str) -> bool:
    try:
        return is_loopback(address) or is_loopback(urlsplit(f"//{address}").hostname or "")
    except ValueError:
        return False


def _checked(address: str, what: str, schemes: Iterable[str]) -> SplitResult:
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018 - raises when it is no number
        usable = parts.scheme in schemes and bool(parts.hostname) and not re.search(r"[\s\x00-\x1f]", address)
    except ValueError:
        usable = False
    if not usable:
        # Not quoted: a mistyped address may have a password in it.
        begins = " or ".join(f"{scheme}://" for scheme in schemes)
        raise BadServer(f"That is no address of a {what}; it begins with {begins}, then the host and its port.")
    if parts.username or parts.password or parts.query or parts.fragment:
        elsewhere = f"give a {what}'s secret as its token" if what == "server" else "put it into HTTPS_PROXY instead"
        raise BadServer(f"The address of a {what} must hold no password and no query; {elsewhere}.")
    return parts


def _file() -> Path:
    return paths.settings() / "servers.toml"


def _write(known: list[Server]) -> None:
    entries = [{key: value for key, value in asdict(server).items() if value} for server in known]
    entries.sort(key=lambda entry: entry["name"])
    save(_file(), tomli_w.dumps({"server": entries}), overwrite=True)


def _keep_token(server: Server, token: Token) -> None:
    import keyring

    try:
        keyring.set_password(_KEYRING, server.address, token.reveal())
    except Exception as error:  # each backend has its own
        raise NoKeyring(
            f"The system's keyring did not take the token ({type(error).__name__}); "
            f"set it in the environment variable {TOKEN_VARIABLE} instead."
        ) from None


def _forget_token(server: Server, left: Iterable[Server]) -> None:
    """Take a server's token out of the keyring, unless it is kept for one of ``left`` at the same address."""
    if not server.keeps_token or any(each.keeps_token and each.address == server.address for each in left):
        return
    import keyring

    with contextlib.suppress(Exception):  # it is gone already, or the keyring is
        keyring.delete_password(_KEYRING, server.address)
