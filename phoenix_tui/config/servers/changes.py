"""Adds and removes definitions of servers in config.toml and `.mcp.json`; everything else in the file is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, cast

from phoenix_tui.config.load import user_layer
from phoenix_tui.config.servers.server_files import KEY, MOST_BYTES, BadServers, json_servers
from tools.clean import clean_line, reveal_name
from tools.files.atomic import replace_file
from tools.files.location import Location
from tools.files.own_files import MOST_SETTINGS, read_text, write_file

PROJECT_FILE: Final = ".mcp.json"
TABLE: Final = "mcp"


def add_server(path: Path, name: str, definition: dict[str, object]) -> None:
    """Write a definition into the file `path`, which is made if need be.

    Raises:
        BadServers: the file is broken, or has a server of this name.
        ConfigError: as above, of a config.toml.
        OSError: it cannot be written.
    """
    servers, document = _read(path)
    if name in servers:
        raise BadServers(f"{reveal_name(path)} has a server {clean_line(name)}; remove it first.")
    servers[name] = definition
    _write(path, document)


def remove_server(path: Path, name: str) -> None:
    """Take a definition out of the file `path`.

    Raises:
        BadServers: there is no such server, or the file is broken.
        ConfigError: as above, of a config.toml.
        OSError: it cannot be written.
    """
    nothing: dict[str, object] = {}
    servers, document = _read(path) if path.exists() else (nothing, nothing)
    if name not in servers:
        raise BadServers(f"{reveal_name(path)} has no server {clean_line(name)}; `phoenix mcp list` shows all.")
    del servers[name]
    _write(path, document)


def _read(path: Path) -> tuple[Any, Any]:
    """Servers by name inside the document that they belong to."""
    if path.name == PROJECT_FILE:
        if not path.exists():
            servers: dict[str, object] = {}
            return servers, {KEY: servers}
        text = read_text(path, MOST_BYTES)
        json_servers(text, reveal_name(path))  # a file with an error stays as the user left it
        document = cast("dict[str, Any]", json.loads(text))
        return document[KEY], document
    user_layer(path)  # as above
    import tomlkit  # noqa: PLC0415 - 40 ms, needed only to change a file

    made: Any = tomlkit.parse(read_text(path, MOST_SETTINGS) if path.exists() else "")
    if TABLE not in made:
        made[TABLE] = tomlkit.table(is_super_table=True)
    if not isinstance(made[TABLE], dict):
        raise BadServers(f"{reveal_name(path)}: 'mcp' must be tables [mcp.NAME].")
    return made[TABLE], made


def _write(path: Path, document: Any) -> None:
    if path.name == PROJECT_FILE:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        replace_file(Location(path.parent, (path.name,), path.name), text.encode("utf-8", "replace"))
        return
    import tomlkit  # noqa: PLC0415 - as above

    write_file(path, tomlkit.dumps(document))  # pyright: ignore[reportUnknownMemberType] - tomlkit's stub
