"""The files under a folder, without what ignore files exclude, in a steady order.

`git ls-files` is not asked: a repository's own configuration can make it start programs.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tools.contract import ToolInputError

if TYPE_CHECKING:
    from ignore import Walk

MOST_WALKED = 200_000
"""Files after which a walk stops."""


class Walked(Struct, frozen=True):
    """What a walk found, sorted; `complete` is False when it stopped early."""

    files: tuple[str, ...]
    """Absolute paths."""
    complete: bool = True


def walk(folder: Path, *, glob: str = "", ignored: bool = False) -> Walked:
    """List the regular files under `folder`, hidden ones too, `.git` never; links are not followed.

    `ignored` includes what ignore files exclude.

    Raises:
        ToolInputError: the glob is malformed.
    """
    from ignore import WalkBuilder  # noqa: PLC0415 - native library, loaded on first use (LIBRARIES 3)
    from ignore.overrides import OverrideBuilder  # noqa: PLC0415 - as above

    builder = WalkBuilder(folder).hidden(False).require_git(False).follow_links(False)
    builder.overrides(OverrideBuilder(folder).add("!.git").build())
    if ignored:
        builder.ignore(False).git_ignore(False).git_global(False).git_exclude(False).parents(False)
    wanted = matcher(glob)
    found: list[str] = []
    base = len(os.path.join(folder, ""))  # noqa: PTH118 - ends in exactly one slash, also for the root
    for path in _paths(builder.build()):
        if wanted(path[base:]) and _is_file(path):
            found.append(path)
            if len(found) >= MOST_WALKED:
                return Walked(tuple(sorted(found)), complete=False)
    return Walked(tuple(sorted(found)))


def _paths(entries: Walk) -> Iterator[str]:
    """The paths of a walk; a folder that cannot be read is passed over."""
    from ignore import Error  # noqa: PLC0415 - native library, loaded on first use (LIBRARIES 3)
    from ignore import IOError as WalkError  # noqa: PLC0415 - as above

    while True:
        try:
            entry = next(entries)
        except StopIteration:
            return
        except (Error, WalkError):
            continue
        yield str(entry.path())


def matcher(glob: str) -> Callable[[str], bool]:
    """A test for relative paths: a glob without a slash looks at names, one with a slash at whole paths.

    Raises:
        ToolInputError: the glob is malformed.
    """
    if not glob:
        return _anything
    pattern = _pattern(glob.removeprefix("./").removeprefix("/"))
    if "/" in glob:
        return lambda path: pattern.fullmatch(path) is not None
    return lambda path: pattern.fullmatch(path.rpartition("/")[2]) is not None


def _anything(_path: str) -> bool:
    return True


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


@lru_cache(maxsize=64)
def _pattern(glob: str) -> re.Pattern[str]:
    """`*` and `?` stay within a folder, `**` crosses folders, `{a,b}` is either, `[ab]` a set."""
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}
    depth = 0
    out: list[str] = []
    for token in re.findall(r"\*\*/|\*\*|\[!?\]?[^\]/]*\]|.", glob, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(token, 0)
        if token.startswith("[") and len(token) > 1:
            body = token[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            out.append(f"[^/{body[1:]}]" if body.startswith("!") else f"[{body}]")
        elif token == "," and not depth:
            out.append(",")
        else:
            out.append(pieces.get(token) or re.escape(token))
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error as error:
        raise ToolInputError(f"The glob {glob} is malformed; use *, ?, **, [ab] and {{a,b}}.") from error
