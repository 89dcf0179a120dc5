"""Models that the user marked, and those chosen last."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from tools.files.own_files import read_regular, write_file

FILE_NAME: Final = "chosen-models.json"
"""Name of the file in the folder of states."""
MOST_RECENT: Final = 5
MOST_FAVOURITES: Final = 100
FILE_LIMIT: Final = 256 * 1024
LONGEST: Final = 500
"""Characters of a reference."""


class _Shelf(Struct):
    favourites: list[str] = field(default_factory=list[str])
    recent: list[str] = field(default_factory=list[str])


class ModelShelf(Struct, eq=False):
    """References in one private file, read each time, since other processes write it; without a path, in memory."""

    path: Path | None = None
    _kept: _Shelf = field(default_factory=_Shelf)

    def favourites(self) -> list[str]:
        """Favourites, in the order in which they were marked."""
        return self._read().favourites

    def recent(self) -> list[str]:
        """The models chosen last, newest first."""
        return self._read().recent

    def toggle(self, reference: str) -> bool:
        """Mark a model, or take its mark away; True when it is a favourite now. Raises OSError."""
        kept = self._read()
        is_marked = reference in kept.favourites
        others = [one for one in kept.favourites if one != reference]
        self._write(_Shelf(others if is_marked else [*others, reference][-MOST_FAVOURITES:], kept.recent))
        return not is_marked

    def used(self, reference: str) -> None:
        """Remember a choice. Raises OSError."""
        kept = self._read()
        others = [one for one in kept.recent if one != reference]
        self._write(_Shelf(kept.favourites, [reference, *others][:MOST_RECENT]))

    def _read(self) -> _Shelf:
        if self.path is None:
            return self._kept
        try:
            kept = msgspec.json.decode(read_regular(self.path, FILE_LIMIT) or b"{}", type=_Shelf)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _Shelf()
        return _Shelf(*([one for one in names if len(one) <= LONGEST] for names in (kept.favourites, kept.recent)))

    def _write(self, kept: _Shelf) -> None:
        self._kept = kept
        if self.path is not None:
            write_file(self.path, msgspec.json.encode(kept))
