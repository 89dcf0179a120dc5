"""Versions of files in the history of a repository, read by the hardened git of `tools.git.reading`."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.contract import ProcessRunner, SelfStarting
from tools.git.proof import History, as_lines
from tools.git.reading import open_repository
from tools.git.repository import find_repository

MOST: Final = 4 * 1024 * 1024
"""Bytes of git's answer."""
COMMIT: Final = "\x01"
"""Before each commit; names of files have it escaped."""
_RAW: Final = re.compile(r"^:+(?:\d{6} )+((?:[0-9a-f]{40,64} )+)\w+\t(.+)$", re.MULTILINE)


class FileVersions(Struct, frozen=True):
    """Names of the contents of some files, by their path."""

    checked_out: Mapping[str, str]
    """Names in the commit that is checked out; a file that it does not have is missing."""
    known: Mapping[str, frozenset[str]]
    """Names in the history of given commits."""
    removed: frozenset[str]
    """Files that this history removes, or all that it has where the commit that is checked out is a part of it."""

    def holds(self, path: str, hashes: Iterable[str]) -> bool:
        """True where one of `hashes` is checked out and was known before."""
        found = self.checked_out.get(path, "")
        return found in set(hashes) and found in self.known.get(path, frozenset())

    def lacks(self, path: str) -> bool:
        """True where history has the file and does without it, too, as the commit that is checked out."""
        return path not in self.checked_out and path in self.removed

    def has(self, change: SelfStarting, path: str) -> bool:
        """True where this change of the file at `path` made it as history has it."""
        return self.lacks(path) if change.kind == "removed" else self.holds(path, change.hashes)


async def own_changes(
    runner: ProcessRunner,
    folder: Path,
    commits: Sequence[str],
    changes: Sequence[SelfStarting],
    places: Sequence[Path] = (),
) -> frozenset[str]:
    """Paths of the `changes` in `folder` after which a file is as the history of `commits` has it.

    Of the `places` below it at which git finds a repository, those count that are checkouts of the same one.
    """
    checkouts: dict[Path, list[SelfStarting]] = {}
    for change in changes:
        around = [place for place in places if (folder / change.path).is_relative_to(place)]
        checkouts.setdefault(max(around, key=lambda place: len(place.parts), default=folder), []).append(change)
    own: set[str] = set()
    for place, inside in checkouts.items():
        if place != folder and not await asyncio.to_thread(_share, place, folder):
            continue
        names = {change.path: str((folder / change.path).relative_to(place)) for change in inside}
        versions = await read_versions(runner, place, commits, list(names.values()))
        if versions is not None:
            own |= {change.path for change in inside if versions.has(change, names[change.path])}
    return frozenset(own)


def _share(place: Path, folder: Path) -> bool:
    """True where both are checkouts of one repository."""
    found = find_repository(place), find_repository(folder)
    commons = {one.common.resolve() if one is not None else None for one in found}
    return None not in commons and len(commons) == 1


async def read_versions(
    runner: ProcessRunner, folder: Path, commits: Sequence[str], paths: Sequence[str]
) -> FileVersions | None:
    """Versions of `paths`, relative to `folder`, in the history of `commits`; None where git cannot tell."""
    reader = await open_repository(runner, folder) if commits and paths else None
    if reader is None or not reader.repository.head:
        return None
    prefix = await asyncio.to_thread(lambda: os.path.relpath(os.path.realpath(folder), reader.repository.worktree))
    full = {f"{prefix}/{path}" if prefix != "." else path: path for path in paths}
    listed = await reader.ask("ls-tree", "-r", "-z", "--full-tree", reader.repository.head, "--", *full, most=MOST)
    words = (
        "log",
        "--format=%x01%H",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        "-m",
        "--root",
        "--ignore-missing",
        "--stdin",
    )
    logged = await reader.ask(*words, "--", *paths, most=MOST, stdin=as_lines(commits))
    if listed is None or logged is None:
        return None
    checked_out: dict[str, str] = {}
    for entry in listed.captured.head.decode("utf-8", "surrogateescape").split("\0"):
        facts, _, path = entry.partition("\t")
        if path in full:
            checked_out[full[path]] = facts.rpartition(" ")[2]
    history = History(reader)
    await history.read(commits)
    is_own = reader.repository.head in history.trees
    claimed: dict[tuple[str, str], str] = {}
    removed: set[str] = set()
    for entry in logged.captured.head.decode("utf-8", "surrogateescape").split(COMMIT)[1:]:
        commit = entry.partition("\n")[0]
        for names, path in _RAW.findall(entry):
            if path in full:
                claimed[commit, path] = names.split()[-1]
                if is_own or (commit in history.trees and not names.split()[-1].strip("0")):
                    removed.add(full[path])
    wanted = [pair for pair, name in claimed.items() if name == checked_out.get(full[pair[1]])]
    known: dict[str, set[str]] = {path: set() for path in paths}
    for (_, path), name in (await history.contents(wanted)).items():
        known[full[path]].add(name)
    return FileVersions(checked_out, {path: frozenset(names) for path, names in known.items()}, frozenset(removed))
