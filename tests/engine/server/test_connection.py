"""TLS, a certificate of one's own, a proxy, and where the token goes."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from engine.contract import LoadFailed, Ready
from engine.session.servers import Server, Token, add
from tests.engine.server.fake import Exchange, FakeServer, Polite
from tests.engine.server.playing import Playing, request

SECRET = "sk-very-secret-1234567890"


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def encrypted(authority: trustme.CA) -> Iterator[FakeServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with FakeServer(tls=context) as server:
        yield server


def test_a_certificate_of_ones_own_is_trusted_when_it_is_named(
    encrypted: FakeServer, authority: trustme.CA, play: Playing, tmp_path: Path
) -> None:
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(file)
    add(Server("lab", encrypted.address, ca_file=str(file)))
    assert isinstance(play.load("lab"), Ready)
    assert play.play(request(2)).outcome == "finished"
    assert play.texts == {1: "one", 2: "two"}


def test_any_other_certificate_is_refused(encrypted: FakeServer, play: Playing) -> None:
    failed = play.load(encrypted.address)
    assert isinstance(failed, LoadFailed)
    assert "is not trusted" in failed.reason
    assert "--ca-file" in failed.reason
    assert encrypted.seen == []


def test_a_certificate_for_another_host_is_refused(authority: trustme.CA, play: Playing, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("gpu.example").configure_cert(context)
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(file)
    with FakeServer(tls=context) as server:
        add(Server("lab", server.address, ca_file=str(file)))
        failed = play.load("lab")
    assert isinstance(failed, LoadFailed)
    assert "is not trusted" in failed.reason


def test_a_certificate_file_that_is_none(encrypted: FakeServer, play: Playing, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    add(Server("lab", encrypted.address, ca_file=str(file)))
    failed = play.load("lab")
    assert isinstance(failed, LoadFailed)
    assert "is no file of certificates in PEM form" in failed.reason


def test_https_where_only_http_is_spoken(server: FakeServer, play: Playing) -> None:
    failed = play.load(server.address.replace("http:", "https:"))
    assert isinstance(failed, LoadFailed)
    assert "does not speak TLS here" in failed.reason


def test_a_proxy_is_asked_in_place_of_the_server(server: FakeServer, play: Playing) -> None:
    add(Server("lab", "http://gpu.example:8000", proxy=server.address.removesuffix("/v1")))
    assert isinstance(play.load("lab"), Ready)
    assert server.seen[0][0] == "http://gpu.example:8000/v1/models"
    assert play.play(request(2)).outcome == "finished"


def test_the_environments_proxy_counts_where_none_is_named(
    server: FakeServer, play: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.address.removesuffix("/v1"))
    assert isinstance(play.load("http://gpu.example:8000"), Ready)
    assert server.seen[0][0] == "http://gpu.example:8000/v1/models"


def test_a_proxy_that_does_not_let_through(server: FakeServer, play: Playing) -> None:
    add(Server("lab", "https://gpu.example", proxy=server.address.removesuffix("/v1")))
    failed = play.load("lab")
    assert isinstance(failed, LoadFailed)
    port = server.address.rpartition(":")[2].removesuffix("/v1")
    assert failed.reason == (
        f"The proxy 127.0.0.1:{port} (from the server's settings) did not let us through to gpu.example; "
        "look at its address and its rules."
    )


def test_this_machine_is_never_asked_through_the_environments_proxy(
    server: FakeServer, play: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ALL_PROXY", "http_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "socks://127.0.0.1:9/")
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/cacert.pem")
    assert isinstance(play.load(server.address), Ready)
    assert play.play(request(2)).outcome == "finished"


@pytest.mark.parametrize(
    ("name", "value", "address", "words"),
    [
        ("ALL_PROXY", "socks4://127.0.0.1:9/", "http://gpu.example", "ALL_PROXY names a socks4:// proxy"),
        ("https_proxy", "http://", "https://gpu.example", "https_proxy holds no address of a proxy"),
        ("SSL_CERT_FILE", "/nonexistent/c.pem", "https://gpu.example", "SSL_CERT_FILE names /nonexistent/c.pem"),
    ],
)
def test_what_of_the_environment_is_in_the_way_is_told(
    play: Playing, monkeypatch: pytest.MonkeyPatch, name: str, value: str, address: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    failed = play.load(address)
    assert isinstance(failed, LoadFailed)
    assert words in failed.reason
    assert failed.details == ""


def test_a_proxy_that_is_not_there(play: Playing, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{port}")
    assert play.load("http://gpu.example:8000") == LoadFailed(
        f"The proxy 127.0.0.1:{port} (from HTTP_PROXY) does not answer; start it, look at its address, "
        "or put gpu.example into NO_PROXY."
    )


def test_a_proxy_that_wants_a_password(server: FakeServer, play: Playing, monkeypatch: pytest.MonkeyPatch) -> None:
    server.status = 407
    monkeypatch.setenv("HTTP_PROXY", server.address.removesuffix("/v1"))
    failed = play.load("http://gpu.example:8000")
    assert isinstance(failed, LoadFailed)
    assert failed.reason.endswith(
        "wants a name and a password (407); write them into the variable, as in http://name:password@host:port."
    )


def test_a_certificate_that_the_environment_leaves_out_is_told_by_the_variable(
    encrypted: FakeServer, play: Playing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    failed = play.load(encrypted.address)
    assert isinstance(failed, LoadFailed)
    assert failed.reason.endswith("with --ca-file (SSL_CERT_FILE says which certificates count here).")


def test_a_named_certificate_counts_though_the_environment_names_none(
    encrypted: FakeServer, authority: trustme.CA, play: Playing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(file)
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/cacert.pem")
    add(Server("lab", encrypted.address, ca_file=str(file)))
    assert isinstance(play.load("lab"), Ready)


def test_a_move_within_the_server_is_followed(server: FakeServer, play: Playing) -> None:
    polite = Polite()

    def answer(exchange: Exchange) -> None:
        if exchange.path.endswith("/"):
            polite(exchange)
        else:
            exchange.refuse(307, "", Location=f"{exchange.path}/")

    server.answer = answer
    assert isinstance(play.load(server.address), Ready)
    assert play.play(request(2)).outcome == "finished"
    assert play.texts == {1: "one", 2: "two"}


def test_a_circle_of_moves_ends(server: FakeServer, play: Playing) -> None:
    server.answer = lambda exchange: exchange.refuse(307, "", Location=exchange.path)
    failed = play.load(server.address)
    assert isinstance(failed, LoadFailed)
    assert failed.reason.endswith(" sends every request on in a circle; look at the address.")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("form", ["http://[::1]:{port}", "[::1]:{port}", "http://[::1]:{port}/v1/"])
def test_an_address_of_the_newer_kind(play: Playing, form: str) -> None:
    with FakeServer(host="::1") as server:
        port = server.address.rpartition(":")[2].removesuffix("/v1")
        assert isinstance(play.load(form.format(port=port), offline=True), Ready)
        assert play.play(request()).outcome == "finished"


@pytest.mark.usefixtures("memory_keyring")
def test_the_token_goes_into_its_header_and_to_no_other_server(server: FakeServer, play: Playing) -> None:
    add(Server("lab", server.address), Token(SECRET))
    play.load("lab")
    play.play(request())
    assert {headers.get("Authorization") for _, headers in server.seen} == {f"Bearer {SECRET}"}
    with FakeServer() as other:
        play.load(other.address)
        assert {headers.get("Authorization") for _, headers in other.seen} == {None}


@pytest.mark.usefixtures("memory_keyring")
def test_a_token_that_travels_in_the_open_is_told(server: FakeServer, play: Playing) -> None:
    proxy = server.address.removesuffix("/v1")
    add(Server("lab", "http://gpu.example:8000", proxy=proxy), Token(SECRET))
    ready = play.load("lab")
    assert isinstance(ready, Ready)
    assert ready.note.startswith("The token travels unencrypted; use https://.")


@pytest.mark.usefixtures("memory_keyring")
def test_a_redirect_is_not_followed_with_the_token(server: FakeServer, play: Playing) -> None:
    with FakeServer() as elsewhere:
        server.answer = lambda exchange: exchange.refuse(307, "", Location=f"{elsewhere.address}/chat/completions")
        add(Server("lab", server.address), Token(SECRET))
        failed = play.load("lab")
        assert elsewhere.seen == []
    assert isinstance(failed, LoadFailed)
    place = elsewhere.address.removesuffix("/v1")
    assert failed.reason.endswith(f" says that it has moved (307); write the address where it is now ({place}).")
