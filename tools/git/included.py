"""Ignored files that a new worktree gets, by the patterns of the file `.worktreeinclude`."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from tools.clean import reveal_name
from tools.failure import ToolFailure
from tools.files.location import Location
from tools.files.opening import opened_file, opened_folder
from tools.files.own_files import read_regular
from tools.git.reading import GitReader
from tools.wording import counted

FILE: Final = ".worktreeinclude"
MOST_PATTERNS: Final = 64 * 1024
"""Bytes."""
MOST_BYTES: Final = 100_000_000
MOST_FILES: Final = 10_000
MOST_LISTED: Final = 16 * 1024 * 1024
"""Bytes of names."""


async def copy_included(reader: GitReader, target: Path) -> str:
    """Copy the files that git ignores and `.worktreeinclude` names; a sentence about it, empty without such a file."""
    top = reader.repository.worktree
    patterns = await asyncio.to_thread(read_regular, top / FILE, MOST_PATTERNS, follow=False)
    if not patterns:
        return ""
    others = ("ls-files", "--others", "--ignored", "-z")
    named = await reader.ask(*others, f"--exclude-from={top / FILE}", most=MOST_LISTED)
    ignored = await reader.ask(*others, "--exclude-standard", *reader.exclude(), most=MOST_LISTED)
    if named is None or ignored is None or named.captured.dropped or ignored.captured.dropped:
        return f"Nothing of {FILE} was copied: git could not list these files."
    wanted = sorted(set(named.captured.head.split(b"\0")) & set(ignored.captured.head.split(b"\0")) - {b""})
    return await asyncio.to_thread(_copy_all, top, target, [os.fsdecode(name) for name in wanted])


def _copy_all(top: Path, target: Path, names: list[str]) -> str:
    room, copied, left = MOST_BYTES, 0, list[str]()
    for name in names[:MOST_FILES]:
        size = _copy(Location(top, Path(name).parts, name), Location(target, Path(name).parts, name), room)
        if size is None:
            left.append(name)
        else:
            room, copied = room - size, copied + 1
    left += names[MOST_FILES:]
    said = f"{counted(copied, 'ignored file')} copied by {FILE}."
    if left:
        said += (
            f" Not copied: {reveal_name(left[0])}{f' and {len(left) - 1:,} more' if len(left) > 1 else ''} "
            "(no regular files, unreadable, or more than 100 MB together)."
        )
    return said


def _copy(source: Location, target: Location, room: int) -> int | None:
    """Copy one regular file of at most `room` bytes; its size, None where that is not possible. Follows no link."""
    if {"..", ".git"} & {part.lower() for part in source.parts}:
        return None
    leaf, made = target.parts[-1], False
    with suppress(OSError, ToolFailure), opened_file(source) as reading, opened_folder(target, create=True) as folder:
        status = os.fstat(reading.fileno())
        if status.st_size > room:
            return None
        mode = 0o600 | (status.st_mode & stat.S_IXUSR)
        descriptor = os.open(leaf, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, mode, dir_fd=folder)
        made = True
        with os.fdopen(descriptor, "wb") as writing:
            shutil.copyfileobj(_Bounded(reading, room), writing)
            return writing.tell()
    if made:
        with suppress(OSError), opened_folder(target) as folder:
            os.unlink(leaf, dir_fd=folder)
    return None


class _Bounded:
    """Reads a file that may grow meanwhile, and fails behind its bound."""

    def __init__(self, stream: BinaryIO, most: int) -> None:
        self._stream = stream
        self._left = most

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        part = self._stream.read(size)
        self._left -= len(part)
        if self._left < 0:
            raise OSError("it grew beyond the bound")
        return part
