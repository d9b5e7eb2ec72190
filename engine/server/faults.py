"""What can go wrong between Bassline and a server: a kind each, and one sentence that says what to do."""

import json
import ssl
from collections.abc import Iterator

import httpx2

from engine.contract import BasslineError


class ServerFault(BasslineError):
    """Something that a server did, or did not do."""


class Unreachable(ServerFault):
    """No connection: no host of that name, nothing listening, no valid certificate, no way through the proxy."""


class Silent(ServerFault):
    """The connection stands, but nothing comes."""


class BrokeOff(ServerFault):
    """The connection ended in the middle of an answer."""


class NotAllowed(ServerFault):
    """401 and 403: the token is missing or wrong."""


class NotThere(ServerFault):
    """404: no such model, or no such way in."""


class Refused(ServerFault):
    """The server does not take this request as it is. ``said``: its own words."""

    def __init__(self, sentence: str, said: str):
        super().__init__(sentence)
        self.said = said


class TooBusy(ServerFault):
    """429 or 503, and the time to wait is longer than a person would."""


class Failing(ServerFault):
    """5xx, or an error in the middle of the answer: the server's own trouble. ``said``: its own words."""

    def __init__(self, sentence: str, said: str):
        super().__init__(sentence)
        self.said = said


class NoSuchSpeech(ServerFault):
    """What came is not what an OpenAI-compatible server says."""


def from_status(status: int, body: str, host: str) -> ServerFault:
    """The fault that an answer with ``status`` means. ``body`` is what came with it."""
    said = words_of(body)
    quoted = f": {_without_stop(said)}" if said else ""
    match status:
        case 401 | 403:
            return NotAllowed(f"{host} wants a valid token ({status}); give it one under Servers, or by 'servers add'.")
        case 404:
            return NotThere(f"{host} knows no such model or address (404){quoted}.")
        case 429 | 503:
            return TooBusy(
                f"{host} has too much to do ({status}){quoted}; try again later, or ask for fewer at a time."
            )
        case _ if 300 <= status < 400:
            return NotThere(f"{host} says that it has moved ({status}); write the address where it is now.")
        case _ if status >= 500:
            return Failing(f"{host} failed ({status}){quoted}; its own log says more.", said)
        case _:
            return Refused(f"{host} refused the request ({status}){quoted}.", said)


def in_answer(error: object, host: str) -> ServerFault:
    """The fault that an error inside a stream means: an object with a message, or a text."""
    said = words_of(json.dumps({"error": error}))
    return Failing(f"{host} stopped with an error: {_without_stop(said) or 'it did not say which'}.", said)


def from_transport(error: httpx2.HTTPError, host: str, silence_s: float) -> ServerFault:
    """The fault that an exception of the HTTP library means. Its own text is not passed on: it may quote a header."""
    reasons = list(_causes(error))
    certificate = next((r for r in reasons if isinstance(r, ssl.SSLCertVerificationError)), None)
    if certificate is not None:
        return Unreachable(
            f"The certificate of {host} is not trusted ({certificate.verify_message}); "
            "name its issuer's file under Servers, or by 'servers add' with --ca-file."
        )
    if any(isinstance(r, ssl.SSLError) for r in reasons):
        return Unreachable(f"{host} does not speak TLS here; does its address begin with http://?")
    match error:
        case httpx2.ProxyError():
            return Unreachable(f"The proxy did not let us through to {host}; look at its address and its rules.")
        case httpx2.ConnectTimeout():
            return Unreachable(f"{host} did not answer in time; is it switched on, and is the port right?")
        case httpx2.ConnectError() if "name" in str(error).lower() or "address" in str(error).lower():
            return Unreachable(f"No computer is called {host}; look at the address.")
        case httpx2.ConnectError():
            return Unreachable(f"Nothing answers at {host}; start the server, or look at the port.")
        case httpx2.TimeoutException():
            return Silent(f"{host} said nothing for {silence_s:g} s; the text so far is kept.")
        case httpx2.SSEError() | httpx2.DecodingError() | httpx2.UnsupportedProtocol():
            return NoSuchSpeech(f"{host} does not answer as an OpenAI-compatible server does; look at the address.")
        case _:
            return BrokeOff(f"The connection to {host} broke off; the text so far is kept.")


def words_of(body: str) -> str:
    """What a server says in an error, on one line: OpenAI's form, FastAPI's, a bare message, or plain text."""
    try:
        data = json.loads(body)
    except ValueError:
        return "" if "<" in body[:200] else _short(body)  # a web page says nothing to a person
    while isinstance(data, dict):
        data = next((data[key] for key in ("error", "message", "detail", "msg") if data.get(key)), "")
    if isinstance(data, list):  # FastAPI names each wrong field
        parts = (f"{'.'.join(map(str, d.get('loc', [])))}: {d.get('msg', '')}" for d in data if isinstance(d, dict))
        data = "; ".join(parts)
    return _short(data) if isinstance(data, str) else ""


def _short(text: str, most: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _without_stop(text: str) -> str:
    return text.rstrip(". ")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
