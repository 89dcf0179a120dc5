"""The folder in which the program of a server starts: the project only where the user trusts it (SECURITY S4)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from engine.ports.mcp import FolderServers, ServerDefinition, ServerOrigin
from tools.files.own_files import make_folder
from tools.services import ServiceCommand

SCRIPTS: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".sh", ".pl", ".php", ".jar")
"""Endings of files that an interpreter is given."""


def start_folder(definition: ServerDefinition, found: FolderServers, neutral: Path) -> Path | None:
    """The neutral folder of a server that the user defined, in a project that is not trusted; None for others.

    `npx NAME`, `python -m NAME`, `uvx` and their settings prefer what lies where they start, and a server of the user
    has tokens of the user.
    """
    if definition.origin is ServerOrigin.PROJECT or definition.cwd or found.trusted:
        return None
    key = hashlib.sha256(f"{definition.name}\0{found.root}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return neutral / key


def start_command(
    definition: ServerDefinition, words: tuple[str, ...], root: Path, neutral: Path | None
) -> ServiceCommand:
    """A program of a definition with the folder in which it starts; blocks for a moment.

    A script that the command line names by a path means the project that it was written in.
    """
    if neutral is None:
        return ServiceCommand(words, Path(definition.cwd) if definition.cwd else root)
    if definition.origin is ServerOrigin.FLAG:
        words = tuple(str(root / word) if _is_path(place, word, root) else word for place, word in enumerate(words))
    make_folder(neutral)
    return ServiceCommand(words, root, start_in=neutral)


def _is_path(place: int, word: str, root: Path) -> bool:
    """True for a path that begins with a dot, and for an argument that names a script there; other names may be those
    of programs and packages.
    """
    return word.startswith(("./", "../")) or (place > 0 and word.endswith(SCRIPTS) and (root / word).is_file())


def project_variables(root: Path) -> dict[str, str]:
    """Variables that name the project to a server, wherever it starts."""
    return {"CLAUDE_PROJECT_DIR": str(root), "PHOENIX_PROJECT_DIR": str(root)}
