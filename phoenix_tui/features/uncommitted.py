"""Uncommitted changes in a folder: differences from HEAD, and untracked files."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tools.contract import DiffDisplay, ProcessRunner
from tools.files.content import TextContent, is_binary
from tools.files.diff import diff_display
from tools.git.reading import open_repository

DIFF: Final = (
    "--relative",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--ignore-submodules=dirty",  # git would run itself in one to find changes
)
MOST_BYTES: Final = 4 * 1024 * 1024
MOST_UNKNOWN: Final = 200
"""Files that git does not know whose lines are read."""
LARGEST: Final = 1024 * 1024
"""Bytes of such a file."""
_NEW: Final = "new file mode "
_QUOTED: Final = re.compile(r'"(.*)"')


class Uncommitted(Struct, frozen=True):
    """Files by path; one without lines (no text, too large, another mode) has an empty diff."""

    files: tuple[DiffDisplay, ...]
    note: str = ""


async def uncommitted(runner: ProcessRunner, folder: Path) -> Uncommitted | None:
    """Find the uncommitted changes below a folder; None without git or a repository."""
    reader = await open_repository(runner, folder)
    if reader is None:
        return None
    if reader.repository.unreadable:
        return Uncommitted((), reader.repository.unreadable)
    differs = await reader.ask("diff", *DIFF, "--unified=3", reader.repository.compared_with, "--", most=MOST_BYTES)
    others = ("ls-files", "--others", "--exclude-standard", *reader.exclude(), "-z")
    listed = await reader.ask(*others, most=MOST_BYTES)
    if differs is None or listed is None:
        return None
    known = list(patches(differs.captured.head.decode("utf-8", "surrogateescape")))
    if differs.captured.dropped:
        counts = await reader.ask(
            *("diff", *DIFF, "--numstat", "-z", reader.repository.compared_with, "--"), most=MOST_BYTES
        )
        known = with_counts(known, counts.captured.head if counts is not None else b"")
    names = sorted(name for name in listed.captured.head.split(b"\0") if name)
    new = await asyncio.to_thread(lambda: [_as_new(folder, name) for name in names[:MOST_UNKNOWN]])
    notes = [
        f"{len(names) - MOST_UNKNOWN:,} more untracked files are not shown." if len(names) > MOST_UNKNOWN else "",
        "The changes are long; only their first lines are shown." if differs.captured.dropped else "",
    ]
    files = sorted((*known, *new), key=lambda one: one.path)
    return Uncommitted(tuple(files), " ".join(filter(None, notes)))


def with_counts(known: Sequence[DiffDisplay], counts: bytes) -> list[DiffDisplay]:
    """Every file that `git diff --numstat -z` prints, with its own counts, where the lines of some were left out."""
    by_path = {file.path: file for file in known}
    for line in counts.split(b"\0"):
        added, removed, name = (*line.split(b"\t", 2), b"", b"")[:3]
        if added.isdigit() and removed.isdigit() and name:
            path = os.fsdecode(name)
            before = by_path.get(path, DiffDisplay(path, "", 0, 0))
            by_path[path] = replace(before, added=int(added), removed=int(removed))
    return list(by_path.values())


def patches(text: str) -> Iterator[DiffDisplay]:
    """Split the output of `git diff`, one file at a time."""
    for part in re.split(r"(?m)^(?=diff --git )", text):
        head, *body = re.split(r"(?m)^(?=--- )", part, maxsplit=1)
        if not head:
            continue
        lines = body[0].split("\n") if body else []
        yield DiffDisplay(
            path=_path_of(head, lines),
            diff="\n".join(lines),
            added=sum(line.startswith("+") for line in lines[2:]),
            removed=sum(line.startswith("-") for line in lines[2:]),
            created=f"\n{_NEW}" in head,
        )


def _path_of(head: str, lines: Sequence[str]) -> str:
    """The path after the change, or before it where the file is gone; without renames both are equal."""
    for line in lines[1::-1]:
        name = _unquoted(line[4:].removesuffix("\t"))
        if name != "/dev/null":
            return name[2:]
    both = head.partition("\n")[0].removeprefix("diff --git ")
    return _unquoted(both[: (len(both) - 1) // 2])[2:]


def _unquoted(name: str) -> str:
    found = _QUOTED.fullmatch(name)
    if found is None:
        return name
    raw, _ = codecs.escape_decode(found[1].encode("utf-8", "surrogateescape"))  # the one reader of C's escapes there is
    return os.fsdecode(raw)


def _as_new(folder: Path, name: bytes) -> DiffDisplay:
    path = os.fsdecode(name)
    raw = _read(folder / path)
    text = "" if raw is None or is_binary(raw) else TextContent.parse(raw).text
    return diff_display(path, "", text, created=True) if text else DiffDisplay(path, "", 0, 0, created=True)


def _read(path: Path) -> bytes | None:
    """A regular file of bearable size; nothing waits for a pipe and no link is followed."""
    try:
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST:
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(LARGEST)
    except OSError:
        return None
