"""Which proxy stands between here and an address, by the environment's variables or the system's settings.

Libraries differ in how they read these variables, and some give up on all of them because of one. Here each address
asks only for what concerns it: this machine's own addresses never go through a proxy, ``https_proxy`` does not suffer
from a bad ``all_proxy``, and what cannot be used is told by the variable's name.
"""

import importlib.util
import ipaddress
import os
import re
import sys
import urllib.request
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from engine.contract import BasslineError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SOCKS = {"socks": "socks5", "socks5": "socks5", "socks5h": "socks5h"}  # desktops write socks:// for version 5


class BadProxy(BasslineError):
    """A proxy is named that cannot be used."""


@dataclass(frozen=True)
class Proxy:
    """``address`` may hold a name and a password. ``origin``: the variable that names it, or who else does."""

    address: str
    origin: str

    @property
    def host(self) -> str:
        """Host and port, without the secret."""
        return urlsplit(self.address).netloc.rpartition("@")[2]

    @property
    def words(self) -> str:
        """How a sentence calls it."""
        return f"the proxy {self.host} (from {self.origin})"

    def way_round(self, address: str) -> str:
        """How ``address`` is asked without it, as the end of a sentence; nothing if it was named on purpose."""
        host = urlsplit(address if "://" in address else f"//{address}").hostname
        return f", or put {host} into NO_PROXY" if self.origin.lower().endswith("_proxy") else ""


def proxy_for(address: str) -> Proxy | None:
    """The proxy on the way to ``address``, or None for the direct way. Raises BadProxy."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if is_loopback(host):
        return None
    named = _named(parts.scheme)
    if named is None or _is_exempt(host, parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)):
        return None
    return usable(*named, host)


def usable(origin: str, value: str, host: str) -> Proxy:
    """The proxy that ``origin`` names by ``value`` on the way to ``host``. Raises BadProxy.

    ``value`` may hold a password, and is not quoted.
    """
    instead = f"set it to an address such as http://proxy.example:3128, or put {host} into NO_PROXY"
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        parts.port  # noqa: B018 - raises when it is no number
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if not parts.hostname or re.search(r"[\s\x00-\x1f\"'\\]", value):
        raise BadProxy(f"{origin} holds no address of a proxy; {instead}.")
    scheme = parts.scheme.lower()
    if scheme in _SOCKS:
        if importlib.util.find_spec("socksio") is None:
            raise BadProxy(
                f"{origin} names a SOCKS proxy, for which the package socksio is missing; install it with "
                f"`{sys.executable} -m pip install socksio`, or {instead}."
            )
        scheme = _SOCKS[scheme]
    elif scheme not in _DEFAULT_PORTS:
        raise BadProxy(f"{origin} names a {scheme}:// proxy, a kind that Bassline does not support; {instead}.")
    return Proxy(f"{scheme}://{parts.netloc}", origin)


def is_loopback(host: str) -> bool:
    """The name or number of this very machine, in any of its forms: ``localhost``, 127.0.0.0/8, ``::1``, 0.0.0.0."""
    name = host.lower().strip("[]").rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        number = ipaddress.ip_address(name)
    except ValueError:
        return re.fullmatch(r"127(\.\d{1,3}){1,2}", name) is not None  # 127.1, as inet_aton reads it
    mapped = getattr(number, "ipv4_mapped", None) or number
    return mapped.is_loopback or mapped.is_unspecified


def _named(scheme: str) -> tuple[str, str] | None:
    """The variable that counts for ``scheme``, and its value. Lower case counts for more; set to nothing, it is off."""
    for kind in (scheme, "all"):
        for name in (f"{kind}_proxy", f"{kind}_proxy".upper()):
            if name == "HTTP_PROXY" and "REQUEST_METHOD" in os.environ:
                continue  # in a CGI script this is a header of somebody's request
            if (value := os.environ.get(name)) is not None:
                if value.strip():
                    return name, value.strip()
                break
    if sys.platform in ("darwin", "win32") and not urllib.request.getproxies_environment():
        if value := urllib.request.getproxies().get(scheme):
            return "the system's settings", value
    return None


def _is_exempt(host: str, port: int) -> bool:
    """Whether ``no_proxy`` names ``host``: itself, a domain it is in, or a network. Entries that mean nothing do no
    harm."""
    entries = os.environ.get("no_proxy", os.environ.get("NO_PROXY", ""))
    if any(_covers(entry, host.lower().rstrip("."), port) for entry in re.split(r"[,\s;]+", entries.lower()) if entry):
        return True
    if sys.platform in ("darwin", "win32") and not urllib.request.getproxies_environment():
        return bool(urllib.request.proxy_bypass(host))
    return False


def _covers(entry: str, host: str, port: int) -> bool:
    entry = entry.strip("\"'").partition("://")[2] or entry.strip("\"'")
    if entry == "*":
        return True
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        number = None
    try:
        if number is not None:
            return number in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass  # no network; perhaps an address with its port
    match = re.fullmatch(r"\[?([^\[\]/]+?)\]?(?::(\d+))?/?", entry)
    if match is None or (match[2] and int(match[2]) != port):
        return False
    name = match[1].removeprefix("*").strip(".")
    return bool(name) and (host == name or (number is None and host.endswith(f".{name}")))
