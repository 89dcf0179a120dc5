"""Model servers of this machine that the user has accepted: any user may listen on a port (docs/security.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct

from phoenix_tui.models.servers import ENDPOINTS, LocalServer
from tools.files.own_files import read_regular, write_file

FILE_LIMIT = 64 * 1024


class AcceptedServers(Struct, frozen=True):
    """servers.json: kind and address of each, so that another kind on the same port needs consent again."""

    path: Path

    def split(self, found: Iterable[LocalServer]) -> tuple[tuple[LocalServer, ...], tuple[LocalServer, ...]]:
        """Split servers into accepted ones, and those that wait for the user's consent."""
        accepted = self._read()
        both = [(server, _entry(server.kind.value, server.base_url) in accepted) for server in found]
        return tuple(one for one, yes in both if yes), tuple(one for one, yes in both if not yes)

    def accept(self, reference: str) -> None:
        """Remember that the user chose a model of this server; other models than those of known servers do nothing.

        Raises:
            OSError: it cannot be written.
        """
        kind = reference.partition("/")[0]
        address = next((one.base_url for one in ENDPOINTS if one.kind.value == kind), "")
        accepted = self._read()
        if address and _entry(kind, address) not in accepted:
            entries = sorted({*accepted, _entry(kind, address)})
            write_file(self.path, json.dumps({"accepted": entries}, indent=1) + "\n")

    def _read(self) -> frozenset[str]:
        """Entries of the file; an invalid file accepts nothing."""
        try:
            document: object = json.loads(read_regular(self.path, FILE_LIMIT) or b"{}")
        except (ValueError, RecursionError):
            return frozenset()
        listed = cast("dict[str, object]", document).get("accepted") if isinstance(document, dict) else None
        entries = cast("Sequence[object]", listed) if isinstance(listed, list) else ()
        return frozenset(one for one in entries if isinstance(one, str))


def _entry(kind: str, address: str) -> str:
    return f"{kind} {address}"
