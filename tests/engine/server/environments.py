"""Real servers: each in an environment of its own, kept between runs, and a process of its own."""

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock
import httpx2

INSTALL_S, START_S = 900, 120


class NotToBeHad(Exception):
    """The environment cannot be made here; the text says why."""


def environment(
    cache: Path, name: str, requirements: Sequence[str], on_top_of_ours: bool = False, build: bool = True
) -> Path:
    """The Python of an environment that holds ``requirements``, made at the first call. Raises NotToBeHad.

    ``on_top_of_ours``: it sees the packages of the running Python, so that only what is missing is installed.
    ``build`` False: it must be there already.
    """
    key = hashlib.sha256(json.dumps([sys.version, sys.prefix, *requirements]).encode()).hexdigest()[:12]
    folder = cache / "servers" / f"{name}-{key}"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{folder}.lock", timeout=INSTALL_S):
        if (folder / ".complete").exists():
            return python
        if not build:
            raise NotToBeHad(f"{name} is not built here; `make test-servers` builds it once, in some minutes")
        _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)])
        if on_top_of_ours:
            places = {key: str(folder) for key in ("base", "platbase")}
            site = Path(sysconfig.get_path("purelib", scheme="venv", vars=places))
            (site / "ours.pth").write_text(sysconfig.get_path("purelib"))
        _run([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *requirements])
        (folder / ".complete").touch()
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotToBeHad(f"{command[2]}: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise NotToBeHad(f"{' '.join(command[1:4])} failed: {last}")


@contextlib.contextmanager
def serving(command: Sequence[str], log: Path, **variables: str) -> Iterator[str]:
    """A server's address while its process runs; ``{port}`` in ``command`` is a free one."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/v1"
    words = [word.format(port=port) for word in command]
    with open(log, "wb") as output:
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=os.environ | variables)
    try:
        _wait(address, process, log)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, f"the server left: {log.read_text(errors='replace')[-2000:]}"
        with contextlib.suppress(httpx2.HTTPError):
            if httpx2.get(f"{address}/models", trust_env=False, timeout=5).status_code == 200:
                return
        time.sleep(0.2)
    raise AssertionError(f"the server did not answer: {log.read_text(errors='replace')[-2000:]}")
