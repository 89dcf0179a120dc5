"""Files that a server needs in a sandbox: those that its definition names, and the folder of what it keeps."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.ports.mcp import ServerDefinition, ServerOrigin

PACKAGES: Final = ("package.json", "pyproject.toml", "setup.py", "go.mod", "Cargo.toml", "pyvenv.cfg", ".git")
"""Entries of the top folder of a program, which reads further files there."""
NODE_MODULES: Final = "node_modules"
MOST: Final = 50
"""Words of a definition that are looked at."""
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]+")


class NamedPlaces(Struct, frozen=True):
    """Places that a definition names."""

    programs: tuple[Path, ...] = ()
    """Folders of its program and of files: it sees them, and may change them for itself."""
    folders: tuple[Path, ...] = ()
    """Folders, and files directly in the home folder: it sees them and changes none, not even for itself."""


def kept_folder(base: Path, definition: ServerDefinition, root: Path) -> Path:
    """Folder of what a server keeps; one of a project keeps it for that project alone."""
    place = str(root) if definition.origin is ServerOrigin.PROJECT else ""
    parts = "\0".join((definition.name, definition.origin.value, place))
    name = _OTHER.sub("_", definition.name)[:40]
    return base / f"{name}-{hashlib.sha256(parts.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def named_places(definition: ServerDefinition) -> NamedPlaces:
    """Places that a definition of the user names in its command, its variables and `cwd`; none of a project's, whose
    word shows nothing beside the project. Touches the disk.
    """
    if definition.origin is ServerOrigin.PROJECT:
        return NamedPlaces()
    programs: dict[Path, None] = {}
    folders: dict[Path, None] = {}
    for path in list(_named(definition))[:MOST]:
        for place in dict.fromkeys((path, path.resolve())):
            if place.is_dir():
                if not _is_shared(place):
                    folders[place] = None
            elif place.parent.is_dir() and not _is_shared(place.parent):
                programs[_top_of(place.parent)] = None
            elif place.is_file():
                folders[place] = None
    return NamedPlaces(tuple(programs), tuple(folders))


def _named(definition: ServerDefinition) -> Iterator[Path]:
    command = definition.command[:1]
    if command and "/" not in command[0] and (found := shutil.which(command[0])) is not None:
        yield Path(found)
    for word in (*definition.command, *definition.environment.values(), definition.cwd):
        for text in (word, word.partition("=")[2], *word.split(os.pathsep)):
            if text.startswith(("/", "~/")) and "\0" not in text:
                yield Path(os.path.normpath(Path(text).expanduser()))


def _top_of(folder: Path) -> Path:
    """The top folder of the program that a file in `folder` is a part of."""
    parts = folder.parts
    if NODE_MODULES in parts:
        above = Path(*parts[: parts.index(NODE_MODULES)])
        return folder if _is_shared(above) else above
    for place in (folder, *folder.parents):
        if _is_shared(place):
            break
        if any(os.path.lexists(place / name) for name in PACKAGES):
            return place
    above = folder.parent
    return above if folder.name == "bin" and not _is_shared(above) else folder


def _is_shared(folder: Path) -> bool:
    """True for a folder with files of many programs: the home folder, one for temporary files, one of `PATH`, and those
    above them or of other users.
    """
    entries = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry.startswith("/")]
    many = [Path.home().resolve(), Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")]
    systems = [entry for entry in entries if not entry.is_relative_to(many[0])]
    if any(place.is_relative_to(folder) for place in (*many, *systems)):
        return True
    try:
        return folder.stat().st_uid != os.getuid()
    except OSError:
        return True
