"""Where bubblewrap cannot be had: a process fences itself in, with Landlock for files and a filter of system calls.

Runs inside the box, before the candidate. Weaker than bubblewrap: the process space and the computer's name are shared.
"""

import ctypes
import os
import struct

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # the same numbers on every machine
_VERSION = 1  # flag: ask for the version
_PATH_BENEATH = 1
_NO_NEW_PRIVS, _SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ALL_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_OF_A_FILE = _EXECUTE | _READ_FILE | 1 << 1 | 1 << 14 | 1 << 15
_ALL_PORTS = 3  # bind and connect, from version 4
_SCOPED = 3  # abstract sockets and signals stay inside, from version 6
NEEDED = 6  # before it a candidate could send signals to the user's other processes

_libc = ctypes.CDLL(None, use_errno=True)


class LandlockUnavailable(OSError):
    """The kernel would not do it."""


def version() -> int:
    """Landlock's version on this kernel; 0 where there is none."""
    found: int = _libc.syscall(_CREATE, None, 0, _VERSION)
    return max(found, 0)


def fence(readable: list[str], writable: list[str], program: bytes) -> None:
    """From here on this process reads ``readable``, also writes ``writable``, and obeys the filter. Raises
    LandlockUnavailable.
    """
    have = version()
    if have < NEEDED or not program:
        raise LandlockUnavailable("this kernel has no Landlock that is new enough")
    files = _ALL_FILES[min(have, 5)]
    wanted = ctypes.create_string_buffer(struct.pack("=QQQ", files, _ALL_PORTS, _SCOPED))
    rules = _checked(_libc.syscall(_CREATE, wanted, 24, 0))
    for paths, rights in ((readable, _READ), (writable, files)):
        for path in paths:
            _allow(rules, path, rights)
    _checked(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(_libc.syscall(_RESTRICT, rules, 0))
    os.close(rules)
    code = ctypes.create_string_buffer(program, len(program))
    filtered = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(code)))
    _checked(_libc.prctl(_SET_SECCOMP, _MODE_FILTER, filtered, 0, 0))


def _allow(rules: int, path: str, rights: int) -> None:
    if not os.path.exists(path):
        return
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights &= ~0 if os.path.isdir(path) else _OF_A_FILE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, parent))
        _checked(_libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0))
    finally:
        os.close(parent)


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise LandlockUnavailable(error, os.strerror(error))
    return int(result)
