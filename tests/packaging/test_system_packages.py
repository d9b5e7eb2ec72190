"""System packages are installed when somebody said so, and never otherwise. Every program of the system is a fake."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from engine.child_process import ROOT

SCRIPT = ROOT / ".ci" / "system-packages"
FAKES = {
    "dpkg-query": '[ "${@: -1}" = bubblewrap ] || echo "install ok installed"',
    "apt-get": 'echo "$@" >> "$CALLS"',
    "python3": "exit 0",
    "id": 'echo "$USER_ID"',
}


class Machine:
    """One that lacks bubblewrap."""

    def __init__(self, folder: Path):
        self.calls = folder / "calls"
        self.programs = folder / "programs"
        self.programs.mkdir()
        for name, body in FAKES.items():
            self.program(name, body)

    def program(self, name: str, body: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/usr/bin/env bash\n{body}\n")
        path.chmod(0o755)

    def run(self, user: int = 0, answer: str | None = None, **variables: str) -> tuple[int, str]:
        """Exit code and output; ``answer``: typed at a terminal, None for no terminal."""
        surroundings = {"PATH": f"{self.programs}:{os.environ['PATH']}", "CALLS": str(self.calls), "USER_ID": str(user)}
        command = ["bash", str(SCRIPT)]
        if answer is None:
            done = subprocess.run(
                command, env=surroundings | variables, stdin=subprocess.DEVNULL, capture_output=True, text=True
            )
            return done.returncode, done.stdout
        far, near = pty.openpty()
        process = subprocess.Popen(command, env=surroundings | variables, stdin=near, stdout=near, stderr=near)
        os.close(near)
        os.write(far, f"{answer}\n".encode())
        text = b""
        while True:
            try:
                piece = os.read(far, 1000)
            except OSError:  # the terminal's other end is closed
                break
            text += piece
        os.close(far)
        return process.wait(), text.decode()

    @property
    def installs(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


INSTALLED = ["update -qq", "install -y -qq --no-install-recommends bubblewrap"]


@pytest.mark.parametrize("said", [{"BASSLINE_APT": "1"}, {"CI": "true"}])
def test_a_root_who_said_so_gets_them(machine: Machine, said: dict[str, str]) -> None:
    code, output = machine.run(0, None, **said)
    assert (code, machine.installs) == (0, INSTALLED)
    assert "apt-get install -y bubblewrap\n" in output  # what is going to be installed comes first


@pytest.mark.parametrize("said", [{}, {"CI": "false"}, {"BASSLINE_APT": "0", "CI": "true"}])
def test_a_root_who_did_not_gets_the_line(machine: Machine, said: dict[str, str]) -> None:
    code, output = machine.run(0, None, **said)
    assert (code, machine.installs) == (1, [])
    assert "\n  apt-get install -y bubblewrap\n" in output
    assert "Nothing was installed." in output
    assert "BASSLINE_APT=1" in output


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("yes", 0), ("n", 1), ("", 1), ("perhaps", 1)])
def test_at_a_terminal_root_is_asked(machine: Machine, answer: str, code: int) -> None:
    ended, output = machine.run(answer=answer)
    assert "Install them now? [y/N]" in output
    assert (ended, machine.installs) == (code, [] if code else INSTALLED)


@pytest.mark.parametrize("said", [{}, {"BASSLINE_APT": "1"}, {"CI": "true"}])
def test_an_ordinary_user_gets_the_line_with_sudo(machine: Machine, said: dict[str, str]) -> None:
    code, output = machine.run(user=1000, **said)
    assert (code, machine.installs) == (1, [])
    assert "\n  sudo apt-get install -y bubblewrap\n" in output


def test_where_nothing_is_missing_nothing_is_said(machine: Machine) -> None:
    machine.program("dpkg-query", 'echo "install ok installed"')
    assert machine.run() == (0, "")
