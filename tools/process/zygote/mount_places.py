"""Terms for the view of a sandboxed command at a path; the planner writes them, the mechanisms carry them out."""

from __future__ import annotations

READ_ONLY = "read-only"
"""The existing entry, for reading."""
WRITABLE = "writable"
"""The existing entry, for writing too."""
EMPTY = "empty"
"""An empty folder."""
CLOSED = "closed"
"""An empty folder in which no name can be looked up: git takes what is tracked there for unreadable, not removed."""
INSTEAD = "instead"
"""Another folder, for writing."""
INSTEAD_READ_ONLY = "instead-read-only"
"""Another file or folder, for reading."""
LINK = "link"
"""The existing symbolic link, which can be neither removed nor replaced."""
COPY = "copy"
"""The existing entry; changes go to the folder `upper` in `source` and nowhere else."""

PROC_READ_ONLY = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "asound", "tty", "mtrr")
"""Parts of /proc that belong to the machine; root may write some of them without any capability."""

CLOSED_MODE = "0444"
"""Mode of a closed folder: a walk lists nothing and goes on."""
EMPTIED = frozenset({EMPTY, CLOSED})
FROM_THERE = frozenset({READ_ONLY, WRITABLE, COPY, LINK})


class MountPlace:
    """One path of the sandbox; a plain class because `dataclasses` costs the zygote 15 ms."""

    __slots__ = ("kind", "path", "source")

    def __init__(self, kind: str, path: str, source: str = "") -> None:
        self.kind = kind
        self.path = path
        self.source = source

    def __repr__(self) -> str:
        return f"Place({self.kind!r}, {self.path!r}, {self.source!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MountPlace) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash(self.fields())

    def fields(self) -> tuple[str, str, str]:
        """The place as it travels."""
        return (self.kind, self.path, self.source)
