"""The program of a language server: outside of the repository, unless the user lets the project's own run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tools.lsp.definitions import LanguageServer
from tools.process.environment import SEARCH_PATHS, users_path
from tools.process.programs import find_program, list_trusted_folders, outside_entries

VIRTUAL_ENVIRONMENTS: Final = (".venv", "venv")


def program_of(server: LanguageServer, root: Path, folder: Path, *, allowed: bool) -> tuple[str, ...]:
    """The program of a server with its arguments, none where it is not found; belongs in a thread.

    `allowed`: what lies in the working folder `folder` may run. Elsewhere only folders of `PATH` count that neither lie
    in a repository nor can be written by everybody.
    """
    name, *arguments = server.command
    if os.sep in name:
        usable = (
            Path(name).is_absolute()
            and os.access(name, os.X_OK)
            and (allowed or not Path(name).resolve().is_relative_to(folder))
        )
        return (name, *arguments) if usable else ()
    if allowed and (found := _of_project(server, name, root, folder)):
        return (found, *arguments)
    found = find_program(name, folder)
    return (found, *arguments) if found else ()


def _of_project(server: LanguageServer, name: str, root: Path, folder: Path) -> str:
    """Path of a program in the project; empty without one."""
    places = [base / place for base in dict.fromkeys((root, folder)) for place in server.project_command]
    entries = (Path(entry) for entry in users_path().split(os.pathsep) if entry.startswith("/"))
    for place in (*places, *(entry for entry in entries if entry.is_relative_to(folder))):
        path = place / Path(name).name
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return ""


def server_environment(environment: Mapping[str, str], folder: Path, *, allowed: bool) -> dict[str, str]:
    """Variables to add: where the project is not to run, no list of folders leads into it."""
    if allowed:
        return {}
    confined = {
        name: outside_entries(value, folder)
        for name, value in environment.items()
        if name in SEARCH_PATHS and name != "PATH"
    }
    return confined | {"PATH": os.pathsep.join(list_trusted_folders(folder)) or os.defpath, "VIRTUAL_ENV": ""}


def with_packages(server: LanguageServer, root: Path, folder: Path, *, allowed: bool) -> LanguageServer:
    """The server with the virtual environment of the project, or deaf to what it cannot know without it."""
    places = (base / name for base in dict.fromkeys((root, folder)) for name in VIRTUAL_ENVIRONMENTS)
    found = next((place for place in places if (place / "pyvenv.cfg").is_file()), None) if server.unresolved else None
    if found is None:
        return server
    if not allowed:
        return replace(server, passed_over=(*server.passed_over, *server.unresolved))
    python = {"pythonPath": str(found / "bin" / "python")} | dict(server.settings.get("python", {}))
    return replace(server, settings={**server.settings, "python": python})


def root_of(server: LanguageServer, path: Path, folder: Path) -> Path:
    """The root of a file: the outermost folder from the working folder down that has a mark, else that folder."""
    inner = path.parent.relative_to(folder).parts
    for depth in range(len(inner) + 1):
        place = folder.joinpath(*inner[:depth])
        if any((place / mark).exists() for mark in server.roots):
            return place
    return folder
