"""The sandbox out of Landlock, for machines that allow no namespaces: files and signals, nothing finer."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

from tools.process.zygote import kernel

SYS_CREATE_RULESET = 444
SYS_ADD_RULE = 445
SYS_RESTRICT_SELF = 446
CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH = 1

WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
DEVICE_NODES = 1 << 6 | 1 << 11
CHANGES = WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""Remove and make, of every kind."""
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEVICE = 1 << 15
TCP = 0b11
ABSTRACT_SOCKETS = 0b01
SIGNALS = 0b10

ABI_REFER = 2
ABI_TRUNCATE = 3
ABI_TCP = 4
ABI_IOCTL = 5
ABI_SCOPES = 6

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts")


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """The Landlock version of the kernel; 0 is none."""
    try:
        return kernel.syscall(SYS_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(CREATE_RULESET_VERSION))
    except OSError:
        return 0


def restrict(writable: tuple[str, ...], secret: tuple[str, ...], shown: tuple[str, ...] = (), *, network: bool) -> None:
    """Confine this process and all it starts: writes below `writable`, no reads of `secret` but below `shown`, signals
    among themselves.

    Raises:
        OSError: the kernel has no Landlock.
    """
    version = abi()
    changes = CHANGES | (REFER if version >= ABI_REFER else 0) | (TRUNCATE if version >= ABI_TRUNCATE else 0)
    devices = IOCTL_DEVICE if version >= ABI_IOCTL else 0
    rules = _Ruleset(changes | READ_FILE | devices)
    if version >= ABI_TCP and not network:
        rules.network = TCP
    if version >= ABI_SCOPES:
        rules.scoped = ABSTRACT_SOCKETS | SIGNALS
    ruleset = _create(rules)
    for path in writable:
        _allow(ruleset, path, changes & ~DEVICE_NODES)
    for path in DEVICES:
        _allow(ruleset, path, WRITE_FILE | READ_FILE | devices)
    hidden = (*secret, "/dev")
    for path in (*readable("/", hidden), *shown):
        _allow(ruleset, path, READ_FILE)
    _enforce(ruleset)


def hide_abstract_sockets() -> None:
    """Keep this process and all it starts from abstract unix sockets of others, where the kernel can."""
    if abi() >= ABI_SCOPES:
        _enforce(_create(_Ruleset(0, 0, ABSTRACT_SOCKETS)))


def readable(folder: str, hidden: tuple[str, ...]) -> Iterator[str]:
    """The largest parts of `folder` that contain none of `hidden`: Landlock allows, it cannot except."""
    inside = tuple(path for path in hidden if path == folder or path.startswith(f"{folder.rstrip('/')}/"))
    if not inside:
        yield folder
        return
    if folder in inside:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_symlink():
                yield from readable(entry.path, inside)


def _create(rules: _Ruleset) -> int:
    size = ctypes.c_size_t(ctypes.sizeof(rules))
    return kernel.syscall(SYS_CREATE_RULESET, ctypes.byref(rules), size, ctypes.c_uint32(0))


def _enforce(ruleset: int) -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.syscall(SYS_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # a device or temp folder this machine lacks: then nothing below it is allowed
    try:
        rule = _PathBeneath(rights, beneath)
        syscall_arguments = (ctypes.c_int(ruleset), ctypes.c_int(RULE_PATH_BENEATH), ctypes.byref(rule))
        kernel.syscall(SYS_ADD_RULE, *syscall_arguments, ctypes.c_uint32(0))
    finally:
        os.close(beneath)
