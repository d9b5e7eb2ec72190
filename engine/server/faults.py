"""What can go wrong between Bassline and a server: a kind each, and one sentence that says what to do."""

import json
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2

from engine.contract import BasslineError
from engine.network import certificates
from engine.network.proxies import Proxy
from engine.server.stream import well_formed

_GIVE_TOKEN = "give it one under Servers, or by 'servers add'"
_WORDS = ("error", "message", "detail", "msg", "errors", "error_msg", "error_message", "status_msg", "reason", "title")


class ServerFault(BasslineError):
    """Something that a server did, or did not do."""


class Unreachable(ServerFault):
    """No connection: no host of that name, nothing listening, no valid certificate, no way through the proxy."""


class ServerSilent(ServerFault):
    """The connection stands, but nothing comes."""


class BrokeOff(ServerFault):
    """The connection ended in the middle of an answer."""


class NotAllowed(ServerFault):
    """401 and 403: the token is missing or wrong."""


class NotThere(ServerFault):
    """404: no such model, or no such way in."""


class RequestRefused(ServerFault):
    """The server does not take this request as it is. ``reply``: its own words."""

    def __init__(self, sentence: str, reply: str):
        super().__init__(sentence)
        self.reply = reply


class TooBusy(ServerFault):
    """429 or 503, and the time to wait is longer than a user would."""


class ServerFailing(ServerFault):
    """5xx, or an error in the middle of the answer: the server's own trouble. ``reply``: its own words."""

    def __init__(self, sentence: str, reply: str):
        super().__init__(sentence)
        self.reply = reply


class UnknownProtocol(ServerFault):
    """What came is not what an OpenAI-compatible server says."""


def from_status(status: int, body: str, host: str, proxy: Proxy | None = None, place: str = "") -> ServerFault:
    """The fault that an answer with ``status`` means. ``body`` is what came with it, ``place`` where it points to."""
    reply = text_of(body)
    quoted = f": {_without_stop(reply)}" if reply else ""
    if proxy is not None and status in (502, 503, 504):
        quoted += f" (asked through {proxy.words})"
    match status:
        case 401 | 403 if status == 401 or not reply:
            return NotAllowed(f"{host} wants a valid token ({status}); {_GIVE_TOKEN}.")
        case 403:
            return NotAllowed(f"{host} does not allow this ({status}){quoted}; if it wants a token, {_GIVE_TOKEN}.")
        case 407 if proxy is not None:
            return Unreachable(
                f"{_capital(proxy.words)} wants a name and a password (407); write them into the variable, "
                "as in http://name:password@host:port."
            )
        case 404 | 405 | 410:
            return NotThere(f"{host} knows no such model or address ({status}){quoted}.")
        case 429 | 503 | 529:
            return TooBusy(
                f"{host} has too much to do ({status}){quoted}; try again later, or ask for fewer at a time."
            )
        case _ if 300 <= status < 400:
            return NotThere(f"{host} says that it has moved ({status}); write the address where it is now{_at(place)}.")
        case _ if status >= 500:
            return ServerFailing(f"{host} failed ({status}){quoted}; its own log says more.", reply)
        case _:
            return RequestRefused(f"{host} refused the request ({status}){quoted}.", reply)


def in_answer(error: object, host: str) -> ServerFault:
    """The fault that an error inside a stream means: an object with a message, or a text."""
    reply = text_of(json.dumps({"error": error}))
    return ServerFailing(f"{host} stopped with an error: {_without_stop(reply) or 'it did not say which'}.", reply)


def from_transport(error: httpx2.HTTPError, host: str, silence_s: float, proxy: Proxy | None = None) -> ServerFault:
    """The fault that an exception of the HTTP library means. Its own text is not passed on: it may quote a header.

    ``proxy``: what stands between here and ``host``.
    """
    reasons = list(_causes(error))
    certificate = next((r for r in reasons if isinstance(r, ssl.SSLCertVerificationError)), None)
    if certificate is not None:
        hint = f" ({words})" if (words := certificates.hint()) else ""
        return Unreachable(
            f"The certificate of {host} is not trusted ({certificate.verify_message}); "
            f"name its issuer's file under Servers, or by 'servers add' with --ca-file{hint}."
        )
    if any(isinstance(r, ssl.SSLError) for r in reasons):
        return Unreachable(f"{host} does not speak TLS here; does its address begin with http://?")
    unless = proxy.way_round(host) if proxy is not None else ""
    match error:
        case httpx2.ProxyError() if proxy is not None:
            return Unreachable(
                f"{_capital(proxy.words)} did not let us through to {host}; look at its address and its rules{unless}."
            )
        case httpx2.ConnectError() | httpx2.ConnectTimeout() if proxy is not None:
            return Unreachable(f"{_capital(proxy.words)} does not answer; start it, look at its address{unless}.")
        case httpx2.ConnectTimeout():
            return Unreachable(f"{host} did not answer in time; is it switched on, and is the port right?")
        case httpx2.ConnectError() if any(isinstance(r, socket.gaierror) for r in reasons):
            return Unreachable(f"No computer is called {host}; look at the address.")
        case httpx2.ConnectError():
            return Unreachable(f"Nothing answers at {host}; start the server, or look at the port.")
        case httpx2.TimeoutException():
            return ServerSilent(f"{host} sent nothing for {silence_s:g} s; the text so far is kept.")
        case httpx2.DecodingError() | httpx2.UnsupportedProtocol():
            return unknown_protocol(host)
        case _:
            return BrokeOff(f"The connection to {host} broke off; the text so far is kept.")


def unknown_protocol(host: str) -> UnknownProtocol:
    return UnknownProtocol(f"{host} does not answer as an OpenAI-compatible server does; look at the address.")


def text_of(body: str) -> str:
    """What a server says in an error, on one line: OpenAI's form, FastAPI's, a bare message, or plain text."""
    try:
        words = _words(json.loads(body))
    except (ValueError, RecursionError):
        words = "" if "<" in body[:200] else body  # a web page says nothing to a user
    return _short(well_formed(words))


def _words(data: object) -> str:
    while isinstance(data, dict):
        if isinstance(data.get("msg"), str) and isinstance(data.get("loc"), list):  # FastAPI names each wrong field
            return f"{'.'.join(map(str, data['loc']))}: {data['msg']}"
        data = next((data[key] for key in _WORDS if data.get(key)), "")
    if isinstance(data, list):
        return "; ".join(filter(None, map(_words, data)))
    return data if isinstance(data, str) else ""


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _at(place: str) -> str:
    """Where a server sends us, without what may be secret in it."""
    parts = urlsplit(place)
    return f" ({parts.scheme}://{parts.netloc.rpartition('@')[2]})" if parts.netloc and parts.scheme else ""


def _short(text: str, most: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _without_stop(text: str) -> str:
    return text.rstrip(". ")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
