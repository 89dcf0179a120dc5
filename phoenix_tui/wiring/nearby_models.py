"""Models of this machine, found before the screen opens: servers on open ports, and files."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from phoenix_tui.config.paths import Paths
from phoenix_tui.models.accepted import AcceptedServers
from phoenix_tui.models.choice import ModelFacts
from phoenix_tui.models.known import KNOWN_MODELS
from phoenix_tui.models.own_file import own_file
from phoenix_tui.models.servers import ENDPOINTS, discover_local_servers

KNOCK: Final = 0.02
"""Seconds for a connection on loopback; a closed port refuses at once."""


def with_nearby(facts: ModelFacts, paths: Paths) -> ModelFacts:
    """`facts` with the servers and files of this machine; servers are queried only when a port is open."""
    found = asyncio.run(discover_local_servers()) if any(_listens(one.host, one.port) for one in ENDPOINTS) else ()
    servers, waiting = AcceptedServers(paths.servers_file).split(found)
    return replace(facts, servers=servers, waiting=waiting, embedded=_embedded(paths.models))


def _embedded(folder: Path) -> tuple[str, ...]:
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
