"""The sandbox made of namespaces: a separate PID 1, and at each path the planner's choice."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import struct
from collections.abc import Callable, Sequence

from tools.process.zygote import devices, kernel, mount_places
from tools.process.zygote.covers import Covers
from tools.process.zygote.mount_places import MountPlace
from tools.process.zygote.wire import DOOR_PORT, SupervisorRequest

SIOCSIFFLAGS = 0x8914
IFF_UP_RUNNING = 0x41
DOOR_BACKLOG = 64
"""Connections that wait while the proxy is started."""
PROC_HIDDEN = ("kcore", "kmsg", "keys", "key-users", "timer_list", "sched_debug")
LOCKED = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
SAFE = kernel.MS_NOSUID | kernel.MS_NODEV


def enter(request: SupervisorRequest, first: Callable[[], None]) -> None:
    """Run `first` as PID 1 of new namespaces and wait until that world is empty.

    PID 1 dies with this process, and the kernel ends every other process of the namespace with it.

    Raises:
        OSError: namespaces are not available here.
    """
    user, group = os.getuid(), os.getgid()
    flags = kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID | kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC
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
    """Number of this process outside, readable while /proc is still the outer one."""
    return int(os.readlink("/proc/self"))


def build(request: SupervisorRequest) -> Covers:
    """Build the file system of the request: everything read-only, except for its places. Returns the covers in folders
    that the command can write.

    Raises:
        OSError: part of it cannot be enforced; then the command must not run.
    """
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    opened = [_open(place) for place in request.places]
    copied: list[str] = []
    for number, place in enumerate(request.places):
        if _copy(place, opened[number]):
            copied.append(place.path)
            os.close(opened[number])
            opened[number] = kernel.hold(place.path)
    kernel.set_attributes("/", LOCKED, recursive=True)
    for path in copied:
        kernel.set_read_only(path, read_only=False)
    devices.replace(writable=bool(request.writable))
    emptied = ["/dev"]
    for place, source in zip(request.places, opened, strict=True):
        if place.kind != mount_places.COPY:
            _attach(place, source, emptied)
        elif _is_replaced(place, request.places):
            _make(place.path, is_folder=True)
            kernel.attach(source, place.path, 0 if place.path in copied else kernel.MOUNT_ATTR_RDONLY, 0)
    for path in emptied:
        kernel.set_read_only(path, read_only=True)
    covers = _note_covers(request, opened)
    _replace_proc()
    os.chdir("/")
    if not request.network and (request.writable or request.door):  # 10 ms; what only reads has no server of its own
        _raise_loopback()
    return covers


def _note_covers(request: SupervisorRequest, opened: Sequence[int]) -> Covers:
    """Covers of paths that a program outside may replace; closes the other descriptors."""
    kinds = {mount_places.CLOSED, mount_places.INSTEAD_READ_ONLY}
    hiding = {
        place.path: place.source
        for place in request.places
        if place.kind in kinds and any(place.path.startswith(f"{folder}/") for folder in request.writable)
    }
    kept: dict[str, int] = {}
    for place, source in zip(request.places, opened, strict=True):
        if place.path in hiding and place.source and place.source not in kept:
            kept[place.source] = source
        else:
            os.close(source)
    covers = Covers()
    for path, of in hiding.items():
        with contextlib.suppress(OSError):
            covers.add(path, kept.get(of, -1))
    return covers


def _open(place: MountPlace) -> int:
    """Open the content for the place before something else is mounted over it.

    Raises:
        OSError: it is gone.
    """
    path = place.path if place.kind in mount_places.FROM_THERE | mount_places.EMPTIED else place.source
    return kernel.hold(path, link=place.kind == mount_places.LINK)


def _copy(place: MountPlace, opened: int) -> bool:
    """Mount a writable layer over the place, while the folder of that layer can still be written itself.

    False for another kind, and for a file system that overlayfs does not take: it stays read-only.
    """
    if place.kind != mount_places.COPY:
        return False
    lower = f"/proc/self/fd/{opened}"
    below = -1
    if _exists(f"{place.source}/lower/."):
        below = os.open(f"{place.source}/lower", os.O_PATH | os.O_CLOEXEC)
        lower = f"/proc/self/fd/{below}:{lower}"
    layers = f"lowerdir={lower},upperdir={place.source}/upper,workdir={place.source}/work,userxattr"
    try:
        kernel.mount("overlay", place.path, "overlay", SAFE, layers)
    except OSError:
        return False
    finally:
        if below >= 0:
            os.close(below)
    return True


def _is_replaced(place: MountPlace, places: Sequence[MountPlace]) -> bool:
    """True where another folder comes in the place of one above, over what was mounted there before."""
    kinds = mount_places.EMPTIED | {mount_places.INSTEAD}
    return any(one.kind in kinds and place.path.startswith(f"{one.path}/") for one in places)


def _attach(place: MountPlace, opened: int, emptied: list[str]) -> None:
    if place.kind == mount_places.LINK:
        kernel.attach(opened, place.path, kernel.MOUNT_ATTR_RDONLY, 0, link=True)
        return
    is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
    _make(place.path, is_folder=is_folder)
    if place.kind in mount_places.EMPTIED:
        mode = "0755" if place.kind == mount_places.EMPTY else mount_places.CLOSED_MODE
        kernel.mount("tmpfs", place.path, "tmpfs", SAFE, f"mode={mode},size=64k")
        emptied.append(place.path)
        return
    writable = place.kind in {mount_places.WRITABLE, mount_places.INSTEAD}
    kernel.attach(opened, place.path, *((0, kernel.MOUNT_ATTR_RDONLY) if writable else (kernel.MOUNT_ATTR_RDONLY, 0)))


def _make(path: str, *, is_folder: bool) -> None:
    """Create a missing mount point below a folder that was emptied or replaced.

    Raises:
        FileNotFoundError: it is missing elsewhere, so it was removed since the sandbox was planned.
        OSError: it cannot be made.
    """
    if _exists(path):
        return
    folder = path if is_folder else path.rpartition("/")[0]
    try:
        os.makedirs(folder, 0o755, exist_ok=True)
        if not is_folder:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    except OSError as error:
        if error.errno == errno.EROFS:
            raise FileNotFoundError(errno.ENOENT, "it is gone", path) from error
        raise


def _replace_proc() -> None:
    kernel.mount("proc", "/proc", "proc", SAFE | kernel.MS_NOEXEC)
    for path in filter(_exists, (f"/proc/{name}" for name in mount_places.PROC_READ_ONLY)):
        kernel.mount(path, path, "", kernel.MS_BIND | kernel.MS_REC)
        kernel.set_read_only(path, read_only=True)
    for path in filter(_exists, (f"/proc/{name}" for name in PROC_HIDDEN)):
        kernel.mount("/dev/null", path, "", kernel.MS_BIND)


def _exists(path: str) -> bool:
    return os.access(path, os.F_OK)


def _raise_loopback() -> None:
    """Enable 127.0.0.1 in a separate network namespace; test suites use it."""
    import fcntl  # noqa: PLC0415 - only a sandbox without network needs these two
    import socket  # noqa: PLC0415 - as above

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as interface, contextlib.suppress(OSError):
        fcntl.ioctl(interface, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_RUNNING))


def open_door() -> int:
    """A socket that listens for the proxy on the loopback of this namespace.

    Raises:
        OSError: it cannot be had.
    """
    import socket  # noqa: PLC0415 - only a command with hosts needs it

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as door:
        door.bind(("127.0.0.1", DOOR_PORT))
        door.listen(DOOR_BACKLOG)
        return door.detach()


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
