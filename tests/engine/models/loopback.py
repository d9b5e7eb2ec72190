"""A file server on this machine that misbehaves on demand."""

import contextlib
import hashlib
import http.server
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Faults:
    """``drop_after`` / ``stall_after``: bytes of a body after which the connection is cut, or goes silent, for so many
    requests as ``times`` says. ``wait_s``: between blocks."""

    drop_after: int | None = None
    stall_after: int | None = None
    times: int = 1 << 30
    ignore_ranges: bool = False
    no_tags: bool = False
    wait_s: float = 0.0


@dataclass
class Page:
    """What is served under one path."""

    body: bytes
    type: str = "application/octet-stream"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Loopback:
    """``pages`` by path; ``asked``: path and first byte of every GET, in order."""

    BLOCK = 4096

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.faults = Faults()
        self.asked: list[tuple[str, int]] = []
        self._ending = threading.Event()

    def put(self, path: str, body: bytes, type: str = "application/octet-stream", **more: object) -> None:
        self.pages[path] = Page(body, type, **more)

    def starts(self, path: str) -> list[int]:
        """The first bytes that were asked for of one file."""
        return [start for asked, start in self.asked if asked == path]

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                outer._answer(self, body=False)

            def do_GET(self) -> None:
                outer._answer(self, body=True)

            def log_message(self, *_: object) -> None:
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:  # clients that leave are the point here
                pass

        with Quiet(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            self.url = f"http://127.0.0.1:{server.server_port}"
            try:
                yield
            finally:
                self._ending.set()
                server.shutdown()
                thread.join()

    def _answer(self, request: http.server.BaseHTTPRequestHandler, body: bool) -> None:
        path = request.path.partition("?")[0]
        page = self.pages.get(path)
        if page is None:
            page = Page(b"", status=404)
        tag = f'"{hashlib.sha256(page.body).hexdigest()[:16]}"'
        start = self._start(request, tag)
        if body:
            self.asked.append((path, start))
        if start and start >= len(page.body):
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{len(page.body)}")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        request.send_response(206 if start else page.status)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(page.body) - 1}/{len(page.body)}")
        if not self.faults.no_tags:
            request.send_header("ETag", tag)
        request.send_header("Content-Type", page.type)
        request.send_header("Content-Length", str(len(page.body) - start))
        for name, value in page.headers.items():
            request.send_header(name, value)
        request.end_headers()
        if body:
            self._send(request, page.body[start:])

    def _start(self, request: http.server.BaseHTTPRequestHandler, tag: str) -> int:
        wanted = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        changed = request.headers.get("If-Range", tag) != tag
        return int(wanted[1]) if wanted and not changed and not self.faults.ignore_ranges else 0

    def _send(self, request: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        faults = self.faults
        ends = [place for place in (faults.drop_after, faults.stall_after) if place is not None]
        if len(body) > self.BLOCK and ends and faults.times > 0:
            faults.times -= 1
            request.wfile.write(body[: min(ends)])
            request.wfile.flush()
            if faults.stall_after is not None:
                self._ending.wait(30)
            request.close_connection = True
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        for begin in range(0, len(body), self.BLOCK):
            request.wfile.write(body[begin : begin + self.BLOCK])
            time.sleep(faults.wait_s)
