"""A seccomp filter for sandboxed commands: no new namespaces, mounts, keyrings, modules, odd sockets or typed keys.

It closes what the other mechanisms leave to chance, and keeps rarely used kernel code out of a command's reach.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from tools.process.zygote import guard, kernel

SAME_NUMBERS = {
    errno.EPERM: (428, 429, 430, 431, 432, 433, 442, 443, 467),
    errno.ENOSYS: (425, 426, 427, 435, 437),
}
"""open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr, quotactl_fd, open_tree_attr; then io_uring,
and clone3 and openat2, whose flags a filter cannot read: libraries fall back to clone and openat."""
NUMBERS = {
    "x86_64": {
        errno.EPERM: (
            *(165, 166, 155, 167, 168, 169, 170, 171, 172, 173),  # mount to ioperm
            *(175, 176, 313, 246, 320, 179, 163, 164, 227),  # modules, kexec, quotactl, acct, clocks
            *(298, 304, 308, 321, 323, 103, 153, 300, 212, 180, 134),  # perf, file handles, setns, bpf, userfaultfd
        ),
        errno.ENOSYS: (248, 249, 250),  # keyrings
    },
    "aarch64": {
        errno.EPERM: (
            *(40, 39, 41, 224, 225, 142, 161, 162),
            *(105, 106, 273, 104, 294, 60, 89, 170, 112),
            *(241, 265, 268, 280, 282, 116, 58, 262, 18, 42),
        ),
        errno.ENOSYS: (217, 218, 219),
    },
}
UNSHARE = {"x86_64": 272, "aarch64": 97}
CLONE = {"x86_64": 56, "aarch64": 220}
IOCTL = {"x86_64": 16, "aarch64": 29}
SOCKET = {"x86_64": 41, "aarch64": 198}
MODES = {
    "x86_64": {85: 1, 90: 1, 91: 1, 133: 1, 259: 2, 268: 2, 452: 2},
    "aarch64": {52: 1, 33: 2, 53: 2, 452: 2},
}
"""Calls that give a file its mode (creat, chmod, mknod and their kin), and which argument, from 0, the mode is."""
OPENING = {"x86_64": {2: 1, 257: 2}, "aarch64": {56: 2}}
"""open and openat: the place of their flags; the mode comes next, and counts where a file is made."""
MAKES_A_FILE = 0x400040
"""O_CREAT, and the bits that O_TMPFILE adds."""
SET_USER_OR_GROUP = 0o6000
TYPING = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX put letters into a terminal."""
LOCAL_FAMILIES = (1, 16)
INTERNET_FAMILIES = (2, 10)
"""Unix and netlink; IPv4 and IPv6. Others, vsock for one, do not belong to a network namespace or have no user here."""
X32 = 0x40000000
JUMP_IF_AT_LEAST = 0x35
JUMP_IF_ANY_BIT = 0x45
NUMBER_OFFSET = 0
ARGUMENT_SIZE = 8

Line = tuple[int, int, int, int]


def restrict(*, internet: bool = True) -> None:
    """Install the filter for this process and all it starts; it must hold no_new_privs.

    Raises:
        OSError: the kernel takes no filter.
    """
    instructions = compile_filter(internet=internet)
    if instructions:
        kernel.prctl_pointer(guard.PR_SET_SECCOMP, guard.SECCOMP_MODE_FILTER, ctypes.byref(guard.program(instructions)))


def compile_filter(*, internet: bool = True) -> bytes:
    """The filter as the kernel reads it; empty on a machine whose numbers are not known."""
    machine = os.uname().machine
    if machine not in NUMBERS:
        return b""
    families = (*LOCAL_FAMILIES, *INTERNET_FAMILIES) if internet else LOCAL_FAMILIES
    lines: list[Line] = [
        (guard.LOAD_WORD, 0, 0, guard.ARCHITECTURE_OFFSET),
        (guard.JUMP_IF_EQUAL, 1, 0, guard.CALLS[machine][0]),
        _refuse(errno.ENOSYS),  # 32-bit programs: their numbers mean other calls
        (guard.LOAD_WORD, 0, 0, NUMBER_OFFSET),
    ]
    if machine == "x86_64":
        lines += [(JUMP_IF_AT_LEAST, 0, 1, X32), _refuse(errno.ENOSYS)]
    for table in (SAME_NUMBERS, NUMBERS[machine]):
        for error, numbers in table.items():
            for number in numbers:
                lines += [(guard.JUMP_IF_EQUAL, 0, 1, number), _refuse(error)]
    new_user = [(JUMP_IF_ANY_BIT, 0, 1, kernel.CLONE_NEWUSER), _refuse(errno.EPERM)]
    typed = [line for order in TYPING for line in ((guard.JUMP_IF_EQUAL, 0, 1, order), _refuse(errno.EPERM))]
    known = [(guard.JUMP_IF_EQUAL, len(families) - place, 0, family) for place, family in enumerate(families)]
    lines += _about(UNSHARE[machine], guard.ARGUMENT_OFFSET, new_user)
    lines += _about(CLONE[machine], guard.ARGUMENT_OFFSET, new_user)
    lines += _about(IOCTL[machine], guard.ARGUMENT_OFFSET + ARGUMENT_SIZE, typed)
    lines += _about_modes(machine)
    lines += _about(SOCKET[machine], guard.ARGUMENT_OFFSET, [*known, _refuse(errno.EAFNOSUPPORT)])
    lines.append((guard.RETURN, 0, 0, guard.ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _about_modes(machine: str) -> list[Line]:
    """Lines that let no file become a program that runs as this user for others: it would outlive the sandbox."""
    set_user_id = [(JUMP_IF_ANY_BIT, 0, 1, SET_USER_OR_GROUP), _refuse(errno.EPERM)]
    lines: list[Line] = []
    for number, place in MODES[machine].items():
        lines += _about(number, guard.ARGUMENT_OFFSET + place * ARGUMENT_SIZE, set_user_id)
    for number, place in OPENING[machine].items():
        offset = guard.ARGUMENT_OFFSET + place * ARGUMENT_SIZE
        mode = [(guard.LOAD_WORD, 0, 0, offset + ARGUMENT_SIZE), *set_user_id]
        lines += _about(number, offset, [(JUMP_IF_ANY_BIT, 0, len(mode), MAKES_A_FILE), *mode])
    return lines


def _about(number: int, offset: int, checks: list[Line]) -> list[Line]:
    """Lines that check one argument of one call, and allow it unless one of `checks` refuses."""
    body = [(guard.LOAD_WORD, 0, 0, offset), *checks, (guard.RETURN, 0, 0, guard.ALLOW)]
    return [(guard.JUMP_IF_EQUAL, 0, len(body), number), *body]


def _refuse(error: int) -> Line:
    return (guard.RETURN, 0, 0, guard.ERRNO | error)
