"""A server made for tests: polite by default, and as odd as a test wants it."""

import itertools
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import pytest

TOKEN = "BASSLINE_SERVER_TOKEN"
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
WORDS = ["apple", "river", "stone", "cloud", "lamp", "forest", "copper", "violin"]
MODELS = [{"id": "small", "object": "model", "max_model_len": 4096}, {"id": "large", "object": "model"}]


def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ``BASSLINE_HOME``, no token, and no proxy between here and the test's own server."""
    monkeypatch.setenv("BASSLINE_HOME", str(home))
    for name in (TOKEN, *PROXIES, *map(str.upper, PROXIES)):
        monkeypatch.delenv(name, raising=False)
    return home


@dataclass
class Exchange:
    """One request, and the means to answer it in any way."""

    handler: BaseHTTPRequestHandler
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    gone: bool = False  # the client was seen to have closed the connection

    @property
    def prompt(self) -> str:
        return self.body.get("prompt") or self.body["messages"][-1]["content"]

    def begin(self, content_type: str = "text/event-stream; charset=utf-8") -> None:
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", content_type)
        self.handler.send_header("Connection", "close")
        self.handler.end_headers()

    def raw(self, text: str) -> None:
        self.handler.wfile.write(text.encode())
        self.handler.wfile.flush()

    def send(self, data: Any) -> None:
        self.raw(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")

    def text(self, text: str, index: int = 0, finish: str | None = None, **more: Any) -> None:
        """A piece of one choice, in the form of the way that was asked."""
        choice: dict[str, Any] = {"index": index, "finish_reason": finish, **more}
        choice |= {"delta": {"content": text}} if "messages" in self.body else {"text": text}
        self.send({"object": "chunk", "choices": [choice]})

    def done(self) -> None:
        self.send("[DONE]")

    def refuse(self, status: int, said: Any = "", **headers: str) -> None:
        data = (said if isinstance(said, str) else json.dumps(said)).encode()
        self.handler.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def wait_until_gone(self, at_most: float = 10.0) -> None:
        self.handler.connection.settimeout(at_most)
        try:
            self.handler.connection.recv(1)
        except OSError:
            return
        self.gone = True


Answer = Callable[[Exchange], None]


@dataclass
class Polite:
    """Answers as a good server does, except for what it is told to ignore or to refuse.

    ``texts``: what to say to every prompt but the ones that look at what is heeded; the first for seed 1 and so on.
    ``refuses``: fields that are answered with 400; a value is the only one that is refused. ``limit``: its name for
    the most tokens.
    """

    heeds: set[str] = field(default_factory=lambda: {"n", "seed", "logprobs", "usage", "temperature", "top_k", "min_p"})
    refuses: dict[str, Any] = field(default_factory=dict)
    texts: tuple[str, ...] = ("one", "two", "three", "four", "five", "six", "seven", "eight")
    step_s: float = 0.0
    twins: bool = False  # all choices of one request from one seed
    finish: str = "stop"
    limit: str = "max_tokens"
    every_finish: str | None = None  # the reason that comes with every piece

    def __post_init__(self) -> None:
        self._calls = itertools.count()

    def __call__(self, exchange: Exchange) -> None:
        body = exchange.body
        for name, value in self.refuses.items():
            if name in body and value in (None, body[name]):
                exchange.refuse(400, {"error": {"message": f"Unrecognized request argument supplied: {name}"}})
                return
        texts = [self._text(body, index) for index in range(body.get("n", 1) if "n" in self.heeds else 1)]
        exchange.begin()
        for index in range(len(texts)):
            exchange.text("", index)
        pieces = [text.split(" ")[: body[self.limit]] for text in texts]
        for at in range(max(map(len, pieces))):
            time.sleep(self.step_s)
            for index, words in enumerate(pieces):
                if at < len(words):
                    self._piece(exchange, words[at] if at == 0 else f" {words[at]}", index)
        for index, text in enumerate(texts):
            exchange.text("", index, "length" if len(text.split(" ")) > body[self.limit] else self.finish)
        if "usage" in self.heeds and body.get("stream_options"):
            prompt = len((exchange.prompt + (body.get("suffix", "") if "suffix" in self.heeds else "")).split())
            exchange.send(
                {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": sum(map(len, pieces))}}
            )
        exchange.done()

    def _piece(self, exchange: Exchange, text: str, index: int) -> None:
        more: dict[str, Any] = {}
        if "logprobs" in self.heeds and exchange.body.get("logprobs"):
            chat = {"content": [{"token": text, "logprob": -0.5}]}
            more = {"logprobs": chat if "messages" in exchange.body else {"token_logprobs": [-0.5]}}
        exchange.text(text, index, self.every_finish, **more)

    def _text(self, body: dict[str, Any], index: int) -> str:
        prompt = body.get("prompt") or body["messages"][-1]["content"]
        seed = body.get("seed", 0) + (0 if self.twins else index) if "seed" in self.heeds else next(self._calls)
        if "random words" not in prompt and "yes yes" not in prompt:
            return self.texts[(seed - 1) % len(self.texts)]
        penalised = any(body.get(p, 0) not in (0, 1) for p in self.heeds if p.endswith("penalty"))
        cold = body.get("temperature", 1) == 0 or "temperature" not in self.heeds
        one = any(name in self.heeds and body.get(name) == 1 for name in ("top_k", "min_p"))
        if cold or one:
            return "no more of that" if penalised else "yes yes yes yes"
        return " ".join(random.Random(seed).choices(WORDS, k=12))


class FakeServer:
    """``answer`` may be changed at any time; ``asked`` holds every POST in the order of arrival."""

    def __init__(self, answer: Answer | None = None, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"):
        self.answer: Answer = answer or Polite()
        self.models: Any = {"object": "list", "data": MODELS}
        self.lists = True  # there is a list of models
        self.base = "/v1"
        self.asked: list[Exchange] = []
        self.seen: list[tuple[str, dict[str, str]]] = []  # path and headers of everything
        self.status = 0  # of every list, in place of what is right
        kind = type("Http", (ThreadingHTTPServer,), {"address_family": socket.AF_INET6}) if ":" in host else None
        self._http = (kind or ThreadingHTTPServer)((host, 0), self._handler())
        self._http.daemon_threads = True
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        name = f"[{host}]" if ":" in host else host
        self.address = f"{'https' if tls else 'http'}://{name}:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> "FakeServer":
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def asked_for(self, prompt: str) -> list[Exchange]:
        """The requests with this prompt, which leaves those of the probe out."""
        return [exchange for exchange in self.asked if exchange.prompt == prompt]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.seen.append((self.path, dict(self.headers)))
                data = (server.models if isinstance(server.models, str) else json.dumps(server.models)).encode()
                there = server.lists and urlsplit(self.path).path == f"{server.base}/models"
                self.send_response(server.status or (200 if there else 404))
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_POST(self) -> None:
                server.seen.append((self.path, dict(self.headers)))
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                exchange = Exchange(self, self.path, dict(self.headers), body)
                server.asked.append(exchange)
                try:
                    if urlsplit(self.path).path.startswith(f"{server.base}/"):
                        server.answer(exchange)
                    else:
                        exchange.refuse(404, {"error": {"message": f"no such path {self.path}"}})
                except OSError:  # the client left
                    exchange.gone = True
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        return Handler
