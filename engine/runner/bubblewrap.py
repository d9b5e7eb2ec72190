"""The options of bubblewrap: what a box sees of the computer. They are handed over by descriptor, as is the filter."""

import os
from collections.abc import Iterator
from pathlib import Path

from engine.runner.layers import DISK, SHARED_MEMORY, Layers, hidden, own_files, visible


def options(layers: Layers, role: str, filter_descriptor: int | None) -> list[str]:
    """``filter_descriptor``: where bubblewrap reads the filter of system calls, or None where there is none."""
    return [*_options(layers, role), *(["--seccomp", str(filter_descriptor)] if filter_descriptor is not None else [])]


def _options(layers: Layers, role: str) -> Iterator[str]:
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
    for source, target in ({path: path for path in visible(layers)} | own_files(role)).items():
        for parent in reversed(Path(target).parents):
            if parent not in made and parent != Path("/"):
                made.add(parent)
                yield from ("--perms", "0755", "--dir", str(parent))  # bubblewrap's own are closed to other users
        if os.path.islink(source):
            yield from ("--symlink", os.readlink(source), target)
        else:
            yield from ("--ro-bind", source, target)
            made.add(Path(target))
    for folder in hidden(visible(layers)):
        yield from ("--perms", "0755", "--tmpfs", folder, "--remount-ro", folder)
    yield from ("--remount-ro", "/", "--chdir", "/tmp")
