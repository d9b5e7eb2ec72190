"""Which proxy is on the way to an address: each variable counts where it concerns the address, and nowhere else."""

import importlib.util

import pytest

from engine.network.proxies import BadProxy, is_loopback, proxy_for

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
FAR = "https://gpu.example:8000/v1"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *map(str.upper, VARIABLES), "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def no_socksio(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "socksio" else find(name))


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST", "localhost.", "api.localhost", "127.0.0.1", "127.8.9.10", "127.1"),
        *("::1", "[::1]", "::ffff:127.0.0.1", "0.0.0.0", "::"),
    ],
)
def test_this_machine_has_many_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "gpu.example", "localhost.example", "128.0.0.1", "10.127.0.1", "::2", "127.example"]
)
def test_other_machines(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "value", ["http://127.0.0.1:9", "socks://127.0.0.1:9", "socks5h://x:1", "nonsense://", "http://"]
)
@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:80", "https://localhost", "http://[::1]:8000/v1", "http://127.3.2.1"]
)
def test_this_machine_is_never_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch, value: str, address: str) -> None:
    for name in ("ALL_PROXY", "http_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, value)
    assert proxy_for(address) is None


def test_without_variables_the_way_is_direct() -> None:
    assert proxy_for(FAR) is None


def test_small_letters_count_for_more_and_nothing_switches_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://large:1")
    proxy = proxy_for(FAR)
    assert proxy is not None
    assert (proxy.address, proxy.origin, proxy.host) == ("http://large:1", "HTTPS_PROXY", "large:1")
    monkeypatch.setenv("https_proxy", "http://small:1")
    assert str(proxy_for(FAR)).count("small:1")
    monkeypatch.setenv("https_proxy", "")
    assert proxy_for(FAR) is None


def test_the_scheme_of_the_address_chooses_and_all_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://plain:1")
    monkeypatch.setenv("ALL_PROXY", "http://all:1")
    assert "plain:1" in str(proxy_for("http://gpu.example"))
    assert "all:1" in str(proxy_for(FAR))


def test_a_bad_variable_does_no_harm_where_a_better_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks4://old:1")
    monkeypatch.setenv("https_proxy", "http://good:1")
    assert "good:1" in str(proxy_for(FAR))


def test_an_address_without_a_scheme_is_an_http_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", " proxy.example:3128 ")
    proxy = proxy_for(FAR)
    assert proxy is not None
    assert proxy.address == "http://proxy.example:3128"


def test_a_password_is_kept_for_the_proxy_and_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.example:3128")
    proxy = proxy_for(FAR)
    assert proxy is not None
    assert "secret" in proxy.address
    assert "secret" not in proxy.words
    assert proxy.words == "the proxy proxy.example:3128 (from HTTPS_PROXY)"
    assert proxy.way_round("gpu.example:8000") == ", or put gpu.example into NO_PROXY"


@pytest.mark.parametrize(
    "value", ["http://", "http://:3128", "http://proxy:port", "http://[::1", '"http://proxy:1"', "http://a b:1", "://x"]
)
def test_what_is_no_address_is_told_by_the_variables_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(
        BadProxy, match=r"ALL_PROXY holds no address of a proxy; set it to .* gpu.example into NO_PROXY"
    ):
        proxy_for(FAR)


@pytest.mark.parametrize("scheme", ["socks4", "socks4a", "ftp", "quic"])
def test_a_kind_of_proxy_that_is_not_spoken(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("all_proxy", f"{scheme}://me:secret@proxy:1080")
    with pytest.raises(BadProxy, match=f"all_proxy names a {scheme}:// proxy, a kind that") as raised:
        proxy_for(FAR)
    assert "secret" not in str(raised.value)


@pytest.mark.usefixtures("no_socksio")
@pytest.mark.parametrize("scheme", ["socks", "socks5", "socks5h", "SOCKS5"])
def test_a_socks_proxy_wants_its_package(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("ALL_PROXY", f"{scheme}://proxy:1080")
    with pytest.raises(BadProxy, match="ALL_PROXY names a SOCKS proxy, for which the package socksio is missing"):
        proxy_for(FAR)


@pytest.mark.parametrize(("scheme", "meant"), [("socks", "socks5"), ("socks5", "socks5"), ("socks5h", "socks5h")])
def test_a_socks_proxy_with_its_package(monkeypatch: pytest.MonkeyPatch, scheme: str, meant: str) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("ALL_PROXY", f"{scheme}://proxy:1080")
    proxy = proxy_for(FAR)
    assert proxy is not None
    assert proxy.address == f"{meant}://proxy:1080"


@pytest.mark.parametrize(
    ("no_proxy", "address", "exempt"),
    [
        ("*", FAR, True),
        ("gpu.example", FAR, True),
        ("GPU.Example", FAR, True),
        ("example", FAR, True),
        (".example", FAR, True),
        ("*.example", FAR, True),
        ("pu.example", FAR, False),
        ("gpu.example:8000", FAR, True),
        ("gpu.example:9", FAR, False),
        ("https://gpu.example", FAR, True),
        ("a.b, gpu.example", FAR, True),
        ("a.b gpu.example", FAR, True),
        ("a.b;gpu.example;", FAR, True),
        (",,[::1,::::,10.0.0.0/99,%%,", FAR, False),
        (",,[::1,::::,10.0.0.0/99,%%,gpu.example", FAR, True),
        ("10.0.0.0/8", "http://10.2.3.4:1", True),
        ("10.0.0.0/8", "http://11.2.3.4:1", False),
        ("10.2.3.4", "http://10.2.3.4:1", True),
        ("10.2.3.4:1", "http://10.2.3.4:1", True),
        ("3.4", "http://10.2.3.4:1", False),
        ("fd00::/8", "http://[fd00::7]:1", True),
        ("[fd00::7]", "http://[fd00::7]:1", True),
        ("fd00::7", "http://[fd00::8]:1", False),
        ("gpu.example.", FAR, True),
        ("", FAR, False),
    ],
)
def test_what_no_proxy_names_goes_directly(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str, address: str, exempt: bool
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy:1")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert (proxy_for(address) is None) == exempt


def test_a_bad_variable_does_no_harm_to_an_exempt_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks4://proxy:1")
    monkeypatch.setenv("no_proxy", "gpu.example")
    assert proxy_for(FAR) is None


def test_a_header_of_a_cgi_request_is_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://evil:1")
    monkeypatch.setenv("REQUEST_METHOD", "GET")
    assert proxy_for("http://gpu.example") is None
