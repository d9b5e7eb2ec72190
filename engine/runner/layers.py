"""What stands between a candidate and the computer, and the sentences that say so.

Bubblewrap gives the namespaces and the file view; limits are set inside, by the stub; clocks and the output cap are
the service's. Without bubblewrap only limits and clocks are left, and a person has to agree first.
"""

import importlib.util
import os
import random
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
MEMORY = 1024 * MIB  # address space of one process
DISK = 64 * MIB  # the box's own /tmp, and the largest file in it
SHARED_MEMORY = 16 * MIB
PROCESSES = 64
DESCRIPTORS = 256
OUTPUT_KEPT = 64 << 10
OUTPUT_ENDS = 16 * MIB  # a box that prints more is ended

INSIDE = ("forms.py", "plugin.py", "stub.py")  # the files of this folder that a box can see
ROOT = Path(__file__).resolve().parents[2]
_BOX = "/box"
_HAVE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/nix/store")
# Users of this range come and go by systemd's convention, so nobody owns files or other processes under them.
_ORDINARY = range(61184, 65520)

_SAME_PROCESS = "Checked in the same process: a candidate written to cheat could fake this."
_EACH = f"Each process at most {MEMORY // MIB} MiB, no limit on their sum."
SEALED_LAMPS = {
    "files": f"Only the Python installation is visible, read-only; /tmp is the box's own, {DISK // MIB} MiB.",
    "network": "None, not even this computer's own; unusual socket families (vsock, netlink) are not filtered yet.",
    "memory": _EACH,
    "processes": f"At most {PROCESSES} at once, in a process space of their own; none outlives the run.",
    "verdict": _SAME_PROCESS,
}
OPEN_LAMPS = {
    "files": "Open: the candidate can read, change and delete whatever you can.",
    "network": "Open.",
    "memory": _EACH,
    "processes": "Open: it can end your processes, and one that hides can outlive the run.",
    "verdict": _SAME_PROCESS,
}


def consent_sentence(note: str) -> str:
    rights = "root's rights" if os.geteuid() == 0 else "your rights"
    return (
        f"There is no sandbox here ({note}): candidates would run with {rights} and could read, change or delete your "
        "files and use the network. Agree to that for this run, or make bubblewrap work first."
    )


@dataclass(frozen=True)
class Layers:
    """How boxes are made here. ``bubblewrap``: its path, or empty when there is none that works."""

    bubblewrap: str

    @property
    def sealed(self) -> bool:
        return bool(self.bubblewrap)

    @property
    def lamps(self) -> dict[str, str]:
        return SEALED_LAMPS if self.sealed else OPEN_LAMPS

    def user(self) -> int | None:
        """The uid to become inside, or None where the box starts as an ordinary user already."""
        return random.choice(_ORDINARY) if self.sealed and os.geteuid() == 0 else None

    def limits(self, seconds: float) -> dict[str, int]:
        limits = {
            "RLIMIT_AS": MEMORY,
            "RLIMIT_CPU": int(seconds) + 5,
            "RLIMIT_FSIZE": DISK,
            "RLIMIT_NOFILE": DESCRIPTORS,
            "RLIMIT_CORE": 0,
        }
        # Outside a process space of its own the limit would count everything else the person runs.
        return limits | {"RLIMIT_NPROC": PROCESSES} if self.sealed else limits

    def environment(self, home: str) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": home,
            "TMPDIR": home,
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": _BOX if self.sealed else str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }

    def command(self, descriptor: int) -> list[str]:
        """The command line of one box that reports on ``descriptor``."""
        python = os.path.realpath(sys.executable)
        stub = [python, "-s", "-P", "-B", "-S", "-m", "engine.runner.stub", str(descriptor)]
        return [self.bubblewrap, *_bubblewrap_options(), "--", *stub] if self.sealed else stub


def packages() -> list[str]:
    """The folders of installed packages: this interpreter's, and wherever pytest is."""
    found = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    pytest = importlib.util.find_spec("pytest")
    if pytest is not None and pytest.origin is not None:
        found.add(str(Path(pytest.origin).parents[1]))
    return sorted(os.path.realpath(folder) for folder in found)


def _bubblewrap_options() -> Iterator[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--new-session", "--hostname", "box", "--cap-drop", "ALL")
    if os.geteuid() == 0:
        # Mounts are made by root, for the interpreter may lie where only root may look. The stub then leaves root,
        # for which it needs these two; the kernel takes them away as it does so.
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    else:
        yield from ("--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000")
    # A tmpfs mounted after a bind would hide an interpreter that lives below /tmp.
    yield from ("--perms", "1777", "--size", str(DISK), "--tmpfs", "/tmp")
    yield from ("--dev", "/dev", "--perms", "1777", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm")
    yield from ("--remount-ro", "/dev", "--proc", "/proc")
    made: set[Path] = set()
    for source, target in _views():
        for parent in reversed(Path(target).parents):
            if parent not in made and parent != Path("/"):
                made.add(parent)
                yield from ("--perms", "0755", "--dir", str(parent))  # bubblewrap's own are closed to other users
        if os.path.islink(source):
            yield from ("--symlink", os.readlink(source), target)
        else:
            yield from ("--ro-bind", source, target)
            made.add(Path(target))
    yield from ("--remount-ro", "/", "--chdir", "/tmp")


def _views() -> Iterator[tuple[str, str]]:
    """What is shown read-only, and where: system libraries, the interpreter, its packages, the code of the box."""
    seen: list[str] = []
    python = {os.path.realpath(folder) for folder in (sys.base_prefix, sys.base_exec_prefix, *packages())}
    home = os.path.realpath(os.path.expanduser("~"))
    for path in (*(p for p in _HAVE if os.path.exists(p)), *sorted(python)):
        # A package folder below the interpreter's is there already; a whole home is never shown.
        if path not in ("/", home) and not any(path.startswith(f"{above}/") for above in seen):
            seen.append(path)
            yield path, path
    folder = Path(__file__).resolve().parent
    for name in INSIDE:
        yield str(folder / name), f"{_BOX}/engine/runner/{name}"


def find_bubblewrap() -> str:
    return shutil.which("bwrap") or ""
