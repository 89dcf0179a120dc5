"""Linux calls that Python does not wrap, by number."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

ARGUMENTS = 45
ENVIRONMENT = 47
"""Fields of /proc/self/stat behind the name (proc(5), less three): where a block begins; its end comes next."""

M_ARENA_MAX = -8
"""Parameter of mallopt(3)."""

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 1
MOVE_MOUNT_F_EMPTY_PATH = 0x04
MOVE_MOUNT_T_EMPTY_PATH = 0x40
RESOLVE_NO_SYMLINKS = 0x04
IN_MOVED_TO = 0x80
IN_CREATE = 0x100
IN_MASK_ADD = 0x20000000
MOUNT_ATTR_RDONLY = 1
MOUNT_ATTR_NOSUID = 2
MOUNT_ATTR_NODEV = 4

# The same numbers on every architecture: these calls are younger than the common table.
SYS_OPEN_TREE = 428
SYS_MOVE_MOUNT = 429
SYS_OPENAT2 = 437
SYS_MOUNT_SETATTR = 442
CAPABILITY_VERSION_3 = 0x20080522
LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def check_result(result: int) -> int:
    """Give `result` back.

    Raises:
        OSError: the call failed.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def syscall(number: int, *arguments: object) -> int:
    """Make a system call by its number; raises OSError when it fails."""
    return check_result(int(_libc.syscall(ctypes.c_long(number), *arguments)))


def prctl(option: int, value: int = 0) -> None:
    """Set one attribute of this process."""
    zero = ctypes.c_ulong(0)
    check_result(int(_libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero)))


def prctl_pointer(option: int, value: int, pointer: object) -> None:
    """Call `prctl` with an option that takes a structure."""
    zero = ctypes.c_ulong(0)
    check_result(int(_libc.prctl(option, ctypes.c_ulong(value), pointer, zero, zero)))


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags`."""
    check_result(int(_libc.unshare(flags)))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount `source` on `target`."""
    check_result(
        int(
            _libc.mount(
                os.fsencode(source),
                os.fsencode(target),
                os.fsencode(kind),
                ctypes.c_ulong(flags),
                os.fsencode(options),
            )
        )
    )


def hold(path: str, *, link: bool = False) -> int:
    """Open `path` as a descriptor with no link in any part: another command could have put one there.

    With `link` the last part may be one, and is held itself.

    Raises:
        OSError: it is gone, or there is a link.
    """
    how = _OpenHow(os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if link else 0), 0, RESOLVE_NO_SYMLINKS)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    return syscall(SYS_OPENAT2, ctypes.c_int(AT_FDCWD), os.fsencode(path), ctypes.byref(how), size)


def attach(held: int, path: str, added: int, cleared: int, *, link: bool = False) -> None:
    """Mount a held entry at `path` too, with these attributes of the new mount; `link` as for `hold`.

    Raises:
        OSError: it cannot be shown there.
    """
    flags = ctypes.c_uint(OPEN_TREE_CLONE | AT_RECURSIVE | AT_EMPTY_PATH | os.O_CLOEXEC)
    tree = syscall(SYS_OPEN_TREE, ctypes.c_int(held), b"", flags)
    try:
        _set_attributes(tree, b"", added, cleared, AT_EMPTY_PATH)
        target = hold(path, link=link)
        try:
            how = ctypes.c_uint(MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH)
            syscall(SYS_MOVE_MOUNT, ctypes.c_int(tree), b"", ctypes.c_int(target), b"", how)
        finally:
            os.close(target)
    finally:
        os.close(tree)


def open_events() -> int:
    """A descriptor that tells of changes in folders (inotify(7)).

    Raises:
        OSError: this user has as many as the kernel allows.
    """
    return check_result(int(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)))


def watch_folder(events: int, path: str) -> None:
    """Have `events` tell of each entry that comes in a folder; raises OSError where it cannot."""
    mask = ctypes.c_uint32(IN_MOVED_TO | IN_CREATE | IN_MASK_ADD)
    check_result(int(_libc.inotify_add_watch(events, os.fsencode(path), mask)))


def set_read_only(target: str, *, read_only: bool) -> None:
    """Make one mount refuse writes, or accept them again."""
    set_attributes(target, *((MOUNT_ATTR_RDONLY, 0) if read_only else (0, MOUNT_ATTR_RDONLY)))


def set_attributes(target: str, added: int, cleared: int = 0, *, recursive: bool = False) -> None:
    """Add and clear attributes of a mount, or of all below it."""
    _set_attributes(AT_FDCWD, os.fsencode(target), added, cleared, AT_RECURSIVE if recursive else 0)


def _set_attributes(folder: int, path: bytes, added: int, cleared: int, flags: int) -> None:
    change = _MountAttributes()
    change.set = added
    change.clear = cleared
    syscall(
        SYS_MOUNT_SETATTR,
        ctypes.c_int(folder),
        path,
        ctypes.c_uint(flags),
        ctypes.byref(change),
        ctypes.c_size_t(ctypes.sizeof(change)),
    )


def drop_capabilities() -> None:
    """Give up every capability, for good: an exec, setuid or not, brings none back."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # beyond the kernel's last one
            break
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    empty = (ctypes.c_uint32 * 6)()
    check_result(int(_libc.capset(ctypes.byref(header), ctypes.byref(empty))))


def use_one_heap() -> None:
    """Let every thread allocate from one heap, where the C library offers it (glibc).

    One heap for each thread would be half used: the interpreter's lock lets one thread allocate.
    """
    tell = getattr(_libc, "mallopt", None)
    if tell is not None:
        tell(M_ARENA_MAX, 1)


def rename_process(name: str) -> None:
    """Show `name` instead of the interpreter in `ps`, so that `pkill python` passes by."""
    title = ctypes.create_string_buffer(name.encode()[:15])
    _libc.prctl(PR_SET_NAME, title, ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    start, end = _block(ARGUMENTS)
    if 0 < start < end:
        shown = name.encode()[: end - start - 1]
        ctypes.memmove(start, shown.ljust(end - start, b"\0"), end - start)


def hide_in_environment(is_secret: Callable[[str], bool]) -> None:
    """Blank the values of these names where `/proc/<pid>/environ` shows them, which root may read whatever else is set.

    The values stay visible to this process and the programs it starts.
    """
    start, end = _block(ENVIRONMENT)
    place = start
    for entry in ctypes.string_at(start, end - start).split(b"\0") if 0 < start < end else ():
        name, _, value = entry.partition(b"=")
        if value and is_secret(os.fsdecode(name)):
            if name in os.environb:
                os.environb[name] = os.environb[name]  # from here on the C library has its own copy
            ctypes.memset(place + len(name) + 1, ord("*"), len(value))
        place += len(entry) + 1


def _block(field: int) -> tuple[int, int]:
    """Bounds of a memory area of this process as the kernel shows them: its first byte and the one behind it."""
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    return int(fields[field]), int(fields[field + 1])
