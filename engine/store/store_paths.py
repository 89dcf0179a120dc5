"""Paths of a store's files; only `tools/files/own_files.py` creates them (FAULTS 69)."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from engine.store.remains import Remains


class StorePaths(Struct, frozen=True):
    """The database file and the folders beside it, made when missing, and folders whose files go with conversations."""

    database: Path
    attachments: Path
    locks: Path
    backups: Path
    remains: Remains = Remains()

    @classmethod
    def under(cls, folder: Path) -> StorePaths:
        """All of it in one folder."""
        return cls(folder / "phoenix.db", folder / "attachments", folder / "locks", folder / "backups")
