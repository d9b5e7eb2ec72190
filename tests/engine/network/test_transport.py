"""Requests on their way: an address suffers only from what concerns it, and what was in the way has a name."""

import http.server
import socket
import ssl
import threading
from collections.abc import Iterator

import httpx2
import pytest

from engine.network.certificates import BadCertificates
from engine.network.proxies import BadProxy
from engine.network.transport import Transport, obstacle

FAR = "http://gpu.example:8000/v1"


class Server(http.server.ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str]] = []  # path, and what it says of a proxy's password


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Proxy-Authorization", "")))
        self.send_response(302 if self.path == "/away" else 200)
        if self.path == "/away":
            self.send_header("Location", FAR)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(transport=Transport(), follow_redirects=True, timeout=5) as client:
        yield client


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def here(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def test_this_machine_is_asked_whatever_the_environment_holds(
    server: Server, client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks4://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "127.0.0.1:9")
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/cacert.pem")
    assert client.get(f"{here(server)}/x").status_code == 200
    assert server.asked == [("/x", "")]


def test_a_redirect_to_elsewhere_takes_the_way_to_there(
    server: Server, client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://me:p%40ss@127.0.0.1:{server.server_port}")
    assert client.get(f"{here(server)}/away").status_code == 200
    assert [path for path, _ in server.asked] == ["/away", FAR]
    assert server.asked[0][1] == ""
    assert server.asked[1][1].startswith("Basic ")


def test_what_concerns_the_address_is_told(client: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/cacert.pem")
    with pytest.raises(BadCertificates, match="SSL_CERT_FILE"):
        client.get("https://gpu.example")
    monkeypatch.setenv("all_proxy", "socks4://127.0.0.1:9")
    with pytest.raises(BadProxy, match="all_proxy"):
        client.get(FAR)


def test_a_certificate_below_another_error_is_told() -> None:
    untrusted = ssl.SSLCertVerificationError(1, "certificate verify failed")
    untrusted.verify_message = "self-signed certificate"
    error = httpx2.ConnectError("no way")
    try:
        try:
            raise untrusted
        except ssl.SSLError:
            raise error  # noqa: B904 - as libraries do it
    except httpx2.ConnectError as raised:
        words = obstacle(raised, "https://example.org")
    assert words.startswith("its certificate is not trusted (self-signed certificate")


def test_a_proxy_that_does_not_answer_has_a_name(client: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{port}")
    with pytest.raises(httpx2.ConnectError) as raised:
        client.get(FAR)
    assert obstacle(raised.value, FAR) == f"the proxy 127.0.0.1:{port} (from HTTP_PROXY) does not answer"
    assert obstacle(raised.value, "http://127.0.0.1:1") == ""


def test_a_proxy_of_ones_own_goes_before_the_environments(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with httpx2.Client(transport=Transport(f"127.0.0.1:{server.server_port}")) as client:
        assert client.get(FAR).status_code == 200
    assert server.asked == [(FAR, "")]


def test_a_proxy_of_ones_own_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = Transport("http://", origin="pip's configuration")
    with httpx2.Client(transport=transport) as client, pytest.raises(BadProxy, match="pip's configuration holds no"):
        client.get(FAR)
