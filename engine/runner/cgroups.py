"""A control group for each candidate: its memory and its processes are counted together, and end together.

Version 2 where a subtree is ours (root, or a scope that systemd delegates), else version 1 as root, else none. A limit
counts only after it was read back.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
_PREFIX = "bassline-"
_SCOPED = "BASSLINE_SCOPE"  # set in the service that runs in a scope of its own already


@dataclass(frozen=True)
class Leaf:
    """The group of one box. ``folders``: its place in each hierarchy."""

    folders: tuple[Path, ...]

    def join(self) -> None:
        """Puts the calling process in, with all that it will start."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text("0")

    def kill(self) -> None:
        """Version 2 ends every process of the group in one write; elsewhere the box's other means do it."""
        for folder in self.folders:
            try:
                (folder / "cgroup.kill").write_text("1")
            except OSError:
                pass

    @property
    def ran_out_of_memory(self) -> bool:
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                words = _read(folder / name).split()
                if "oom_kill" in words and words[words.index("oom_kill") + 1] != "0":
                    return True
        return False

    @property
    def peak_mib(self) -> float | None:
        for folder in self.folders:
            for name in ("memory.peak", "memory.max_usage_in_bytes"):
                text = _read(folder / name).strip()
                if text.isdigit():
                    return round(int(text) / (1 << 20), 1)
        return None

    def remove(self) -> bool:
        """False while processes that were killed have not vanished yet, which takes a moment."""
        for folder in self.folders:
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                return False
        return True


class Groups:
    """Where leaves are made. ``version``: 1 or 2."""

    def __init__(self, version: int, folders: tuple[Path, ...]):
        self.version, self._folders, self._count = version, folders, 0

    def leaf(self, memory: int, processes: int) -> Leaf | None:
        """A new group of at most ``memory`` bytes and ``processes``; None when the kernel would not keep that."""
        self._count += 1
        leaf = Leaf(tuple(folder / str(self._count) for folder in self._folders))
        try:
            for folder in leaf.folders:
                folder.mkdir()
            if self._limit(leaf, memory, processes):
                return leaf
        except OSError:
            pass
        leaf.remove()
        return None

    def _limit(self, leaf: Leaf, memory: int, processes: int) -> bool:
        kept = set()
        for folder in leaf.folders:
            for name, value in (("memory.max", memory), ("memory.limit_in_bytes", memory), ("pids.max", processes)):
                if (folder / name).exists():
                    (folder / name).write_text(str(value))
                    kept.add(name.partition(".")[0]) if _number(folder / name) in range(1, value + 1) else None
            # Without these the same memory could go to swap, and one process would be ended instead of all.
            for name, value in (
                ("memory.swap.max", 0),
                ("memory.memsw.limit_in_bytes", memory),
                ("memory.oom.group", 1),
            ):
                if (folder / name).exists():
                    (folder / name).write_text(str(value))
        return kept == {"memory", "pids"}

    def close(self) -> None:
        for folder in self._folders:
            _sweep(folder)


def find(mount: Path = _MOUNT, own: str | None = None) -> Groups | None:
    """The groups that this process can make, tried out; None where it can make none that hold."""
    lines = (_read(Path("/proc/self/cgroup")) if own is None else own).splitlines()
    places = {names: path.lstrip("/") for _, names, path in (line.split(":", 2) for line in lines)}
    for candidate in (_version_2(mount, places), _version_1(mount, places)):
        if candidate is None:
            continue
        leaf = candidate.leaf(1 << 30, 64)
        if leaf is not None:
            leaf.remove()
            return candidate
        candidate.close()
    return None


def _version_2(mount: Path, places: dict[str, str]) -> Groups | None:
    base = mount / places.get("", "")
    if not {"memory", "pids"} <= set(_read(base / "cgroup.controllers").split()):
        return None
    try:
        # Processes may only be in leaves: this one moves into one of its own first.
        service = base / f"{_PREFIX}service"
        service.mkdir(exist_ok=True)
        (service / "cgroup.procs").write_text("0")
        (base / "cgroup.subtree_control").write_text("+memory +pids")
        folder = _own_folder(base)
        (folder / "cgroup.subtree_control").write_text("+memory +pids")
    except OSError:
        return None
    return Groups(2, (folder,))


def _version_1(mount: Path, places: dict[str, str]) -> Groups | None:
    folders = []
    for controller in ("memory", "pids"):
        place = next((path for names, path in places.items() if controller in names.split(",")), None)
        if place is None:
            return None
        try:
            folders.append(_own_folder(mount / controller / place))
        except OSError:
            for folder in folders:
                _sweep(folder)
            return None
    return Groups(1, tuple(folders))


def _own_folder(base: Path) -> Path:
    """This process's own folder; those of services that were killed are taken away."""
    for left in base.glob(f"{_PREFIX}[0-9]*"):
        if not Path(f"/proc/{left.name.removeprefix(_PREFIX)}").exists():
            _sweep(left)
    folder = base / f"{_PREFIX}{os.getpid()}"
    folder.mkdir(exist_ok=True)
    return folder


def _sweep(folder: Path) -> None:
    for path in (*(p for p in folder.glob("*") if p.is_dir()), folder):
        try:
            path.rmdir()
        except OSError:
            pass  # something in it has not ended yet; the next service takes it away


def delegated_command(command: list[str]) -> list[str] | None:
    """``command`` in a scope that systemd delegates to this user; None where that is not needed or cannot be."""
    program = shutil.which("systemd-run")
    needed = os.geteuid() != 0 and (_MOUNT / "cgroup.controllers").exists() and _SCOPED not in os.environ
    if program is None or not needed:
        return None
    scope = [program, "--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes", "--"]
    try:
        tried = subprocess.run([*scope, "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return [*scope, "env", f"{_SCOPED}=1", *command] if tried.returncode == 0 else None


def enter_scope() -> None:
    """Starts this very program again in a scope of its own, where that gives groups and there is none yet."""
    command = delegated_command([sys.executable, "-m", "engine.runner.service", *sys.argv[1:]])
    if command is not None:
        os.execv(command[0], command)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _number(path: Path) -> int:
    text = _read(path).strip()
    return int(text) if text.isdigit() else 0
