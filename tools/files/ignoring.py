"""Names of a folder that no ignore file excludes, found with the `ignore` library one folder at a time.

The library opens every file of rules that it meets while it holds the interpreter's lock: a named pipe in the place
of one would stop the whole process forever. So it is given one folder at a time, and only after `blocks_rules` has
looked at what it would open there and `blocks_rules_above` at what it would open further up.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ignore import DirEntry

ERRORS = 1_000
"""Complaints of the library about one folder, in addition to one for each name, after which it is not called again."""
RULES = frozenset({b".gitignore", b".ignore"})
_REPOSITORY = b".git"
_EXCLUDE = b"/.git/info/exclude"


def allowed(folder: bytes, there: int) -> frozenset[bytes] | None:
    """The names in `folder` that no ignore file excludes, its parents' and the user's own included.

    None where that is every one of the names that are `there`: they are counted first, since turning each into a path
    takes ten times as long. A folder that is not named in UTF-8 cannot be asked about: nothing is excluded there.
    """
    from ignore import Error, WalkBuilder  # noqa: PLC0415 - native, on first use (docs/decisions/libraries.md)
    from ignore import IOError as WalkError  # noqa: PLC0415 - as above

    if not there or not is_unicode(folder):
        return None
    builder = WalkBuilder(Path(os.fsdecode(folder))).hidden(False).require_git(False).follow_links(False).max_depth(1)
    found: list[DirEntry] = []
    entries = builder.build()
    for _ in range(2 * there + ERRORS):  # each entry, and errors of reading it
        try:
            found.append(next(entries))
        except StopIteration:
            break
        except (Error, WalkError):
            continue
    if len(found) == there + 1:  # the folder itself is among them
        return None
    return frozenset(os.fsencode(entry.path()).rpartition(b"/")[2] for entry in found)


def blocks_rules(folder: bytes, names: Container[bytes]) -> bool:
    """True when opening a rule file of a folder with these names could block forever."""
    if any(name in names and is_pipe(folder + b"/" + name) for name in RULES):
        return True
    return _REPOSITORY in names and is_pipe(folder + _EXCLUDE)


def blocks_rules_above(folder: bytes) -> bool:
    """True when opening a rule file above a folder, which also applies to it, could block forever."""
    above = [os.fsencode(parent) for parent in Path(os.fsdecode(folder)).parents]
    places = [*(parent + b"/" + name for parent in above for name in RULES), *(parent + _EXCLUDE for parent in above)]
    return any(is_pipe(place) for place in places)


def is_pipe(path: bytes) -> bool:
    """True when opening this path could block forever."""
    try:
        mode = Path(os.fsdecode(path)).stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def is_unicode(name: bytes) -> bool:
    """True when the library accepts this name."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
