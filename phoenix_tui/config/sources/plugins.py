"""Folders with skills, commands, hooks and MCP servers for one run, as `--plugin-dir` names them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, cast

from phoenix_tui.config.sources.kinds import Plugin
from tools.clean import clean_line
from tools.files.own_files import read_regular

MANIFEST: Final = Path(".claude-plugin") / "plugin.json"
MOST_BYTES: Final = 256 * 1024
ROOT: Final = "${CLAUDE_PLUGIN_ROOT}"
"""Name of a plugin's folder in its hooks and servers."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_SIGNS: Final = re.compile(r"[\x00-\x1f\x7f\"'$`\\]")
"""Signs that would mean something else where a shell reads the path of a folder."""


def find_plugin(text: str, cwd: Path) -> Plugin:
    """The plugin of a folder; its name is that of its manifest, else of the folder.

    Raises:
        ValueError: it is none; a clause that says why.
    """
    try:
        folder = (cwd / Path(text).expanduser()).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError("there is no such folder") from error
    if not folder.is_dir():
        raise ValueError("it is no folder")
    if _SIGNS.search(str(folder)):
        raise ValueError("its path has quotes or other signs of a shell")
    name = _named(folder)
    if not _NAME.fullmatch(name):
        raise ValueError("its name may have letters, digits, '-', '_' and '.' only, at most 64")
    return Plugin(name, folder)


def rooted(content: bytes, plugin: Plugin | None) -> bytes:
    """A text of JSON with the folder of its plugin filled in."""
    return content if plugin is None else content.replace(ROOT.encode(), str(plugin.folder).encode())


def _named(folder: Path) -> str:
    content = read_regular(folder / MANIFEST, MOST_BYTES)
    if content is None:
        return folder.name
    try:
        manifest: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{MANIFEST} is no JSON ({clean_line(str(error))[:100]})") from error
    table = cast("dict[str, object]", manifest) if isinstance(manifest, dict) else {"name": None}
    name = table.get("name", folder.name)
    if not isinstance(name, str):
        raise ValueError(f"{MANIFEST} has no name")  # noqa: TRY004 - a fault of the file
    return name
