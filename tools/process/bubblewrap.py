"""The same sandbox in the words of `bwrap`, for systems that allow namespaces to it alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tools.process.zygote import mount_places, wire
from tools.process.zygote.mount_places import PROC_READ_ONLY, MountPlace

PROGRAMS = ("/usr/bin/bwrap", "/usr/local/bin/bwrap")


OPEN_DOOR = (
    "import os, socket, sys; door = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=64);"
    " control = socket.socket(fileno=int(sys.argv[2])); socket.send_fds(control, [b'listening\\n'], [door.fileno()]);"
    " control.close(); door.close(); os.execvp(sys.argv[3], sys.argv[3:])"
)


def door_arguments() -> tuple[str, ...]:
    """The command line in front of the command, inside: it hands the listener of the namespace out, and is gone."""
    return (sys.executable, "-I", "-S", "-c", OPEN_DOOR, str(wire.DOOR_PORT), str(wire.DOOR))


def bubblewrap() -> str:
    """The system's own bwrap: AppArmor profiles know it by this path; empty when it is not installed."""
    return next((path for path in PROGRAMS if os.access(path, os.X_OK)), "")


def bubblewrap_arguments(
    program: str,
    seen: tuple[MountPlace, ...],
    working_dir: Path,
    *,
    network: bool,
    writable: bool,
    terminal: bool = False,
) -> list[str]:
    """The command line in front of the command; caches stay read-only, bwrap 0.8 knows no overlays."""
    arguments = [program, "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc"]
    if not terminal:  # a session of its own would lose the terminal that is its own
        arguments.append("--new-session")
    arguments += ["--disable-userns", "--cap-drop", "ALL", "--seccomp", str(wire.FILTER)]
    arguments += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    if not network:
        arguments.append("--unshare-net")
    for name in PROC_READ_ONLY:
        arguments += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    emptied: list[str] = []
    for place in seen:
        arguments += _words(place)
        if place.kind in mount_places.EMPTIED:
            emptied.append(place.path)
    for path in emptied:
        arguments += ["--remount-ro", path]
    if not writable:
        arguments += ["--remount-ro", "/dev"]  # /dev/shm; device nodes are mounts of their own and stay usable
    return [*arguments, "--chdir", str(working_dir.resolve()), "--"]


def _words(place: MountPlace) -> list[str]:
    match place.kind:
        case mount_places.WRITABLE:
            return ["--bind", place.path, place.path]
        case mount_places.READ_ONLY:
            return ["--ro-bind", place.path, place.path]
        case mount_places.INSTEAD:
            return ["--bind", place.source, place.path]
        case mount_places.INSTEAD_READ_ONLY:
            return ["--ro-bind", place.source, place.path]
        case mount_places.EMPTY:
            return ["--perms", "0755", "--tmpfs", place.path]
        case mount_places.CLOSED:
            return ["--perms", mount_places.CLOSED_MODE, "--tmpfs", place.path]
        case mount_places.COPY:
            return ["--ro-bind", place.path, place.path]
        case _:
            return []
