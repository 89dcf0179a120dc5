"""Covers over hidden paths of a workspace, put on again where a program outside replaces what they cover.

The kernel takes a mount away once another entry comes in the place of the covered one: most editors write a new file
and rename it. The first process of a sandbox sees the new entry come, and still has the right to mount.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time

from tools.process.zygote import kernel, mount_places

READ = 64 * 1024
REST = 0.01
"""Seconds between two reads while a command makes many other files: each read wakes a process."""
EVENT = 16
"""Bytes of an event before its name (inotify(7)); the last four of them are the length of the name."""


class Covers:
    """The covered paths of one sandbox."""

    def __init__(self) -> None:
        self.events = -1
        """Descriptor that becomes readable when an entry came beside one of them; -1 for none."""
        self._sources: dict[str, int] = {}
        self._marks: dict[str, tuple[int, int]] = {}
        self._passed = 0.0
        """Monotonic time at which the last entries came that are none of them."""

    def add(self, path: str, source: int) -> None:
        """See to a path that was just covered with the file at the descriptor `source`, or with a closed folder.

        Raises:
            OSError: its folder cannot be watched.
        """
        if self.events < 0:
            self.events = kernel.open_events()
        kernel.watch_folder(self.events, path.rpartition("/")[0] or "/")
        self._sources[path] = source
        self._marks[path] = _mark(os.lstat(path))

    def renew(self) -> None:
        """Cover what came in the place of covered paths."""
        came = self._names_that_came()
        found = [path for path in self._sources if came is None or path.rpartition("/")[2] in came]
        for path in found:
            with contextlib.suppress(OSError):  # it is gone again
                self._cover(path)
        if not found:
            now = time.monotonic()
            if now - self._passed < REST:
                time.sleep(REST)
            self._passed = now

    def _names_that_came(self) -> set[str] | None:
        """Names of new entries; None where there were more than the kernel keeps."""
        found: set[str] = set()
        with contextlib.suppress(BlockingIOError):
            data, at = os.read(self.events, READ), 0
            while at < len(data):
                name = at + EVENT
                at = name + int.from_bytes(data[name - 4 : name], sys.byteorder)
                found.add(os.fsdecode(data[name:at].rstrip(b"\0")))
        return None if "" in found else found

    def _cover(self, path: str) -> None:
        status = os.lstat(path)
        if _mark(status) == self._marks[path]:
            return
        if stat.S_ISDIR(status.st_mode):
            held = kernel.hold(path)
            try:
                options = f"mode={mount_places.CLOSED_MODE},size=64k"
                flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_RDONLY
                kernel.mount("tmpfs", f"/proc/self/fd/{held}", "tmpfs", flags, options)
            finally:
                os.close(held)
        else:
            is_link = stat.S_ISLNK(status.st_mode)
            kernel.attach(self._sources[path], path, kernel.MOUNT_ATTR_RDONLY, 0, link=is_link)
        self._marks[path] = _mark(os.lstat(path))


def _mark(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
