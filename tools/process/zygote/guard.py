"""A seccomp filter that makes `kill -9 -1` and a signal to Phoenix fail (FAULTS 14).

It guards against accidents, not against attackers. Installing it costs an ordinary user `sudo`
(no_new_privs), so it is installed only where that loses nothing: for root, and where no_new_privs
is on already.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from tools.process.zygote import kernel

PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
LOAD_WORD = 0x20
JUMP_IF_EQUAL = 0x15
RETURN = 0x06
ALLOW = 0x7FFF0000
ERRNO = 0x00050000
REFUSE = ERRNO | errno.EPERM
ARCHITECTURE_OFFSET = 4
ARGUMENT_OFFSET = 16
EVERYONE = -1

# kill, tkill, tgkill, rt_sigqueueinfo, pidfd_open: each has its target in the first argument.
CALLS = {
    "x86_64": (0xC000003E, (62, 200, 234, 129, 434)),
    "aarch64": (0xC00000B7, (129, 130, 131, 138, 434)),
}


class Program(ctypes.Structure):
    """A filter as prctl takes it."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def program(instructions: bytes) -> Program:
    """The filter made of these instructions of eight bytes each."""
    return Program(len(instructions) // 8, instructions)


def protect(pids: tuple[int, ...]) -> bool:
    """Keep this process and all it starts from signalling `pids` and everyone; False where it cannot be had."""
    machine = os.uname().machine
    if machine not in CALLS:
        return False
    filtering = program(_filter(*CALLS[machine], (EVERYONE, *pids, *(-pid for pid in pids))))
    for attempt in (_install, _install_without_new_privileges):
        try:
            attempt(filtering)
        except OSError:
            if os.geteuid() != 0:
                return False
        else:
            return True
    return False


def _install(filtering: Program) -> None:
    kernel.prctl_pointer(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filtering))


def _install_without_new_privileges(filtering: Program) -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    _install(filtering)


def _filter(architecture: int, calls: tuple[int, ...], targets: tuple[int, ...]) -> bytes:
    """The program: another architecture or another call is allowed, one of `targets` is refused."""
    check = len(calls) + 1
    lines = [(LOAD_WORD, 0, 0, ARCHITECTURE_OFFSET), (JUMP_IF_EQUAL, 1, 0, architecture), (RETURN, 0, 0, ALLOW)]
    lines.append((LOAD_WORD, 0, 0, 0))
    lines += [(JUMP_IF_EQUAL, check - 1 - index, 0, call) for index, call in enumerate(calls)]
    lines += [(RETURN, 0, 0, ALLOW), (LOAD_WORD, 0, 0, ARGUMENT_OFFSET)]
    count = len(targets)
    lines += [(JUMP_IF_EQUAL, count - index, 0, target & 0xFFFFFFFF) for index, target in enumerate(targets)]
    lines += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
