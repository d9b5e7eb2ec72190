"""The HTTP library's requests on their way: each by the proxy and the certificates that concern its own address.

The library's own reading of the environment is left out (``trust_env``): it makes ready for every variable at once,
and one that cannot be used would stop requests that it does not concern.
"""

import ssl
from typing import Any

import httpx2

from engine.network import certificates
from engine.network.proxies import BadProxy, Proxy, proxy_for, usable


class _Routes:
    """``proxy``: the one that ``origin`` names for these requests; empty for what the environment says."""

    def __init__(self, proxy: str, ca_file: str, origin: str):
        self._proxy, self._ca_file, self._origin = proxy, ca_file, origin

    def proxy(self, url: httpx2.URL | str) -> Proxy | None:
        """Raises BadProxy."""
        if self._proxy:
            return usable(self._origin, self._proxy, httpx2.URL(url).host)
        return proxy_for(str(url))

    def options(self, url: httpx2.URL, proxy: Proxy | None) -> dict[str, Any]:
        """Of a transport. Raises BadCertificates."""
        encrypted = url.scheme == "https" or (proxy is not None and proxy.address.startswith("https:"))
        trust = certificates.trust(self._ca_file) if encrypted else _nothing()
        return {"verify": trust, "trust_env": False, "proxy": _library_proxy(proxy, trust)}


class Transport(httpx2.BaseTransport):
    """For ``httpx2.Client(transport=...)``. Requests raise BadProxy and BadCertificates beside the library's errors."""

    def __init__(self, proxy: str = "", ca_file: str = "", origin: str = "the settings"):
        self._ways = _Routes(proxy, ca_file, origin)
        self._open: dict[tuple[bool, Proxy | None], httpx2.HTTPTransport] = {}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        proxy = self._ways.proxy(request.url)
        key = (request.url.scheme == "https", proxy)
        if key not in self._open:
            self._open[key] = httpx2.HTTPTransport(**self._ways.options(request.url, proxy))
        return self._open[key].handle_request(request)

    def close(self) -> None:
        for way in self._open.values():
            way.close()


class AsyncTransport(httpx2.AsyncBaseTransport):
    """For ``httpx2.AsyncClient(transport=...)``; see ``Transport``."""

    def __init__(self, proxy: str = "", ca_file: str = "", limits: httpx2.Limits | None = None):
        self._ways = _Routes(proxy, ca_file, "the server's settings")
        self._limits = limits or httpx2.Limits()
        self._open: dict[tuple[bool, Proxy | None], httpx2.AsyncHTTPTransport] = {}

    def proxy(self, address: str) -> Proxy | None:
        """What a request to ``address`` goes through. Raises BadProxy."""
        return self._ways.proxy(address)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        proxy = self._ways.proxy(request.url)
        key = (request.url.scheme == "https", proxy)
        if key not in self._open:
            options = self._ways.options(request.url, proxy)
            self._open[key] = httpx2.AsyncHTTPTransport(limits=self._limits, **options)
        return await self._open[key].handle_async_request(request)

    async def aclose(self) -> None:
        for way in self._open.values():
            await way.aclose()


def obstacle(error: BaseException, url: str) -> str:
    """Why ``url`` could not be reached, if a proxy or a certificate was in the way: half a sentence, else nothing."""
    reason: BaseException | None = error
    while reason is not None:
        if isinstance(reason, ssl.SSLCertVerificationError):
            hint = certificates.hint()
            return f"its certificate is not trusted ({reason.verify_message}{'; ' if hint else ''}{hint})"
        reason = reason.__cause__ or reason.__context__
    try:
        proxy = proxy_for(url)
    except BadProxy as bad:
        return str(bad).rstrip(".")
    if proxy is None:
        return ""
    if isinstance(error, httpx2.ProxyError):
        return f"{proxy.words} did not let us through"
    return f"{proxy.words} does not answer" if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout) else ""


def _library_proxy(proxy: Proxy | None, trust: ssl.SSLContext) -> httpx2.Proxy | None:
    if proxy is None:
        return None
    try:
        encrypted = proxy.address.startswith("https:")
        return httpx2.Proxy(proxy.address, ssl_context=trust if encrypted else None)
    except (ValueError, httpx2.InvalidURL):
        raise BadProxy(
            f"{proxy.origin} holds no usable address of a proxy; write special characters of its password as %XX."
        ) from None


def _nothing() -> ssl.SSLContext:
    """For connections that are not encrypted: nothing is read, and nothing would be trusted."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
