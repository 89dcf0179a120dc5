"""Models on offer by provider, and lists of models kept for a day, so that a choice needs no network."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from engine.ports import ModelInfo
from phoenix_tui.config.file_lock import locked
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
            with locked(self.path):
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
