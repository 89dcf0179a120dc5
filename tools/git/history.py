"""Commits of a session, and proof that git read them unchanged."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.contract import ProcessRunner, SelfStarting
from tools.git.commands import GitReader, open_repository
from tools.git.repository import find_repository

MOST_COMMITS: Final = 20_000
MOST_BYTES: Final = 32 * 1024 * 1024
"""Bytes of commits or trees that are read."""
_MODE_OF_FOLDERS: Final = b"40000"


class GitHistory:
    """Commits that are reachable from known ones."""

    def __init__(self, reader: GitReader) -> None:
        self._reader = reader
        self.trees: dict[str, str] = {}
        """The tree of each commit."""
        self._known: dict[str, bytes] = {}

    async def read(self, commits: Sequence[str]) -> None:
        """Read the commits behind `commits`; beyond `MOST_COMMITS` they count as unknown."""
        given = as_lines(commits)  # as arguments they may be too long
        listed = await self._reader.ask(
            "rev-list", f"--max-count={MOST_COMMITS}", "--ignore-missing", "--stdin", most=MOST_BYTES, stdin=given
        )
        names = listed.captured.head.decode("ascii").split() if listed is not None else []
        objects = await self._read(names, b"commit")
        waiting = list(commits)
        while waiting:
            name = waiting.pop()
            if name in objects and name not in self.trees:
                heads = [line.split(b" ") for line in objects[name].partition(b"\n\n")[0].split(b"\n")]
                self.trees[name] = heads[0][1].decode("ascii")
                waiting += [head[1].decode("ascii") for head in heads[1:] if head[0] == b"parent"]

    async def contents(self, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Names of the contents of pairs of a commit and a path; those that cannot be proved are missing."""
        at = {(commit, path): self.trees[commit] for commit, path in wanted if commit in self.trees}
        found: dict[tuple[str, str], str] = {}
        depth = 0
        while at:
            self._known |= await self._read(sorted(set(at.values()) - self._known.keys()), b"tree")
            following: dict[tuple[str, str], str] = {}
            for pair, tree in at.items():
                parts = pair[1].encode("utf-8", "surrogateescape").split(b"/")
                mode, name = _entries(self._known.get(tree, b""), len(tree) // 2).get(parts[depth], (b"", ""))
                if depth == len(parts) - 1 and name:
                    found[pair] = name
                elif mode == _MODE_OF_FOLDERS:
                    following[pair] = name
            at, depth = following, depth + 1
        return found

    async def _read(self, names: Sequence[str], kind: bytes) -> dict[str, bytes]:
        """Objects whose content has their name."""
        if not names:
            return {}
        answer = await self._reader.ask("cat-file", "--batch", most=MOST_BYTES, stdin=as_lines(names))
        return _parse_objects(answer.captured.head, kind) if answer is not None else {}


def as_lines(names: Sequence[str]) -> bytes:
    """Names of objects as git reads them."""
    return "".join(f"{name}\n" for name in names).encode("ascii")


def _parse_objects(output: bytes, kind: bytes) -> dict[str, bytes]:
    """Objects of `git cat-file --batch` that are of this kind and have the name of their content."""
    found: dict[str, bytes] = {}
    place = 0
    while (end := output.find(b"\n", place)) >= 0:
        words = output[place:end].split(b" ")
        place = end + 1
        if len(words) != 3 or not words[2].isdigit():
            continue
        content = output[place : place + int(words[2])]
        place += int(words[2]) + 1
        name, hashed = words[0].decode("ascii", "replace"), hashlib.sha256 if len(words[0]) == 64 else hashlib.sha1
        if words[1] == kind and hashed(b"%s %d\0" % (kind, len(content)) + content).hexdigest() == name:
            found[name] = content
    return found


def _entries(tree: bytes, size: int) -> Mapping[bytes, tuple[bytes, str]]:
    """Mode and name of each object in a tree, by its path; `size` is that of a hash in bytes."""
    found: dict[bytes, tuple[bytes, str]] = {}
    place = 0
    while (end := tree.find(b"\0", place)) >= 0:
        mode, _, path = tree[place:end].partition(b" ")
        place = end + 1 + size
        found[path] = mode, tree[end + 1 : place].hex()
    return found


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
    history = GitHistory(reader)
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
