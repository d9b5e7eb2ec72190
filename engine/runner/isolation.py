"""Isolation: which of the five layers work on this computer, found out by running a box that tries to break them."""

import os
from dataclasses import dataclass

from engine.runner.layers import DISK, MEMORY, MIB, PROCESSES, Layers

# A candidate that is right, and that says what it can reach. Its tests are one per layer.
SAMPLE = """
import os, resource, socket

def answer():
    return 42

def user():
    return os.getuid()

def sees(path):
    try:
        return bool(open(path).read(1))
    except OSError:
        return False

def writes(path):
    try:
        open(path, "w").close()
        os.unlink(path)
    except OSError:
        return False
    return True

def processes():
    try:
        return sum(name.isdigit() for name in os.listdir("/proc"))
    except OSError:
        return 0

def connects():
    try:
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect_ex(("192.0.2.1", 9)) == 0
    except OSError:
        return False

def opens(*families):
    opened = []
    for family, kind in families:
        try:
            socket.socket(family, kind).close()
            opened.append(family)
        except OSError:
            pass
    return opened

def limit(name):
    return resource.getrlimit(getattr(resource, name))[0]

def signals(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False
    return True
"""


def sample_tests(path: str) -> str:
    """Tests for SAMPLE. ``path``: a file of this computer that a box must not see."""
    return f"""
from solution import answer, connects, limit, opens, processes, sees, signals, user, writes

def test_verdict():
    assert answer() == 42

def test_user():
    assert user() != 0, "it runs as root"

def test_files():
    assert not sees({path!r}), "files of this computer are visible"
    assert not writes("/bassline-probe"), "its root is writable"

def test_network():
    assert not connects(), "there is a network"

def test_families():
    assert opens((16, 3), (40, 1), (17, 3)) == [], "unusual sockets open"

def test_processes():
    assert processes() < 8, "processes of this computer are visible"
    assert not signals({os.getpid()}), "processes of this computer can be reached"

def test_number():
    assert 0 < limit("RLIMIT_NPROC") <= {PROCESSES}, "the number of processes is not limited"

def test_memory():
    assert 0 < limit("RLIMIT_AS") <= {MEMORY}, "memory is not limited"
"""


def names_of(tests: str) -> tuple[str, ...]:
    return tuple(line[4:].partition("(")[0] for line in tests.splitlines() if line.startswith("def "))


# What a box must keep to be used at all, by the kind of its layers.
_FENCED = frozenset(("test_verdict", "test_files", "test_network", "test_processes", "test_memory"))
MUST_HOLD = {"bubblewrap": _FENCED | {"test_user"}, "landlock": _FENCED, "open": frozenset(("test_verdict",))}

SEPARATE_BOXES = "Tests and candidate run in two boxes and only data passes between them."
SAME_PROCESS = "Checked in the same process: a candidate written to cheat could fake this."
BY_EXIT_CODE = "By the exit code of your command: a candidate written to cheat could fake this."
_EACH = f"Each process at most {MEMORY // MIB} MiB, no limit on their sum."


@dataclass(frozen=True)
class IsolationCheck:
    """What was found to hold: the layers, whether the kernel keeps groups, and the sample's tests that passed."""

    layers: Layers
    grouped: bool
    passed: frozenset[str]
    note: str = ""  # why it is no more than this

    @property
    def sealed(self) -> bool:
        return self.layers.sealed and self.enough

    @property
    def enough(self) -> bool:
        return self.passed >= MUST_HOLD[self.layers.kind]

    def isolation(self, mode: str) -> dict[str, str]:
        """Files, network, memory, processes and verdict, a sentence each. ``mode`` as in a Report."""
        sentences = {
            "open": self._open,
            "landlock": self._fenced,
            "bubblewrap": self._sealed,
        }[self.layers.kind]()
        return sentences | {"verdict": {"split": SEPARATE_BOXES, "command": BY_EXIT_CODE}.get(mode, SAME_PROCESS)}

    def weak(self, mode: str) -> tuple[str, ...]:
        """The layers that hold less than they should."""
        weak = set()
        if not self.sealed:
            weak |= {"files", "network", "processes"}
        if self.layers.kind == "landlock":
            weak -= {"network"} if "test_network" in self.passed else set()
        if "test_families" not in self.passed:
            weak.add("network")
        if not self.grouped:
            weak.add("memory")
        if mode != "split":
            weak.add("verdict")
        return tuple(name for name in ("files", "network", "memory", "processes", "verdict") if name in weak)

    def _sealed(self) -> dict[str, str]:
        more = " and your environment" if self.layers.environment else ""
        unusual = "" if "test_families" in self.passed else " Unusual sockets (vsock, netlink) are not filtered here."
        return {
            "files": f"Only the Python installation{more} is visible, read-only; /tmp is its own, {DISK // MIB} MiB.",
            "network": "None, not even this computer's own." + unusual,
            "memory": f"At most {MEMORY // MIB} MiB in all." if self.grouped else _EACH,
            "processes": f"At most {PROCESSES} at once, in a process space of their own; none outlives the run.",
        }

    def _fenced(self) -> dict[str, str]:
        return {
            "files": "Only the Python installation is readable and only its own folder writable, with your rights.",
            "network": "None: sockets are refused." if "test_network" in self.passed else "Open.",
            "memory": f"At most {MEMORY // MIB} MiB in all." if self.grouped else _EACH,
            "processes": "It cannot signal yours; their number is not limited, and one that hides can outlive the run.",
        }

    def _open(self) -> dict[str, str]:
        return {
            "files": "Open: the candidate can read, change and delete whatever you can.",
            "network": "Open.",
            "memory": f"At most {MEMORY // MIB} MiB in all." if self.grouped else _EACH,
            "processes": "Open: it can end your processes, and one that hides can outlive the run.",
        }


def notice_sentence(held: IsolationCheck) -> str:
    """What a user should read before a candidate is run for the first time."""
    start = "The tests run code that a model wrote on this computer."
    if not held.sealed:
        return f"{start} {consent_sentence(held)}"
    kept = "It gets no network, none of your files, and limited memory, time and processes."
    loose = [name for name in held.weak("split") if name != "verdict"]
    but = f" Not everything holds here; see {', '.join(loose)} in the test log." if loose else ""
    return f"{start} {kept}{but}"


def consent_sentence(held: IsolationCheck) -> str:
    rights = "root's rights" if os.geteuid() == 0 else "your rights"
    if held.layers.kind == "landlock":
        return (
            f"There is no full sandbox here ({held.note}). Candidates would be kept from your files, the network and "
            f"your processes by the kernel's Landlock alone, but run with {rights}, could start any number of "
            "processes, and could leave one behind. Agree to that for this run, or make bubblewrap work first."
        )
    return (
        f"There is no sandbox here ({held.note}): candidates would run with {rights} and could read, change or delete "
        "your files and use the network. Agree to that for this run, or make bubblewrap work first."
    )


def same_process_sentence(reason: str) -> str:
    return (
        f"These tests must run in the same process as the candidate, because {reason}. A candidate written to cheat "
        "could then fake a pass; agree to that for this test file, or change the tests."
    )
