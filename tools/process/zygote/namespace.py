"""The sandbox out of namespaces: a PID 1 of our own and a file system that is read-only where it must be."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
from collections.abc import Callable

from tools.process.zygote import kernel
from tools.process.zygote.wire import Request

SIOCSIFFLAGS = 0x8914
IFF_UP_RUNNING = 0x41


def enter(request: Request, first: Callable[[], None]) -> None:
    """Run `first` as PID 1 of new namespaces and wait until that world is empty.

    PID 1 dies with this process, and the kernel ends every other process of the namespace with it.

    Raises:
        OSError: namespaces are not to be had here.
    """
    user, group = os.getuid(), os.getgid()
    flags = kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID | kernel.CLONE_NEWNS
    kernel.unshare(flags if request.network else flags | kernel.CLONE_NEWNET)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    pid = os.fork()
    if pid == 0:
        try:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            first()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def outer_pid() -> int:
    """This process's number outside, readable while /proc is still the outer one."""
    return int(os.readlink("/proc/self"))  # noqa: PTH115 - no pathlib in the zygote


def build(request: Request) -> None:
    """Make the file system what the policy says.

    Raises:
        OSError: part of it cannot be enforced; then the command must not run.
    """
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    for path in (*request.writable, *request.pinned):
        kernel.mount(path, path, "", kernel.MS_BIND | kernel.MS_REC)
    kernel.set_read_only("/", read_only=True, recursive=True)
    for path in (*request.writable, *request.pinned):
        kernel.set_read_only(path, read_only=False)
    for path in request.denied:
        kernel.mount(path, path, "", kernel.MS_BIND | kernel.MS_REC)
        kernel.set_read_only(path, read_only=True)
    for path in request.hidden:
        _hide(path)
    safe = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("proc", "/proc", "proc", safe)
    kernel.mount("/proc/sys", "/proc/sys", "", kernel.MS_BIND | kernel.MS_REC)
    kernel.set_read_only("/proc/sys", read_only=True)
    with contextlib.suppress(OSError):  # a container without /dev/pts or /dev/shm has nothing to replace
        kernel.mount("devpts", "/dev/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666")
    if request.writable:
        with contextlib.suppress(OSError):
            kernel.mount("tmpfs", "/dev/shm", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")
    if not request.network:
        _raise_loopback()


def _hide(path: str) -> None:
    """Cover a socket, or a folder of sockets, through which a command could leave the sandbox."""
    try:
        kernel.mount("tmpfs", path, "tmpfs", kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV, "mode=0700")
    except NotADirectoryError:
        kernel.mount("/dev/null", path, "", kernel.MS_BIND)


def _raise_loopback() -> None:
    """A network of its own still has 127.0.0.1, which test suites use."""
    import fcntl  # noqa: PLC0415 - only a sandbox without network needs these two
    import socket  # noqa: PLC0415 - as above

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as interface, contextlib.suppress(OSError):
        fcntl.ioctl(interface, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_RUNNING))


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
