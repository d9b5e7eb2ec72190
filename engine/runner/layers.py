"""What stands between a candidate and the computer: which layers there are here, and how a box gets them.

Bubblewrap gives namespaces and the file view, the seccomp filter and the control group (``cgroups``) come on top;
limits are set inside, by the stub; clocks and the output cap are the service's.
"""

import importlib.util
import os
import random
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from engine.contract.errors import BasslineError
from engine.runner import seccomp

MIB = 1 << 20
MEMORY = 1024 * MIB  # of one process, and of all together where the kernel keeps groups
DISK = 64 * MIB  # the box's own /tmp, and the largest file in it
SHARED_MEMORY = 16 * MIB
PROCESSES = 64
OF_THE_BOX = 8  # processes of a box that are not the candidate's
DESCRIPTORS = 256
OUTPUT_KEPT = 64 << 10
OUTPUT_ENDS = 16 * MIB  # a box that prints more is ended

ROOT = Path(__file__).resolve().parents[2]
_HERE = Path(__file__).resolve().parent
_SPLIT = "__init__ values arrays identity shared mirrors library exceptions crossing link chance module".split()  # noqa: SIM905
_BOTH = ("stub", "task", "landlock", *(f"split/{name}" for name in _SPLIT))
_OF_CANDIDATE = ("program", "split/candidate")
_OF_OBSERVER = ("program", "observer", "encoding")
_OF_TESTS = (
    *("verdicts", "forms", "checks", "pasted", "needs", "reasons"),
    *("plugin", "items", "watch", "explain", "stopwatch"),
)
_TESTS = (*_OF_TESTS, "split/tests", *_OF_CANDIDATE)
# The files of this folder that a box can see, by its role; *alone* is tests and candidate in one process.
INSIDE = {
    "tests": (*_BOTH, *_TESTS),
    "candidate": (*_BOTH, *_OF_CANDIDATE),
    "alone": (*_BOTH, *_TESTS),
    "observer": (*_BOTH, *_OF_OBSERVER),
}
BOX = "/box"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/nix/store")
# Users of this range come and go by systemd's convention, so nobody owns files or other processes under them.
_ORDINARY = range(61184, 65520)


class BadEnvironment(BasslineError):
    """The user's Python environment cannot be shown to the tests."""


@dataclass(frozen=True)
class Layers:
    """How boxes are made here.

    ``kind``: bubblewrap, landlock or open. ``program``: bubblewrap's path. ``environment``: the user's own packages,
    to be read by the tests and the candidate.
    """

    kind: str = "open"
    program: str = ""
    environment: tuple[str, ...] = ()

    @property
    def sealed(self) -> bool:
        return self.kind == "bubblewrap"

    def user(self) -> int | None:
        """The uid to become inside, or None where the box starts as an ordinary user already."""
        return random.choice(_ORDINARY) if self.sealed and os.geteuid() == 0 else None

    def limits(self) -> dict[str, int]:
        limits = {"RLIMIT_AS": MEMORY, "RLIMIT_FSIZE": DISK, "RLIMIT_NOFILE": DESCRIPTORS, "RLIMIT_CORE": 0}
        # Outside a process space of its own the limit would count everything else the user runs.
        return limits | {"RLIMIT_NPROC": PROCESSES} if self.sealed else limits

    def variables(self, home: str) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": home,
            "TMPDIR": home,
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            **dict.fromkeys(("USER", "LOGNAME"), "user"),  # its number has no entry in the box
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": BOX if self.sealed else str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }

    def settings(self, home: str) -> dict[str, object]:
        """What the stub needs to know before it takes a task."""
        settings: dict[str, object] = {
            "path": [*packages(), *self.environment],
            "uid": self.user(),
            "limits": self.limits(),
        }
        if self.kind == "landlock":
            filtered = seccomp.program(sockets=False).hex()
            settings["fence"] = {
                "read": [*visible(self), str(_HERE), "/dev"],
                "write": [home, "/dev/null"],
                "filter": filtered,
            }
        return settings


def packages() -> list[str]:
    """The folders of installed packages: this interpreter's, and wherever pytest is."""
    found = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    pytest = importlib.util.find_spec("pytest")
    if pytest is not None and pytest.origin is not None:
        found.add(str(Path(pytest.origin).parents[1]))
    return sorted(os.path.realpath(folder) for folder in found)


def visible(layers: Layers) -> list[str]:
    """What is shown read-only: system libraries, the interpreter, its packages, the user's environment."""
    seen: list[str] = []
    python = {os.path.realpath(f) for f in (sys.base_prefix, sys.base_exec_prefix, *packages(), *layers.environment)}
    home = os.path.realpath(os.path.expanduser("~"))
    for path in (*(p for p in SYSTEM if os.path.exists(p)), *sorted(python)):
        # A package folder below the interpreter's is there already; a whole home is never shown.
        if path not in ("/", home) and not any(path.startswith(f"{above}/") for above in seen):
            seen.append(path)
    return seen


def hidden(shown: list[str]) -> list[str]:
    """Folders of this program below what is ``shown``, as when it is installed: a box sees ``own_files`` alone."""
    own = (str(ROOT / name) for name in ("app", "engine", "kernels", "resources"))
    return [folder for folder in own if any(folder.startswith(f"{above}/") for above in shown)]


def own_files(role: str) -> dict[str, str]:
    """The program's own files that a box of that role can see: where they are, and where they appear."""
    return {str(_HERE / f"{name}.py"): f"{BOX}/engine/runner/{name}.py" for name in INSIDE[role]}


def find_bubblewrap() -> str:
    return shutil.which("bwrap") or ""


def environment(folder: str) -> tuple[str, ...]:
    """The package folders of the virtual environment in ``folder``. Raises BadEnvironment."""
    if not folder:
        return ()
    wanted = f"python{sys.version_info.major}.{sys.version_info.minor}"
    try:
        root = Path(folder).expanduser().absolute()
        if root.is_file():  # the interpreter itself was named; it is mostly a link that leads out of the environment
            root = root.parent.parent
        root = root.resolve()
        found = sorted(str(path) for path in root.glob(f"lib*/{wanted}/site-packages") if path.is_dir())
        others = sorted(path.parent.name for path in root.glob("lib*/python*/site-packages"))
    except OSError as error:
        raise BadEnvironment(f"The environment {folder} cannot be read: {error.strerror or error}.") from None
    except RuntimeError:  # no such user, or links that lead in a circle
        found, others = [], []
    if found:
        return tuple(found)
    if others:
        raise BadEnvironment(f"The environment {folder} is for {others[0]}; the tests need one for {wanted}.")
    raise BadEnvironment(f"There is no Python environment in {folder}; name the folder of a virtual environment.")
