"""The one door to a server: requests go out with its token, answers come in as chunks, trouble as one sentence."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from engine.server import faults
from engine.server.stream import Chunk, read_chunk
from engine.session.servers import BadServer, Server, Token

CHAT, COMPLETIONS = "/chat/completions", "/completions"
_BUSY = (429, 503)
_ERROR_BYTES = 64 << 10  # of an error's text; the rest is not read


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds: for a connection, for the next byte of an answer, and for a busy server in all.

    The first byte may take minutes, while a long prompt is read on a slow machine; comments that keep the
    connection alive count as bytes.
    """

    connect_s: float = 10.0
    silence_s: float = 300.0
    busy_s: float = 120.0


class Client:
    """Lives in one event loop. Closing a stream, or cancelling the task that reads it, closes its connection."""

    def __init__(self, server: Server, token: Token, patience: Patience = Patience()):
        self.server, self._token, self._patience = server, token, patience
        headers = {"User-Agent": "bassline"}
        if token:
            headers["Authorization"] = f"Bearer {token.reveal()}"
        self._http = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(patience.silence_s, connect=patience.connect_s, pool=None),
            limits=httpx2.Limits(max_connections=None),  # each candidate may need one of its own
            proxy=server.proxy or None,
            verify=_trust(server),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def models(self) -> list[dict[str, Any]]:
        """What the server lists, each with at least an ``id``. Raises ServerFault."""
        async with self._faults():
            response = await self._http.get(f"{self.server.address}/models")
            if response.status_code != 200:
                raise self._hidden(faults.from_status(response.status_code, response.text, self.server.host))
            try:
                entries = response.json().get("data")
            except (ValueError, AttributeError):
                entries = None
        if not isinstance(entries, list):
            raise faults.NoSuchSpeech(
                f"{self.server.address}/models does not list any models; is this an OpenAI-compatible server?"
            )
        return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]

    async def stream(self, way: str, body: dict[str, Any]) -> AsyncGenerator[Chunk]:
        """Ask, and yield the answer as it comes; a busy server is asked again when it said to. Raises ServerFault.

        The iterator ends after [DONE], or when the server closes the connection properly.
        """
        until = time.monotonic() + self._patience.busy_s
        pause = 1.0
        while True:
            async with (
                self._faults(),
                self._http.stream("POST", f"{self.server.address}{way}", json=body) as response,
            ):
                if response.status_code == 200:
                    async for chunk in self._chunks(response):
                        yield chunk
                    return
                fault = faults.from_status(response.status_code, await _beginning(response), self.server.host)
                wait = _retry_after(response.headers.get("Retry-After"))
            pause = pause * 2 if wait is None else wait
            if response.status_code not in _BUSY or time.monotonic() + pause > until:
                raise self._hidden(fault)
            await asyncio.sleep(pause)

    async def _chunks(self, response: httpx2.Response) -> AsyncIterator[Chunk]:
        if response.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
            await response.aread()
            yield self._chunk(response.text)
            yield Chunk(last=True)
            return
        async for event in httpx2.EventSource(response):
            if event.data.strip() == "[DONE]":
                yield Chunk(last=True)
                return
            if event.data.strip():
                yield self._chunk(event.data)

    def _chunk(self, text: str) -> Chunk:
        try:
            data = json.loads(text)
        except ValueError:
            raise faults.NoSuchSpeech(f"{self.server.host} sent a damaged piece of an answer; try again.") from None
        if isinstance(data, dict) and data.get("error"):
            raise self._hidden(faults.in_answer(data["error"], self.server.host))
        return read_chunk(data)

    @contextlib.asynccontextmanager
    async def _faults(self) -> AsyncIterator[None]:
        """The library's exceptions as ours. Nothing of theirs is chained: it may hold the header with the token."""
        try:
            yield
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            if isinstance(error, httpx2.InvalidURL):
                raise BadServer(f"{self.server.address} is no address that can be asked.") from None
            raise faults.from_transport(error, self.server.host, self._patience.silence_s) from None

    def _hidden(self, fault: faults.ServerFault) -> faults.ServerFault:
        """The same fault, without the token in case the server quoted it."""
        fault.args = tuple(self._token.hide(str(part)) for part in fault.args)
        if isinstance(fault, faults.Refused | faults.Failing):
            fault.said = self._token.hide(fault.said)
        return fault


def _trust(server: Server) -> Any:
    context = httpx2.create_ssl_context()
    if server.ca_file:
        try:
            context.load_verify_locations(cafile=server.ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise BadServer(f"{server.ca_file} is no file of certificates in PEM form ({error.strerror}).") from None
    return context


async def _beginning(response: httpx2.Response) -> str:
    """The first part of an error's text, however long the server goes on."""
    read = b""
    async for piece in response.aiter_bytes():
        read += piece
        if len(read) > _ERROR_BYTES:
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
