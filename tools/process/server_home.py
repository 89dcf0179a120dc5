"""Home folder of a server: a folder of its own that lasts, in which the user's dot folders lie below layers.

A server writes what it remembers beside its program, in a cache or anywhere below the home folder. None of that may
change what runs outside of the sandbox, and all of it is there at its next start. New entries of the home folder are
ordinary files of the server's folder, so processes of one server share them. A dot folder that the user has is seen
through a layer, which one mount at a time can have: a further process gets layers that end with it, over the lasting
ones.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.process.scratch import is_too_large
from tools.process.zygote import mount_places
from tools.process.zygote.mount_places import MountPlace

MOST_ENTRIES: Final = 300
"""Entries of a home folder that a server sees; each is a mount."""
IN_USE: Final = "another process of this server runs: what this one writes into folders that you have is not kept"
TOO_LARGE: Final = "what this server keeps is above 4 GB: nothing more is kept until it is removed in /mcp"
LOWER: Final = "lower"
"""Link beside a layer to the lasting one below it."""


class ServerHome(Struct, eq=False):
    """The kept folder of one server, lent to a process of it. Touches the disk."""

    base: Path
    layers: Path
    """Folder of the layers of this process."""
    descriptor: int = -1
    """Holds the lock of the lasting layers; -1 where another process has it."""
    note: str = ""

    @classmethod
    def open(cls, base: Path, passing: Path) -> ServerHome:
        """Lend the folder `base`, made if need be; `passing` has the layers that end with the process.

        Raises:
            OSError: it cannot be made.
        """
        for folder in (base / "plain", base / "layers"):
            folder.mkdir(0o700, parents=True, exist_ok=True)
        descriptor = os.open(base / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return cls(base, passing, note=IN_USE)
        if is_too_large(base):
            os.close(descriptor)
            return cls(base, passing, note=TOO_LARGE)
        return cls(base, base / "layers", descriptor)

    def close(self) -> None:
        """Give it back."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def places(self, home: Path, hidden: Sequence[Path], shown: Sequence[Path]) -> Iterator[MountPlace]:
        """Places of the home folder, without `hidden` ones and the kept folders of all servers, with `shown` folders
        that have no leading dot.
        """
        yield from self._folder(home, home, (*hidden, self.base.parent), [MOST_ENTRIES])
        yield from (self.layer(path) for path in shown if path.is_relative_to(home) and path != home)

    def layer(self, path: Path) -> MountPlace:
        """A folder below a layer of this server."""
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:24]
        made = self.layers / name
        for part in ("upper", "work"):
            (made / part).mkdir(0o700, parents=True, exist_ok=True)
        lasting = self.base / "layers" / name / "upper"
        if self.descriptor < 0 and lasting.is_dir() and not os.path.lexists(made / LOWER):
            (made / LOWER).symlink_to(lasting)
        return MountPlace(mount_places.COPY, str(path), str(made))

    def _folder(self, home: Path, folder: Path, hidden: Sequence[Path], budget: list[int]) -> Iterator[MountPlace]:
        """A folder of the server in the place of `folder`, and the entries of that in it."""
        mine = self.base / "plain" / folder.relative_to(home)
        mine.mkdir(0o700, parents=True, exist_ok=True)
        yield MountPlace(mount_places.INSTEAD, str(folder), str(mine))
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                path = Path(entry.path)
                if (folder == home and not entry.name.startswith(".")) or path in hidden or not budget[0]:
                    continue
                budget[0] -= 1
                if entry.is_symlink():
                    with contextlib.suppress(OSError):
                        (mine / entry.name).symlink_to(os.readlink(path))
                elif entry.is_dir() and self.base.is_relative_to(path):
                    yield from self._folder(home, path, hidden, budget)  # no layer can lie over its own files
                elif entry.is_dir():
                    yield self.layer(path)
                elif entry.is_file():
                    yield MountPlace(mount_places.READ_ONLY, str(path))
