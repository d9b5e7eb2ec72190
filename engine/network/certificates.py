"""Which certificates count for an encrypted connection: the system's, or those that the environment names."""

import os
import ssl
from pathlib import Path

import httpx2

from engine.contract import BasslineError

FILE, FOLDER = "SSL_CERT_FILE", "SSL_CERT_DIR"
_OTHERS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")  # of other programs


class BadCertificates(BasslineError):
    """Certificates are named that cannot be read."""


def trust(ca_file: str = "") -> ssl.SSLContext:
    """What an encrypted connection is checked by. ``ca_file``: a PEM file that counts beside the usual certificates.

    Where ``ca_file`` is given, a variable that names nothing does no harm: the other end is known by the file.
    Raises BadCertificates.
    """
    try:
        context = _usual()
    except BadCertificates:
        if not ca_file:
            raise
        context = httpx2.create_ssl_context(trust_env=False)
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise BadCertificates(
                f"{ca_file} is no file of certificates in PEM form ({error.strerror or 'no certificate in it'})."
            ) from None
    return context


def hint() -> str:
    """What of the environment may be why a certificate is not trusted: half a sentence, or nothing."""
    if named := next((name for name in (FILE, FOLDER) if os.environ.get(name)), ""):
        return f"{named} says which certificates count here"
    if named := next((name for name in _OTHERS if Path(os.environ.get(name) or "/").is_file()), ""):
        return f"{named} is for other programs, and {FILE} is the variable that counts here"
    return ""


def _usual() -> ssl.SSLContext:
    file, folders = os.environ.get(FILE), os.environ.get(FOLDER)
    if not file and folders and not any(_has_files(folder) for folder in folders.split(os.pathsep) if folder):
        raise BadCertificates(f"{FOLDER} names no folder of certificates; unset it, or name one that is there.")
    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # ssl.SSLError is one
        if not file:
            raise
        why = "which holds no certificate in PEM form" if isinstance(error, ssl.SSLError) else "which cannot be read"
        if isinstance(error, FileNotFoundError):
            why = "which is not there"
        raise BadCertificates(f"{FILE} names {file}, {why}; unset it, or name a file of certificates.") from None


def _has_files(folder: str) -> bool:
    try:
        return bool(os.listdir(folder))
    except OSError:
        return False
