"""Paths behind links, also behind those that this process may not read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

MOST_LINKS: Final = 200
"""Parts of a path that are followed where one of its links cannot be read."""


def real_path(path: str | os.PathLike[str]) -> str:
    """The absolute path behind `path`, through every link that this process may read.

    `os.path.realpath` raises PermissionError at links such as `/proc/1/root`; here such a link stands for itself.
    """
    try:
        return os.path.realpath(path)
    except OSError:
        waiting, here = list(reversed(Path.cwd().joinpath(path).parts[1:])), "/"
    for _ in range(MOST_LINKS):
        if not waiting:
            break
        part = waiting.pop()
        if part == "..":
            here = os.path.dirname(here)  # noqa: PTH120 - text
            continue
        target = ""
        with suppress(OSError):
            target = os.readlink(os.path.join(here, part))  # noqa: PTH115, PTH118 - text
        here = "/" if target.startswith("/") else here if target else os.path.join(here, part)  # noqa: PTH118 - text
        waiting += reversed([one for one in target.split("/") if one not in {"", "."}])
    return os.path.join(here, *reversed(waiting))  # noqa: PTH118 - text


def follow_links(path: Path) -> Path:
    """`real_path` as a Path; `Path.resolve` raises where it does not."""
    return Path(real_path(path))
