"""The tree of processes below one process: looking at it, freezing it, killing it (FAULTS 3.1)."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

READ_SIZE = 65536
NAME_LIMIT = 60
ONE_THREAD = 3
"""Links of the folder of one thread: listing the folder would cost as much as all the rest of a look."""
FREEZE_ROUNDS = 64
"""Walks that may each find something new; after them, kill the frozen processes and look again."""
ROOM_ROUNDS = 8
"""The same for processes that leave a processor; the next look finds the rest."""


def read_proc(path: str) -> bytes:
    """The beginning of a file under /proc; empty when the process is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, READ_SIZE)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def children(pid: int) -> list[int]:
    """The children of every thread of `pid`, zombies included."""
    found: list[int] = []
    for name in threads_of(pid):
        found += map(int, read_proc(f"/proc/{pid}/task/{name}/children").split())
    return found


def threads_of(pid: int) -> list[str]:
    """Ids of the threads of `pid`; none where it is gone."""
    tasks = f"/proc/{pid}/task"
    try:
        if os.stat(tasks).st_nlink == ONE_THREAD:
            return [str(pid)]
        with os.scandir(tasks) as threads:
            return [thread.name for thread in threads]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, parents before their children."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children(waiting.pop())
        found += below
        waiting += below
    return found


def start_ticks(pid: int) -> int:
    """Start of `pid` in clock ticks since boot; 0 when it is gone."""
    fields = read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[19]) if len(fields) > 19 else 0


def name_of(pid: int) -> str:
    """A command line short enough for one line of text; empty for a zombie."""
    stat = read_proc(f"/proc/{pid}/stat")
    after = stat.rpartition(b")")[2].split()
    if not after or after[0] in {b"Z", b"X"}:
        return ""
    words = read_proc(f"/proc/{pid}/cmdline").replace(b"\0", b" ").strip()
    comm = stat.partition(b"(")[2].rpartition(b")")[0]
    text = (words or comm).decode("utf-8", "replace")
    line = "".join(char if char.isprintable() else " " for char in text)
    return line if len(line) <= NAME_LIMIT else line[: NAME_LIMIT - 1] + "…"


PORTS_LIMIT = 4
SOCKETS_LIMIT = 256
"""Descriptors of a process that are looked at for its ports."""
LISTENING = b"0A"


def short_name(pid: int) -> str:
    """The name that the kernel keeps of `pid`; empty for a zombie and where it is gone."""
    stat = read_proc(f"/proc/{pid}/stat")
    state = stat.rpartition(b")")[2].split()[:1]
    if not state or state[0] in {b"Z", b"X"}:
        return ""
    name = stat.partition(b"(")[2].rpartition(b")")[0].decode("utf-8", "replace")
    return "".join(char for char in name if char.isprintable())


def listening_ports(pid: int) -> list[int]:
    """TCP ports that `pid` listens on, the lowest few."""
    held: set[bytes] = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd")[:SOCKETS_LIMIT]:
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                if target.startswith("socket:["):
                    held.add(target[len("socket:[") : -1].encode())
    if not held:
        return []
    ports: set[int] = set()
    for table in ("tcp", "tcp6"):
        for line in read_proc(f"/proc/{pid}/net/{table}").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == LISTENING and fields[9] in held:
                ports.add(int(fields[1].rpartition(b":")[2], 16))
    return sorted(ports)[:PORTS_LIMIT]


def reads_own_output(pid: int, pipe: int) -> bool:
    """True when `pid` waits for keys on the pipe it writes to, as vi does when its input has ended."""
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{pid}/fd/0").st_ino == pipe
    return False


def send(pid: int, number: int) -> None:
    """Signal `pid`; one that is gone, or not ours to signal, is no error: the caller sees that it stays."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def leave_room(root: int) -> bool:
    """Keep everything below `root`, and what it starts, off one processor, so that keys are answered there.

    False where there is only one.

    The scheduler shares processors by session: where a command has made 256 sessions, Phoenix has the 257th part of
    them. Neither weight nor priority of those can be changed without privileges; their processors can, and a child
    inherits them.
    """
    if not hasattr(os, "sched_setaffinity"):
        return True  # how many there are is not known
    usable = os.sched_getaffinity(0)
    others = usable - {min(usable)}
    moved: set[int] = set()
    for _ in range(ROOM_ROUNDS if others else 0):
        before = len(moved)
        waiting = [root]
        while waiting:
            below = children(waiting.pop())
            for pid in below:
                if pid not in moved:
                    moved.add(pid)
                    for thread in threads_of(pid):
                        with contextlib.suppress(OSError):
                            os.sched_setaffinity(int(thread), others)
            waiting += below
        if len(moved) == before:
            break
    return bool(others)


def freeze(root: int, spare: frozenset[int] = frozenset()) -> set[int]:
    """Stop everything below `root` until a walk finds nothing new.

    A process is stopped before its children are read, and a stopped parent reaps no child, so no pid seen here can be
    reused before it is signalled (FAULTS 20).
    """
    frozen: set[int] = set()
    for _ in range(FREEZE_ROUNDS):
        before = len(frozen)
        waiting = [root]
        while waiting:
            for pid in children(waiting.pop()):
                if pid in spare:
                    continue
                if pid not in frozen:
                    frozen.add(pid)
                    send(pid, signal.SIGSTOP)
                waiting.append(pid)
        if len(frozen) == before:
            break
    return frozen


def kill_below(
    root: int, spare: frozenset[int] = frozenset(), look: Callable[[set[int]], None] | None = None
) -> set[int]:
    """Freeze and kill all processes below `root` once; unreaped ones show in the next walk.

    `look` is called with the frozen ones.
    """
    frozen = freeze(root, spare)
    if look is not None:
        look(frozen)
    for pid in frozen:
        send(pid, signal.SIGKILL)
    return frozen
