"""What is got wrong on the way to an address."""

from tests.seeded_bugs.bug import Bug

BUGS = (
    Bug(
        "no-proxy-suffix",
        "no_proxy for one name holds for every name that ends like it",
        "engine/network/proxies.py",
        'host.endswith(f".{name}")',
        "host.endswith(name)",
        ("tests/engine/network/test_proxies.py",),
    ),
    Bug(
        "no-proxy-port",
        "no_proxy for one port holds for all",
        "engine/network/proxies.py",
        "if match is None or (match[2] and int(match[2]) != port):",
        "if match is None:",
        ("tests/engine/network/test_proxies.py",),
    ),
    Bug(
        "proxy-off",
        "a variable that is set to nothing lets the next one count",
        "engine/network/proxies.py",
        "                    return name, value.strip()\n                break",
        "                    return name, value.strip()",
        ("tests/engine/network/test_proxies.py",),
    ),
    Bug(
        "proxy-password-at",
        "a password with an @ is shown",
        "engine/network/proxies.py",
        'netloc.rpartition("@")[2]',
        'netloc.partition("@")[2]',
        ("tests/engine/network/test_proxies.py",),
    ),
    Bug(
        "mapped-loopback",
        "this machine's address in its long form goes through a proxy",
        "engine/network/proxies.py",
        'getattr(number, "ipv4_mapped", None) or number',
        "number",
        ("tests/engine/network/test_proxies.py",),
    ),
    Bug(
        "one-way",
        "the first address's proxy is that of all",
        "engine/network/transport.py",
        "self._open[key].handle_request(request)",
        "next(iter(self._open.values())).handle_request(request)",
        ("tests/engine/network/",),
    ),
    Bug(
        "certificate-deep",
        "a certificate that is not trusted is not told of below another error",
        "engine/network/transport.py",
        "reason = reason.__cause__ or reason.__context__",
        "reason = reason.__cause__",
        ("tests/engine/network/",),
        taught=True,
    ),
    Bug(
        "ca-file-alone",
        "a named file counts alone where the variable names nothing",
        "engine/network/certificates.py",
        "if not ca_file:\n            raise",
        "raise",
        ("tests/engine/network/test_certificates.py",),
    ),
    Bug(
        "other-programs",
        "a variable of another program is blamed though it names nothing",
        "engine/network/certificates.py",
        'if Path(os.environ.get(name) or "/").is_file()',
        "if os.environ.get(name)",
        ("tests/engine/network/test_certificates.py",),
    ),
)
