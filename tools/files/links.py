"""Paths behind links, also behind those that this process may not read, and the links between."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

MOST_PARTS: Final = 200
"""Parts of a path, and of the links between, that are followed."""


def walk_links(path: str) -> tuple[str, list[str]]:
    """The place that an absolute `path` leads to, which need not exist, and each link between by its resolved place.

    A link that cannot be read stands for itself.
    """
    waiting, here, links = path.split("/")[::-1], "", list[str]()
    for _ in range(MOST_PARTS):
        while waiting and waiting[-1] in {"", "."}:
            waiting.pop()
        if not waiting:
            break
        part = waiting.pop()
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        place = f"{here}/{part}"
        try:
            target = os.readlink(place)  # noqa: PTH115 - text
        except (OSError, ValueError):
            here = place
            continue
        links.append(place)
        waiting += target.split("/")[::-1]
        here = "" if target.startswith("/") else here
    return "/".join((here, *reversed(waiting))) or "/", links


def links_towards(path: Path) -> list[Path]:
    """Links that lead to the absolute `path`, which need not exist, each by its resolved place."""
    return list(map(Path, walk_links(str(path))[1]))


def real_path(path: str | os.PathLike[str]) -> str:
    """The absolute path behind `path`, through every link that this process may read.

    `os.path.realpath` raises PermissionError at links such as `/proc/1/root`; here such a link stands for itself.
    """
    try:
        return os.path.realpath(path)
    except OSError:
        return walk_links(os.path.join(os.getcwd(), path))[0]  # noqa: PTH109, PTH118 - text


def follow_links(path: Path) -> Path:
    """`real_path` as a Path; `Path.resolve` raises where it does not."""
    return Path(real_path(path))
