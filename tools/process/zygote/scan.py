"""Best effort where there is no subreaper (macOS, other POSIX): remember whatever `ps` once showed in the tree.

A process that forks, leaves its session and loses its parent between two looks is missed (FAULTS 3.7).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket

from tools.process.zygote.supervisor import Supervisor
from tools.process.zygote.tree import send
from tools.process.zygote.wire import Streams

LOOK_AGAIN = 0.2
COLUMNS = "pid=,ppid=,pgid=,stat=,lstart=,command="
START_WORDS = 5
FREEZE_ROUNDS = 8
NAME_LIMIT = 60


class SeenProcess:
    """One line of `ps`."""

    __slots__ = ("command", "group", "parent", "pid", "started", "zombie")

    def __init__(self, line: str) -> None:
        pid, parent, group, state, *rest = line.split(None, 4 + START_WORDS)
        self.pid = int(pid)
        self.parent = int(parent)
        self.group = int(group)
        self.zombie = state.startswith("Z")
        self.started = " ".join(rest[:START_WORDS])
        self.command = (rest[START_WORDS] if len(rest) > START_WORDS else "")[:NAME_LIMIT]


class ScanningSupervisor(Supervisor):
    """A supervisor that knows its tree from looking, not from the kernel."""

    look_again = LOOK_AGAIN
    looks_when_woken = True

    def __init__(self, control: socket.socket, streams: Streams) -> None:
        super().__init__(control, streams)
        self._known: dict[int, str] = {}
        """Pid to start time: a reused pid has another one."""

    def look_later(self, pause: float) -> float:
        """Return the same pause: a process not seen in time is lost."""
        return pause

    def anything_left(self) -> bool:
        """True while a process once seen in the tree is alive."""
        return super().anything_left() or bool(self._living())

    def pids_below(self) -> list[int]:
        """Every known pid that lives."""
        return [process.pid for process in self._living()]

    def names_below(self) -> list[str]:
        """Command lines of the living processes."""
        return [process.command for process in self._living()]

    def kill_once(self) -> set[int]:
        """Stop the visible processes until no new one appears, then kill them."""
        stopped: set[int] = set()
        for _ in range(FREEZE_ROUNDS):
            fresh = {process.pid for process in self._living()} - stopped
            if not fresh:
                break
            for pid in fresh:
                send(pid, signal.SIGSTOP)
            stopped |= fresh
        for pid in stopped:
            send(pid, signal.SIGKILL)
        return stopped

    def _living(self) -> list[SeenProcess]:
        table = [process for process in list_processes() if not process.zombie]
        ours = [process for process in table if self._known.get(process.pid) == process.started]
        known = {os.getpid(), *(process.pid for process in ours)}
        groups = {process.group for process in ours}
        grew = True
        while grew:
            grew = False
            for process in table:
                if process.pid not in known and (process.parent in known or process.group in groups):
                    known.add(process.pid)
                    groups.add(process.group)
                    ours.append(process)
                    grew = True
        self._known = {process.pid: process.started for process in ours}
        return ours


def list_processes() -> list[SeenProcess]:
    """All processes that `ps` shows, itself left out; empty when it cannot be run."""
    reader, writer = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1)]
    try:
        pid = os.posix_spawnp("ps", ["ps", "-axo", COLUMNS], {"PATH": os.defpath, "LC_ALL": "C"}, file_actions=actions)
    except OSError:
        os.close(reader)
        os.close(writer)
        return []
    os.close(writer)
    with os.fdopen(reader, "r", encoding="utf-8", errors="replace") as table:
        lines = table.read().splitlines()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    return [process for line in lines if (process := SeenProcess(line)).pid != pid]
