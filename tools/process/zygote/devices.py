"""A /dev with the few devices that programs need: none of the machine's, also for root."""

from __future__ import annotations

import contextlib
import os

from tools.process.zygote import kernel

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
    "core": "/proc/kcore",
}
OPTIONS = kernel.MS_NOSUID | kernel.MS_NOEXEC
SHARED_MEMORY = "mode=1777,size=1g"
"""Bytes are memory of the machine; a browser or a test runner keeps a few hundred megabytes there."""


def replace(*, writable: bool) -> None:
    """Mount the new /dev over the old one, still open to writes; its shared memory stays so where `writable`.

    Raises:
        OSError: it cannot be made.
    """
    held = {name: os.open(f"/dev/{name}", os.O_PATH | os.O_CLOEXEC) for name in DEVICES if _exists(name)}
    kernel.mount("tmpfs", "/dev", "tmpfs", OPTIONS, "mode=0755,size=64k")
    for name, source in held.items():
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        kernel.mount(f"/proc/self/fd/{source}", f"/dev/{name}", "", kernel.MS_BIND)
        kernel.set_attributes(f"/dev/{name}", kernel.MOUNT_ATTR_RDONLY, kernel.MOUNT_ATTR_NODEV)
        os.close(source)
    for folder in ("/dev/pts", "/dev/shm"):
        os.mkdir(folder, 0o755)
    for name, target in LINKS.items():
        os.symlink(target, f"/dev/{name}")
    with contextlib.suppress(OSError):  # a container that forbids it: then there is no terminal
        kernel.mount("devpts", "/dev/pts", "devpts", OPTIONS, "newinstance,ptmxmode=0666,mode=0620")
    if writable:
        kernel.mount("tmpfs", "/dev/shm", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, SHARED_MEMORY)


def _exists(name: str) -> bool:
    return os.access(f"/dev/{name}", os.F_OK)
