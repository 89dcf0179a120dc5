"""Releases that an index lists in its JSON form (PEP 691), and which of them is the newest. Pure."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import msgspec

Release: TypeAlias = "tuple[int, ...]"
"""Numbers of a version, without zeros at its end."""
_VERSION: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}")
"""A final release: no alpha, beta, candidate or local version (PEP 440)."""
_FILE: Final = re.compile(
    r"phoenix[-_.]tui-([0-9][0-9.]{0,59}?)(?:-py[0-9a-z.]{1,20}-\w{1,20}-\w{1,80}\.whl|\.tar\.gz)"
)
LONGEST_NAME: Final = 200
"""Characters of the name of a file."""


class _File(msgspec.Struct):
    filename: str = ""
    yanked: bool | str = False
    """A reason, or true, for a release that was withdrawn."""


class _Project(msgspec.Struct):
    files: list[_File]


_DECODER: Final = msgspec.json.Decoder(_Project)


def release_of(version: str) -> Release | None:
    """The numbers of a final release; None for any other text."""
    if not _VERSION.fullmatch(version):
        return None
    numbers = [int(number) for number in version.split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def newest_in(content: bytes) -> str:
    """The newest final release of a project's JSON that was not withdrawn; empty without any.

    Raises:
        ValueError: it is no such JSON.
    """
    try:
        project = _DECODER.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("the index sent no list of files") from error
    offered = (one.filename for one in project.files if one.yanked is False and len(one.filename) <= LONGEST_NAME)
    names = map(_FILE.fullmatch, offered)
    versions = {found[1] for found in names if found is not None}
    known = {release: version for version in versions if (release := release_of(version)) is not None}
    return known[max(known)] if known else ""


def is_newer(version: str, than: str) -> bool:
    """True where a final release is newer than the running version."""
    release, running = release_of(version), release_of(than)
    return release is not None and running is not None and release > running
