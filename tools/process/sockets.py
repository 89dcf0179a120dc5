"""Unix sockets of the machine: each leads to a program that runs outside the sandbox."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

TABLE: Final = Path("/proc/net/unix")
FOLDERS: Final = ("/run", "/var/run")
KEPT: Final = (
    "/run/systemd/resolve/resolv.conf",
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/resolvconf/resolv.conf",
    "/run/NetworkManager/resolv.conf",
    "/run/connman/resolv.conf",
    "/run/current-system",
    "/run/opengl-driver",
)
"""Needed entries of the folders of sockets that are no sockets: names of servers, and the programs of NixOS."""


def socket_folders() -> tuple[Path, ...]:
    """Folders that programs at work keep their sockets in."""
    return tuple(Path(folder) for folder in FOLDERS if Path(folder).is_dir() and not Path(folder).is_symlink())


def bound_sockets() -> tuple[Path, ...]:
    """Paths of all listening sockets that are named by an absolute path."""
    try:
        lines = TABLE.read_text("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return ()
    named = {fields[7] for line in lines if len(fields := line.split(maxsplit=7)) == 8}
    return tuple(Path(name) for name in sorted(named) if name.startswith("/") and _is_socket(name))


def _is_socket(name: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(name).st_mode) and os.path.realpath(name) == name
    except OSError:
        return False
