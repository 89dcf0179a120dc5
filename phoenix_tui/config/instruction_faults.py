"""Instruction files that are there and do not count, or not whole, each with the reason; for the doctor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from phoenix_tui.config.instructions import MOST_CHARACTERS
from phoenix_tui.config.project import FILE_LIMIT, INSTRUCTIONS, Project, find_project, instructions_path, places_of
from phoenix_tui.config.trust import Trust, TrustFile
from tools.files.own_files import open_own

UNTRUSTED: Final = {
    Trust.UNKNOWN: "this folder is not trusted yet",
    Trust.CHANGED: "files of this folder changed since you trusted it",
    Trust.REFUSED: "your answer was not to use the files of this folder",
}
CLOSED: Final = "a rule denies to read it"
LEADS_OUT: Final = "its links lead out of the folder, or nowhere"
TOO_MANY: Final = "the files of this folder have too many bytes together"
CUT: Final = "only its first {most:,} characters of {all} are sent"


def instruction_faults(own: Path, folder: Path, trust: TrustFile, is_closed: Callable[[Path], bool]) -> Iterator[str]:
    """A sentence for each such file of a folder, of those above it up to its repository, and of the user in `own`."""
    project = find_project(folder)
    status = trust.status(project).trust
    root = places_of(project.folder)[0]
    for path in _named(project):
        why = _unreadable(path, root) or (CLOSED if is_closed(path) else "") or UNTRUSTED.get(status, "")
        why = why or (TOO_MANY if path in project.left_out else "")
        if why:
            yield f"{path} is not used: {why}."
    for path, text in _read(own, project):
        if len(text) > MOST_CHARACTERS and not is_closed(path):
            known = f"{'more than ' if len(text.encode()) >= FILE_LIMIT else ''}{len(text):,}"
            yield f"{path} is too long: {CUT.format(most=MOST_CHARACTERS, all=known)}."
    users = instructions_path(own)
    if os.path.lexists(users) and (why := _unreadable(users, None)):
        yield f"{users} is not used: {why}."


def _named(project: Project) -> list[Path]:
    """Instruction files that are there, with their imports that were found."""
    there = [path for place in places_of(project.folder) if os.path.lexists(path := instructions_path(place))]
    imported = [file.path for file in project.files if file.imported_by is not None]
    texts = [path for path in project.left_out if path.name in INSTRUCTIONS or path.suffix == ".md"]
    return list(dict.fromkeys([*there, *imported, *texts]))


def _read(own: Path, project: Project) -> Iterator[tuple[Path, str]]:
    yield from ((file.path, file.text) for file in project.instructions())
    users = instructions_path(own)
    if os.path.lexists(users) and not _unreadable(users, None):
        yield users, users.read_bytes()[:FILE_LIMIT].decode("utf-8", "replace")


def _unreadable(path: Path, root: Path | None) -> str:
    """Reason for which a file that is there cannot be read; it may lead nowhere out of `root`."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return LEADS_OUT
    if root is not None and not real.is_relative_to(root):
        return LEADS_OUT
    try:
        os.close(open_own(real))
    except OSError as error:
        return error.strerror or str(error)
    return ""
