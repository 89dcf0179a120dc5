"""`--await-initialize`: fields of the handshake that count like flags, and are on no command line that others can read.

Imports what reads flags, and no event loop: the line is read before anything is opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.cli.control.flags import ControlFlags, servers_of
from phoenix_tui.cli.control.lines import PIECE, LineFault, parsed, split
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.config.flag_rules import listed
from tools.contract import JsonObject, JsonValue

MOST_RULES: Final = 5_000
"""Denied tools of one list: half of the rules that a host may have, beyond which further ones would be dropped."""
ANSWERS: Final = {
    "settings": "settings_applied",
    "disallowedTools": "disallowed_tools_applied",
    "mcpServers": "mcp_servers_applied",
    "plugins": "plugins_applied",
}
"""Fields that count at the launch, and those of the answer that confirm them."""
MOST_PLUGINS: Final = 200
"""Plugins of one list, those left out included."""
WITHOUT_SERVERS: Final = "skipMcpDiscovery"


class FirstLine(Struct, frozen=True):
    """The first line of the host."""

    request: JsonObject
    """The `initialize`; empty for another line."""
    ahead: bytes
    """All that was read: the connection begins with it."""


def first_line(read: Callable[[], bytes] | None = None) -> FirstLine:
    """Wait for the first line on stdin that is not blank, or its end."""
    pieces: list[bytes] = []

    def noted() -> bytes:
        pieces.append(piece := (read or partial(_read, 0))())
        return piece

    line = next((found for one in split(noted) if (found := _parsed(one)) is not None), None)
    request = line.get("request") if isinstance(line, dict) else None
    is_handshake = isinstance(request, dict) and request.get("subtype") == "initialize"
    return FirstLine(request if isinstance(request, dict) and is_handshake else {}, b"".join(pieces))


def launched(flags: ControlFlags, first: FirstLine) -> ControlFlags:
    """The flags with the fields of the handshake. One that is not of its shape is left out, and not confirmed."""
    flags = replace(flags, ahead=first.ahead)
    for name in ANSWERS:
        value = first.request.get(name)
        if value is not None and (more := _TAKES[name](flags, value)) is not None:
            flags = replace(more, launch=flags.launch | {name: value})
    return flags


def confirmed(request: JsonObject, launch: JsonObject) -> JsonObject:
    """The fields of the answer to a handshake: what it names was in force at the launch, or was not."""
    answer: JsonObject = {
        field: name in launch and request[name] == launch[name]
        for name, field in ANSWERS.items()
        if request.get(name) is not None
    }
    return answer if not request.get("hooks") else answer | {"hooks_applied": True}


def _settings(flags: ControlFlags, value: JsonValue) -> ControlFlags | None:
    if not isinstance(value, dict) or flags.settings:
        return None
    return replace(flags, settings=json.dumps(value))


def _denied(flags: ControlFlags, value: JsonValue) -> ControlFlags | None:
    texts = [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    denied = tuple(one for text in texts for one in listed(text))
    if not isinstance(value, list) or len(texts) < len(value) or len(denied) > MOST_RULES:
        return None
    return replace(flags, disallowed=(*flags.disallowed, *denied))


def _servers(flags: ControlFlags, value: JsonValue) -> ControlFlags | None:
    try:
        inside, values = servers_of([json.dumps({"mcpServers": value})])
    except CommandError:
        return None
    run = replace(flags.run, mcp_config=(*flags.run.mcp_config, *values))
    return replace(flags, run=run, in_host=(*flags.in_host, *inside))


def _plugins(flags: ControlFlags, value: JsonValue) -> ControlFlags | None:
    with_servers, without = list[str](), list[str]()
    if not isinstance(value, list) or len(value) > MOST_PLUGINS:
        return None
    for one in value:
        path = one.get("path") if isinstance(one, dict) and one.get("type") == "local" else None
        if not isinstance(one, dict) or not isinstance(path, str):
            return None
        (without if one.get(WITHOUT_SERVERS) is True else with_servers).append(path)
    return replace(
        flags,
        plugin_dirs=(*flags.plugin_dirs, *with_servers),
        plugin_dirs_no_mcp=(*flags.plugin_dirs_no_mcp, *without),
    )


_TAKES: Final[dict[str, Callable[[ControlFlags, JsonValue], ControlFlags | None]]] = {
    "settings": _settings,
    "disallowedTools": _denied,
    "mcpServers": _servers,
    "plugins": _plugins,
}


def _parsed(line: bytes | LineFault) -> JsonObject | LineFault | None:
    return line if isinstance(line, LineFault) else parsed(line)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, PIECE)
    except OSError:
        return b""
