"""Lists of servers from earlier connections: a first request offers their tools without waiting for a connection."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tools.files.own_files import read_file, write_file
from tools.mcp_host.protocol import Item

MOST_BYTES: Final = 16 * 1024 * 1024
MOST_ENTRIES: Final = 100
"""Servers whose lists are kept; those that were seen longest ago go first."""


class Catalogue(Struct, frozen=True, omit_defaults=True):
    """Lists of one server, cleaned and bounded by the helper."""

    tools: list[Item] = []
    prompts: list[Item] = []
    instructions: str = ""
    has_resources: bool = False
    before: dict[str, str] = {}
    """Descriptions, by tool, from before a change that no call has shown yet."""


class CatalogueCache(Struct, eq=False):
    """The file `mcp_cache.json`, 0600; its methods touch the disk and belong in a thread."""

    path: Path
    _kept: dict[str, Catalogue] | None = None

    def get(self, key: str) -> Catalogue | None:
        """The lists of a server as they were last; None where it was never connected, or the file is damaged."""
        if self._kept is None:
            self._kept = self._read()
        return self._kept.get(key)

    def put(self, key: str, catalogue: Catalogue) -> None:
        """Keep lists, beside those that other processes have kept meanwhile."""
        if self.get(key) == catalogue:
            return
        entries = self._read()
        entries.pop(key, None)
        entries[key] = catalogue
        while len(entries) > MOST_ENTRIES:
            del entries[next(iter(entries))]
        self._kept = entries
        content = msgspec.json.encode(entries)
        if len(content) <= MOST_BYTES:
            with contextlib.suppress(OSError):  # the next start waits for the connection instead
                write_file(self.path, content)

    def _read(self) -> dict[str, Catalogue]:
        try:
            return msgspec.json.decode(read_file(self.path, MOST_BYTES, follow=False), type=dict[str, Catalogue])
        except (OSError, msgspec.MsgspecError, RecursionError):
            return {}
