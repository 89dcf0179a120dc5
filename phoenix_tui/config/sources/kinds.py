"""Kinds of files that extend Phoenix, what each can do, and the folders that `--plugin-dir` names."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from tools.clean import clean_line
from tools.files.own_files import read_regular


class SourceKind(StrEnum):
    """Use of a file."""

    SERVERS = "servers"
    HOOKS = "hooks"
    PROGRAM = "program"
    """A file of the project that a hook or a server is started from."""
    INSTRUCTIONS = "instructions"
    SKILL = "skill"
    AGENT = "agent"
    COMMAND = "command"


class SourceGroup(StrEnum):
    """Power of a file once it is trusted; a change switches its group off."""

    RUNS = "runs programs"
    INSTRUCTS = "instructs the model"
    ADDS = "adds commands"


GROUPS: Final = {
    SourceKind.SERVERS: SourceGroup.RUNS,
    SourceKind.HOOKS: SourceGroup.RUNS,
    SourceKind.PROGRAM: SourceGroup.RUNS,
    SourceKind.INSTRUCTIONS: SourceGroup.INSTRUCTS,
    SourceKind.SKILL: SourceGroup.INSTRUCTS,
    SourceKind.AGENT: SourceGroup.INSTRUCTS,
    SourceKind.COMMAND: SourceGroup.ADDS,
}


class Plugin(Struct, frozen=True):
    """A folder whose files count for one run, because the caller has named it."""

    name: str
    """Prefix of what it adds."""
    folder: Path
    """A real path."""
    has_servers: bool = True
    """False where its MCP servers do not count."""


class SourceFile(Struct, frozen=True):
    """One file, by the path under which it was found."""

    path: Path
    kind: SourceKind
    unit: Path
    """Owner it is switched off with: the folder of a skill, else the file itself."""
    digest: str
    """SHA-256 of the whole content."""
    is_users: bool = False
    """True for a file of the user's own folders, which needs no trust."""
    plugin: Plugin | None = None

    @property
    def group(self) -> SourceGroup:
        """Power of the file."""
        return GROUPS[self.kind]


class LeftOutFile(Struct, frozen=True):
    """A file that is not used, and the reason as a clause."""

    path: Path
    reason: str


class Sources(Struct, frozen=True):
    """Files of one folder, those nearest to it first, and what was left out."""

    files: tuple[SourceFile, ...] = ()
    left_out: tuple[LeftOutFile, ...] = ()

    def of(self, kind: SourceKind) -> tuple[SourceFile, ...]:
        """Files of a kind, in their order."""
        return tuple(file for file in self.files if file.kind is kind)


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
    name = _read_plugin_name(folder)
    if not _NAME.fullmatch(name):
        raise ValueError("its name may have letters, digits, '-', '_' and '.' only, at most 64")
    return Plugin(name, folder)


def fill_root(content: bytes, plugin: Plugin | None) -> bytes:
    """A text of JSON with the folder of its plugin filled in."""
    return content if plugin is None else content.replace(ROOT.encode(), str(plugin.folder).encode())


def _read_plugin_name(folder: Path) -> str:
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
