"""Which certificates count: a variable that names nothing is told by its name, and only where certificates are used."""

import ssl
from pathlib import Path

import pytest
import trustme

from engine.network.certificates import BadCertificates, hint, trust

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("ca") / "ca.pem"
    trustme.CA().cert_pem.write_to_path(file)
    return file


def test_a_file_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/cacert.pem")
    with pytest.raises(BadCertificates) as raised:
        trust()
    assert str(raised.value) == (
        "SSL_CERT_FILE names /nonexistent/cacert.pem, which is not there; unset it, or name a file of certificates."
    )


@pytest.mark.parametrize("content", ["", "no certificate"])
def test_a_file_without_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str) -> None:
    (tmp_path / "x.pem").write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "x.pem"))
    with pytest.raises(BadCertificates, match=r"SSL_CERT_FILE names .*, which holds no certificate in PEM form"):
        trust()


def test_a_folder_in_place_of_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path))
    with pytest.raises(BadCertificates, match="SSL_CERT_FILE names"):
        trust()


def test_a_folder_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", "/nonexistent/certs")
    with pytest.raises(BadCertificates, match="SSL_CERT_DIR names no folder of certificates"):
        trust()


def test_a_named_file_counts_though_the_variable_names_nothing(
    monkeypatch: pytest.MonkeyPatch, authority: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/cacert.pem")
    names = [entry["subject"] for entry in trust(str(authority)).get_ca_certs()]
    assert any("trustme" in str(name) for name in names)


def test_the_variables_file_is_what_counts(monkeypatch: pytest.MonkeyPatch, authority: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    assert len(trust().get_ca_certs()) == 1
    assert trust().verify_mode == ssl.CERT_REQUIRED


def test_a_named_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadCertificates, match=r"gone\.pem is no file of certificates in PEM form \(No such file"):
        trust(str(tmp_path / "gone.pem"))


def test_variables_of_other_programs_do_no_harm_and_give_a_hint(
    monkeypatch: pytest.MonkeyPatch, authority: Path
) -> None:
    assert hint() == ""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent/cacert.pem")
    assert trust().verify_mode == ssl.CERT_REQUIRED
    assert hint() == ""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority))
    assert hint() == "REQUESTS_CA_BUNDLE is for other programs, and SSL_CERT_FILE is the variable that counts here"
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    assert hint() == "SSL_CERT_FILE says which certificates count here"
