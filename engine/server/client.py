"""All traffic with a server: requests carry its token, answers come in as chunks, failures as one sentence."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from engine.network.proxies import BadProxy, Proxy
from engine.network.transport import AsyncTransport
from engine.server import faults
from engine.server.events import DamagedStream, Event, EventReader, StreamDone, StreamFailed
from engine.server.stream import Chunk, error_in, read_chunk
from engine.session.servers import BadServer, Server, Token

CHAT, COMPLETIONS = "/chat/completions", "/completions"
_BUSY = (429, 503, 529)
_USED_UP = "insufficient_quota"  # a 429 that no waiting helps
_ERROR_BYTES, _LIST_BYTES = 64 << 10, 16 << 20  # of an error's text, and of a list; the rest is not read
_MOVES = 4


@dataclass(frozen=True)
class Timeouts:
    """How long to wait, in seconds: for a connection, for the next byte of an answer, and for a busy server in all.

    The first byte may take minutes, while a long prompt is read on a slow machine; comments that keep the
    connection alive count as bytes.
    """

    connect_s: float = 10.0
    silence_s: float = 300.0
    busy_s: float = 120.0


class Client:
    """Lives in one event loop. Closing a stream, or cancelling the task that reads it, closes its connection."""

    def __init__(self, server: Server, token: Token, timeouts: Timeouts = Timeouts()):
        self.server, self._token, self._timeouts = server, token, timeouts
        headers = {"User-Agent": "bassline"}
        if token:
            headers["Authorization"] = f"Bearer {token.reveal()}"
        everyone = httpx2.Limits(max_connections=None)  # each candidate may need a connection of its own
        self._ways = AsyncTransport(server.proxy, server.ca_file, everyone)
        self._http = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(timeouts.silence_s, connect=timeouts.connect_s, pool=None),
            transport=self._ways,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def models(self, address: str = "") -> list[dict[str, Any]]:
        """What the server at ``address`` (else its own) lists, each with at least an ``id``. Raises ServerFault."""
        address = address or self.server.address
        async with self._faults(), self._asked("GET", f"{address}/models") as response:
            if response.status_code != 200:
                raise self._fault(response, await _beginning(response))
            text = await _beginning(response, _LIST_BYTES)
        try:
            entries = listed(json.loads(text.removeprefix("\ufeff")))
        except (ValueError, RecursionError):
            entries = None
        if entries is None:
            raise faults.UnknownProtocol(
                f"{address}/models does not list any models; is this an OpenAI-compatible server?"
            )
        return entries

    async def stream(self, way: str, body: dict[str, Any]) -> AsyncGenerator[Chunk]:
        """Ask, and yield the answer as it comes; a busy server is asked again when it said to. Raises ServerFault.

        The iterator ends after [DONE], or when the server closes the connection properly.
        """
        until = time.monotonic() + self._timeouts.busy_s
        pause = 1.0
        while True:
            async with self._faults(), self._asked("POST", f"{self.server.address}{way}", body) as response:
                if response.status_code == 200:
                    async for chunk in self._chunks(response):
                        yield chunk
                    return
                text = await _beginning(response)
                fault = self._fault(response, text)
                wait = _retry_after(response.headers.get("Retry-After"))
            pause = pause * 2 if wait is None else wait
            for_good = response.status_code not in _BUSY or _USED_UP in text
            if for_good or time.monotonic() + pause > until:
                raise fault
            await asyncio.sleep(pause)

    @contextlib.asynccontextmanager
    async def _asked(self, method: str, url: str, body: dict[str, Any] | None = None) -> AsyncIterator[httpx2.Response]:
        """The response to a request. A move within the same server is followed; elsewhere the token would go along."""
        for _ in range(_MOVES):
            async with self._http.stream(method, url, json=body) as response:
                place = response.headers.get("Location", "")
                to = urljoin(url, place) if place and 300 <= response.status_code < 400 else ""
                if not to or urlsplit(to)[:2] != urlsplit(url)[:2]:
                    yield response
                    return
            url = to
        raise faults.NotThere(f"{self.server.host} sends every request on in a circle; look at the address.")

    async def _chunks(self, response: httpx2.Response) -> AsyncIterator[Chunk]:
        reader, kinds = EventReader(), set[bool]()  # of the events: whether they are of this interface
        try:
            async for data in response.aiter_bytes():
                for event in reader.feed(data):
                    yield (chunk := self._chunk(event))
                    if chunk.last:
                        return
                    kinds.add(_is_of_chat(event))
            for event in reader.end():
                yield self._chunk(event)
                kinds.add(_is_of_chat(event))
            if kinds == {False}:  # nothing of it was understood
                raise faults.unknown_protocol(self.server.host)
            if reader.is_json:  # a whole answer has its end in itself: nobody writes [DONE] behind it
                yield Chunk(last=True)
        except DamagedStream as damaged:
            host = self.server.host
            if damaged.text:
                raise self._hidden(faults.in_answer(damaged.text, host)) from None
            if reader.is_page:
                raise faults.unknown_protocol(host) from None
            raise faults.UnknownProtocol(f"{host} sent a damaged piece of an answer; try again.") from None

    def _chunk(self, event: Event) -> Chunk:
        if isinstance(event, StreamDone):
            return Chunk(last=True)
        error = event.data if isinstance(event, StreamFailed) else error_in(event)
        if error is not None or isinstance(event, StreamFailed):
            raise self._hidden(faults.in_answer(error, self.server.host))
        return read_chunk(event)

    def _fault(self, response: httpx2.Response, text: str) -> faults.ServerFault:
        place = response.headers.get("Location", "")
        return self._hidden(faults.from_status(response.status_code, text, self.server.host, self._proxy(), place))

    def _proxy(self) -> Proxy | None:
        with contextlib.suppress(BadProxy):
            return self._ways.proxy(self.server.address)
        return None

    @contextlib.asynccontextmanager
    async def _faults(self) -> AsyncIterator[None]:
        """The library's exceptions as ours. Nothing of theirs is chained: it may hold the header with the token."""
        try:
            yield
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            if isinstance(error, httpx2.InvalidURL):
                raise BadServer(f"{self.server.address} is no address that can be asked.") from None
            raise faults.from_transport(error, self.server.host, self._timeouts.silence_s, self._proxy()) from None

    def _hidden(self, fault: faults.ServerFault) -> faults.ServerFault:
        """The same fault, without the token in case the server quoted it."""
        fault.args = tuple(self._token.hide(str(part)) for part in fault.args)
        if isinstance(fault, faults.RequestRefused | faults.ServerFailing):
            fault.reply = self._token.hide(fault.reply)
        return fault


def _is_of_chat(event: Event) -> bool:
    """Whether it is an event of OpenAI's older interface, rather than of another one."""
    return not isinstance(event, dict) or "choices" in event or "usage" in event


def listed(data: Any) -> list[dict[str, Any]] | None:
    """The models of a list in OpenAI's form, or in one that other servers have; None if it is no list of models."""
    if isinstance(data, dict):
        names = [name for name in ("data", "models", "body") if name in data]
        if not names:
            return None
        data = data[names[0]] or []  # null where there is none
    if isinstance(data, dict):  # by name
        data = [{"id": name} | (about if isinstance(about, dict) else {}) for name, about in data.items()]
    if not isinstance(data, list):
        return None
    entries = [{"id": entry} if isinstance(entry, str) else entry for entry in data]
    return [entry | {"id": name} for entry in entries if isinstance(entry, dict) and (name := _name(entry))]


def _name(entry: dict[str, Any]) -> str:
    return next((entry[key] for key in ("id", "name", "model") if isinstance(entry.get(key), str)), "")


async def _beginning(response: httpx2.Response, most: int = _ERROR_BYTES) -> str:
    """The first part of a text, however long the server goes on."""
    read = b""
    async for piece in response.aiter_bytes():
        read += piece
        if len(read) > most:
            break
    return read.decode("utf-8", "replace")


def _retry_after(value: str | None) -> float | None:
    """Seconds, from a number of them or a date; None when the header says neither."""
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(value))
    with contextlib.suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None
