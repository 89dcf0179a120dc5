"""Servers and files of this machine that the user accepted, found again before the screen opens."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.config.paths import Paths
from phoenix_tui.models.choice import ModelFacts
from phoenix_tui.models.known import KNOWN_MODELS, own_file
from phoenix_tui.models.servers import ENDPOINTS, LocalServer, discover_local_servers
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


KNOCK: Final = 0.02
"""Seconds for a connection on loopback; a closed port refuses at once."""


def with_nearby(facts: ModelFacts, paths: Paths) -> ModelFacts:
    """`facts` with the servers and files of this machine; servers are queried only when a port is open."""
    found = asyncio.run(discover_local_servers()) if any(_listens(one.host, one.port) for one in ENDPOINTS) else ()
    servers, waiting = AcceptedServers(paths.servers_file).split(found)
    return replace(facts, servers=servers, waiting=waiting, embedded=_find_embedded(paths.models))


def _find_embedded(folder: Path) -> tuple[str, ...]:
    """Models that can be used, without reading one: the user's own file first, unchecked downloads left out."""
    own = own_file(os.environ)
    names = sorted(path.stem for path in folder.glob("*.gguf") if path.is_file())
    unchecked = {one.name for one in KNOWN_MODELS if not (folder / f".{one.file_name}.verified").exists()}
    first = (own.stem,) if own is not None and own.is_file() else ()
    return (*first, *(name for name in names if name not in {*unchecked, *first}))


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=KNOCK):
            return True
    except OSError:
        return False
