"""Models that the user marked as favourites, and those chosen last."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from phoenix_tui.config.file_lock import locked
from tools.files.own_files import read_regular, write_file

FILE_NAME: Final = "preferred-models.json"
"""Name of the file in the folder of states."""
MOST_RECENT: Final = 5
MOST_FAVOURITES: Final = 100
FILE_LIMIT: Final = 256 * 1024
"""Bytes of the file; a larger one is read as none."""
LONGEST: Final = 500
"""Characters of a reference."""


class Preferred(Struct):
    """References of models: favourites in the order of their marks, recent ones with the newest first."""

    favourites: list[str] = field(default_factory=list[str])
    recent: list[str] = field(default_factory=list[str])


class PreferredModels(Struct, eq=False):
    """One private file, read each time and changed under a lock, since other processes write it too; without a path, in
    memory.
    """

    path: Path | None = None
    _kept: Preferred = field(default_factory=Preferred)

    def read(self) -> Preferred:
        """Both lists; a file that is broken, too large or unreadable has none."""
        if self.path is None:
            return self._kept
        try:
            found = msgspec.json.decode(read_regular(self.path, FILE_LIMIT) or b"{}", type=Preferred)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return Preferred()
        return Preferred(_valid(found.favourites, MOST_FAVOURITES), _valid(found.recent, MOST_RECENT))

    def toggle(self, reference: str) -> bool:
        """Mark a model, or take its mark away; True when it is a favourite now. Raises OSError; for threads."""
        if self.path is None:
            return self._toggle(reference)
        with locked(self.path):
            return self._toggle(reference)

    def used(self, reference: str, before: str = "") -> None:
        """Remember a choice, and the model in use before it. Raises OSError; for threads."""
        if self.path is None:
            self._use(reference, before)
            return
        with locked(self.path):
            self._use(reference, before)

    def _toggle(self, reference: str) -> bool:
        kept = self.read()
        others = [one for one in kept.favourites if one != reference]
        is_marked = len(others) < len(kept.favourites)
        self._write(Preferred(others if is_marked else [*others, reference], kept.recent))
        return not is_marked

    def _use(self, reference: str, before: str) -> None:
        kept = self.read()
        self._write(Preferred(kept.favourites, [reference, before, *kept.recent]))

    def _write(self, kept: Preferred) -> None:
        kept = Preferred(_valid(kept.favourites, MOST_FAVOURITES, newest_last=True), _valid(kept.recent, MOST_RECENT))
        self._kept = kept
        if self.path is not None:
            write_file(self.path, msgspec.json.encode(kept))


def can_be_kept(reference: str) -> bool:
    """True for PROVIDER/MODEL of printable characters that is not too long."""
    return "/" in reference and len(reference) <= LONGEST and reference.isprintable()


def _valid(references: list[str], most: int, *, newest_last: bool = False) -> list[str]:
    """At most so many references, each once."""
    found = [one for one in dict.fromkeys(references) if can_be_kept(one)]
    return found[-most:] if newest_last else found[:most]
