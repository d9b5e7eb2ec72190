"""The filter of system calls: what no candidate needs, and what opens a way around the other layers.

A small table for x86-64 and aarch64, as the bytes that bubblewrap (``--seccomp``) and the kernel read.
"""

import errno
import platform
import struct

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data; arguments are 8 bytes each
_X32 = 0x40000000
_NAMESPACES = 0x7E020080  # CLONE_NEW*: user, mount, pid, net, ipc, uts, cgroup, time
_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6; vsock, netlink and packet open in spite of a network namespace
_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: they type into the user's terminal

_REFUSED = """
acct add_key bpf clock_adjtime clock_settime delete_module fanotify_init finit_module fsconfig fsmount fsopen fspick
init_module io_uring_enter io_uring_register io_uring_setup kcmp kexec_file_load kexec_load keyctl lookup_dcookie mount
mount_setattr move_mount name_to_handle_at nfsservctl open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root
process_madvise process_vm_readv process_vm_writev ptrace quotactl reboot request_key setdomainname sethostname setns
settimeofday swapoff swapon syslog umount2 unshare userfaultfd vhangup
"""
_X86_64 = """
ioctl=16 socket=41 clone=56 ptrace=101 syslog=103 vhangup=153 pivot_root=155 acct=163 settimeofday=164 mount=165
umount2=166 swapon=167 swapoff=168 reboot=169 sethostname=170 setdomainname=171 init_module=175 delete_module=176
quotactl=179 nfsservctl=180 lookup_dcookie=212 clock_settime=227 kexec_load=246 add_key=248 request_key=249 keyctl=250
unshare=272 perf_event_open=298 fanotify_init=300 name_to_handle_at=303 open_by_handle_at=304 clock_adjtime=305
setns=308 process_vm_readv=310 process_vm_writev=311 kcmp=312 finit_module=313 kexec_file_load=320 bpf=321
userfaultfd=323
"""
_AARCH64 = """
lookup_dcookie=18 ioctl=29 umount2=39 mount=40 pivot_root=41 nfsservctl=42 vhangup=58 quotactl=60 acct=89 unshare=97
kexec_load=104 init_module=105 delete_module=106 clock_settime=112 syslog=116 ptrace=117 reboot=142 sethostname=161
setdomainname=162 settimeofday=170 socket=198 add_key=217 request_key=218 keyctl=219 clone=220 swapon=224 swapoff=225
perf_event_open=241 fanotify_init=262 name_to_handle_at=264 open_by_handle_at=265 clock_adjtime=266 setns=268
process_vm_readv=270 process_vm_writev=271 kcmp=272 finit_module=273 bpf=280 userfaultfd=282 kexec_file_load=294
"""
_SAME_EVERYWHERE = """
io_uring_setup=425 io_uring_enter=426 io_uring_register=427 open_tree=428 move_mount=429 fsopen=430 fsconfig=431
fsmount=432 fspick=433 clone3=435 pidfd_getfd=438 process_madvise=440 mount_setattr=442
"""
_MACHINES = {
    "x86_64": (0xC000003E, _X86_64 + _SAME_EVERYWHERE),
    "aarch64": (0xC00000B7, _AARCH64 + _SAME_EVERYWHERE),
}


def program(machine: str | None = None, sockets: bool = True) -> bytes:
    """The filter for ``machine`` (default: this one) as BPF instructions; empty where there is no table for it.

    ``sockets`` False refuses them all: for a box without a network namespace. A socketpair is no socket in that sense.
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return b""
    architecture, table = known
    numbers = {name: int(number) for name, number in (entry.split("=") for entry in table.split())}
    code = [(_LOAD, 0, 0, _ARCHITECTURE), (_JUMP_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL)]
    code += [(_LOAD, 0, 0, _NUMBER)]
    if architecture == 0xC000003E:
        code += [(_JUMP_AT_LEAST, 0, 1, _X32), _refuse(errno.ENOSYS)]
    for name in _REFUSED.split():
        code += _when(numbers[name], [_refuse(errno.EPERM)])
    # Its flags lie in memory, where a filter cannot look; the C library then falls back to clone.
    code += _when(numbers["clone3"], [_refuse(errno.ENOSYS)])
    code += _when(numbers["clone"], [_argument(0), (_JUMP_SET, 0, 1, _NAMESPACES), _refuse(errno.EPERM), _allow()])
    terminal = [_argument(1)] + [part for value in _TERMINAL for part in _when(value, [_refuse(errno.EPERM)])]
    code += _when(numbers["ioctl"], [*terminal, _allow()])
    family = [_argument(0)] + [part for value in _FAMILIES for part in _when(value, [_allow()])]
    code += _when(numbers["socket"], [*(family if sockets else []), _refuse(errno.EAFNOSUPPORT)])
    code += [_allow()]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


_Instruction = tuple[int, int, int, int]


def _when(value: int, then: list[_Instruction]) -> list[_Instruction]:
    return [(_JUMP_EQUAL, 0, len(then), value), *then]


def _argument(index: int) -> _Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)  # the low half: both machines are little-endian


def _refuse(error: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | error)


def _allow() -> _Instruction:
    return (_RETURN, 0, 0, _ALLOW)
