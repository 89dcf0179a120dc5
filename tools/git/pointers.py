"""Small files of git that name a folder, read without git: a bounded part of regular files alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.files.own_files import read_regular

LONGEST: Final = 4_096 + 16
"""Bytes: the longest path that Linux takes, and the word before it."""
MOST_STEPS: Final = 200
"""Parts of a path that are followed, those behind links included."""
WORD: Final = b"gitdir: "


def first_line(path: Path, *, follow: bool = False) -> str:
    """The first line of a file such as `commondir`, without blanks around it; empty for anything else."""
    content = read_regular(path, LONGEST, follow=follow) or b""
    line = content.partition(b"\n")[0].strip()
    return "" if b"\0" in line else os.fsdecode(line)


def named_folder(pointer: Path, *, follow: bool = False) -> str:
    """The git folder that a `.git` file names, unresolved and perhaps relative; empty for anything else.

    Read as git reads it: the name goes on to the end of the file, lines and blanks included, or to a null byte.
    """
    content = read_regular(pointer, LONGEST + 1, follow=follow) or b""
    if len(content) > LONGEST or not content.startswith(WORD):
        return ""
    return os.fsdecode(content.rstrip(b"\r\n").removeprefix(WORD).partition(b"\0")[0])


def links_towards(path: Path) -> Iterator[Path]:
    """Links that lead to the absolute `path`, which need not exist, each by its resolved place."""
    waiting, here = list(reversed(path.parts[1:])), Path(path.anchor)
    for _ in range(MOST_STEPS):
        if not waiting:
            return
        part = waiting.pop()
        if part == "..":
            here = here.parent
            continue
        try:
            target = Path(os.readlink(here / part))  # noqa: PTH115 - raises ValueError for a null byte as well
        except (OSError, ValueError):
            here /= part
            continue
        yield here / part
        waiting += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        here = Path(target.anchor) if target.is_absolute() else here
