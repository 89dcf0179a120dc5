"""Diffs as editors show them: the whole text before and after where the file is at hand, else the changed parts."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from acp.schema import FileEditToolCallContent
from msgspec import Struct

from tools.contract import DiffDisplay

LARGEST_FILE: Final = 1024 * 1024
"""Bytes of a file that is sent whole."""
LARGEST_PART: Final = 512 * 1024
"""Characters of either side where only the changed parts are sent."""
GAP: Final = "…\n"
"""Line between two changed parts."""
NO_NEWLINE: Final = "\\ No newline"


class _Hunk(Struct, frozen=True):
    old_at: int
    old: tuple[str, ...]
    new_at: int
    new: tuple[str, ...]


async def edited_file(path: Path, display: DiffDisplay, *, is_done: bool) -> FileEditToolCallContent:
    """The change of a file that is about to be made, or is made: whole up to 1 MB, otherwise its parts."""
    hunks = _hunks(display.diff)
    whole = None if display.created else await asyncio.to_thread(_text_of, path)
    if whole is not None and (other := _applied(whole, hunks, back=is_done)) is not None:
        before, after = (other, whole) if is_done else (whole, other)
        return FileEditToolCallContent(type="diff", path=str(path), old_text=before, new_text=after)
    return changed_parts(path, display)


def changed_parts(path: Path, display: DiffDisplay) -> FileEditToolCallContent:
    """The change by its diff alone; of a new file that is all of it."""
    hunks = _hunks(display.diff)
    before, after = (GAP.join("".join(side) for side in sides) for sides in _sides(hunks))
    old = None if display.created else before[:LARGEST_PART]
    return FileEditToolCallContent(type="diff", path=str(path), old_text=old, new_text=after[:LARGEST_PART])


def _sides(hunks: Sequence[_Hunk]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    return [one.old for one in hunks], [one.new for one in hunks]


def _hunks(diff: str) -> list[_Hunk]:
    """The parts of a unified diff of `tools/files/diff.py`."""
    lines = diff.split("\n")
    starts = [at for at, line in enumerate(lines) if line.startswith("@@ -")]
    return [_hunk(lines[first:last]) for first, last in pairwise([*starts, len(lines)])]


def _hunk(lines: Sequence[str]) -> _Hunk:
    head = lines[0].split(" ")
    old: list[str] = []
    new: list[str] = []
    for line, after in pairwise([*lines[1:], ""]):
        end = "" if after.startswith(NO_NEWLINE) else "\n"
        if line[:1] in {" ", "-"}:
            old.append(line[1:] + end)
        if line[:1] in {" ", "+"}:
            new.append(line[1:] + end)
    return _Hunk(_first(head[1], old), tuple(old), _first(head[2], new), tuple(new))


def _first(span: str, lines: Sequence[str]) -> int:
    """Index of the first line of a range; an empty range names the line before it."""
    number = int(span[1:].partition(",")[0])
    return number - 1 if lines else number


def _applied(text: str, hunks: Sequence[_Hunk], *, back: bool) -> str | None:
    """The text with the change made, or taken back; None where it is not the text that the diff is about."""
    *whole, rest = text.split("\n")
    lines = [f"{line}\n" for line in whole] + ([rest] if rest else [])
    done: list[str] = []
    at = 0
    for hunk in hunks:
        first, old, new = (hunk.new_at, hunk.new, hunk.old) if back else (hunk.old_at, hunk.old, hunk.new)
        if first < at or tuple(lines[first : first + len(old)]) != old:
            return None
        done += lines[at:first]
        done += new
        at = first + len(old)
    return "".join([*done, *lines[at:]])


def _text_of(path: Path) -> str | None:
    """The text of a regular file up to 1 MB, None for anything else; no link is followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST_FILE + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(descriptor)
