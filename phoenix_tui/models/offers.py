"""Models on offer: lists of providers kept on disk, and the user's favourites and recent ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from engine.ports import ModelInfo
from phoenix_tui.config.paths import lock_file
from tools.files.own_files import read_regular, write_file

CACHE_SECONDS: Final = 24 * 3600.0
LISTS_FILE: Final = "model-lists.json"
"""Name of the file in the folder of states."""
FILE_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of the file; a larger one is read as none."""


class ProviderState(StrEnum):
    """State of a provider, in the words of the list."""

    READY = "ready"
    NO_KEY = "no key"
    UNREACHABLE = "unreachable"
    ASKING = "asking"
    """Not asked yet, though it has a key."""


class ProviderOffer(Struct, frozen=True):
    """One provider with its models; `words` say where its key is from, or which variable has to be set."""

    name: str
    state: ProviderState
    words: str = ""
    models: tuple[ModelInfo, ...] = ()
    is_expected: bool = True
    """False for a server of this machine that the user did not name, and for installed models: there may be none."""


class KeptList(Struct, frozen=True):
    """The list of one provider as it was read."""

    at: float
    """Wall clock."""
    address: str
    models: tuple[ModelInfo, ...]


class KeptLists(Struct, eq=False):
    """The newest list of each provider in one private file; without a path, in memory."""

    path: Path | None = None
    clock: Callable[[], float] = time.time
    _lists: dict[str, KeptList] | None = None

    def of(self, provider: str, address: str, *, stale: bool = False) -> Sequence[ModelInfo] | None:
        """The list of a provider at this address, read within a day, or with `stale` ever; None where there is none."""
        kept = self._read().get(provider)
        if kept is None or kept.address != address:
            return None
        age = self.clock() - kept.at
        return kept.models if stale or 0 <= age < CACHE_SECONDS else None

    def load(self) -> None:
        """Read the file; 8 MB take 40 ms, so for threads."""
        self._read()

    def keep(self, provider: str, address: str, models: Sequence[ModelInfo]) -> None:
        """Store a list; a file that cannot be written keeps it for this process alone.

        Other processes write the same file, and a process several lists at a time.
        """
        mine = {provider: KeptList(self.clock(), address, tuple(models))}
        if self.path is None:
            self._lists = self._read() | mine
            return
        try:
            with lock_file(self.path):
                self._lists = lists = self._on_disk(self.path) | mine
                write_file(self.path, msgspec.json.encode(lists))
        except OSError:
            self._lists = self._read() | mine

    def _read(self) -> dict[str, KeptList]:
        if self._lists is None:
            self._lists = self._on_disk(self.path) if self.path is not None else {}
        return self._lists

    def _on_disk(self, path: Path) -> dict[str, KeptList]:
        try:
            return msgspec.json.decode(read_regular(path, FILE_LIMIT) or b"{}", type=dict[str, KeptList])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return {}


FILE_NAME: Final = "preferred-models.json"
"""Name of the file in the folder of states."""
MOST_RECENT: Final = 5
MOST_FAVOURITES: Final = 100
PREFERRED_LIMIT: Final = 256 * 1024
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
            found = msgspec.json.decode(read_regular(self.path, PREFERRED_LIMIT) or b"{}", type=Preferred)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return Preferred()
        return Preferred(_valid(found.favourites, MOST_FAVOURITES), _valid(found.recent, MOST_RECENT))

    def toggle(self, reference: str) -> bool:
        """Mark a model, or take its mark away; True when it is a favourite now. Raises OSError; for threads."""
        if self.path is None:
            return self._toggle(reference)
        with lock_file(self.path):
            return self._toggle(reference)

    def note_use(self, reference: str, before: str = "") -> None:
        """Remember a choice, and the model in use before it. Raises OSError; for threads."""
        if self.path is None:
            self._use(reference, before)
            return
        with lock_file(self.path):
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
