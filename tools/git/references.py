"""References of a repository as files, read and written without git and its configuration (SECURITY V2).

A reference is written as git writes it: a lock beside it, made exclusively, the present value compared, then renamed.
No part of the way to it may be a link.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tools.clean import reveal_name
from tools.files.location import Location
from tools.files.opening import opened_folder
from tools.git.failure import GitFailure
from tools.git.repository import MOST_REFERENCES, NAME, SMALL, read_small

BRANCHES: Final = "refs/heads/"
PLACES: Final = ("refs/heads/", "refs/tags/", "refs/remotes/")
LONGEST_NAME: Final = 200
"""Characters of a name that a user or a record may give."""
_PART: Final = re.compile(r"(?![.-])[^\x00-\x20\x7f~^:?*\[\\]+(?<![.])")
NEVER: Final = ("..", "@{", "//")


def is_name(name: str) -> bool:
    """True for the name of a branch or tag that git would take, and that begins with no dash."""
    parts = name.split("/")
    fits = 0 < len(name) <= LONGEST_NAME and name != "@" and not any(word in name for word in NEVER)
    return fits and all(_PART.fullmatch(part) and not part.endswith(".lock") for part in parts)


def read_reference(common: Path, name: str) -> str:
    """The object that the full `name` names, as 40 or 64 hexadecimal digits; empty where there is none."""
    said = read_small(common / name).strip() if _is_file(common / name) else b""
    if not said:
        packed = read_small(common / "packed-refs", MOST_REFERENCES)
        found = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(os.fsencode(name)) + rb"$", packed, re.MULTILINE)
        said = found[1] if found else b""
    return said.decode("ascii") if NAME.fullmatch(said) else ""


def has_below(common: Path, name: str) -> bool:
    """True where references have `name` as a folder."""
    with suppress(OSError):
        if any(files for _, _, files in os.walk(common / name)):
            return True
    packed = read_small(common / "packed-refs", MOST_REFERENCES)
    return b" " + os.fsencode(name) + b"/" in packed


@contextmanager
def locked_reference(common: Path, name: str, expected: str) -> Generator[Callable[[str], None]]:
    """Hold the lock of a reference that has the value `expected`, empty for none; gives the function that sets it.

    Raises:
        GitFailure: it has another value, is held by another git, or cannot be written.
    """
    parts = tuple(name.split("/"))
    leaf, lock = parts[-1], f"{parts[-1]}.lock"
    try:
        with opened_folder(Location(common, parts, name), create=True) as folder:
            descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=folder)
            try:
                if read_reference(common, name) != expected:
                    raise GitFailure(f"{reveal_name(name)} was changed by another program; try again.")

                def put(value: str) -> None:
                    os.write(descriptor, f"{value}\n".encode("ascii"))
                    os.fsync(descriptor)
                    os.rename(lock, leaf, src_dir_fd=folder, dst_dir_fd=folder)

                yield put
            finally:
                os.close(descriptor)
                with suppress(OSError):
                    os.unlink(lock, dir_fd=folder)
    except FileExistsError:
        where = reveal_name(common / f"{name}.lock")
        raise GitFailure(f"Another git is at work here; if none is, remove {where}.") from None
    except OSError as error:
        raise GitFailure(f"{reveal_name(common / name)} cannot be written: {error.strerror}.") from None


def set_reference(common: Path, name: str, value: str, expected: str) -> None:
    """Set a reference that has the value `expected`, empty for none. Raises GitFailure."""
    with locked_reference(common, name, expected) as put:
        put(value)


def drop_new_reference(common: Path, name: str, value: str) -> None:
    """Remove a reference that was made just now, where it still has this value."""
    with suppress(GitFailure), locked_reference(common, name, value):
        (common / name).unlink(missing_ok=True)


def log_change(folder: Path, name: str, values: tuple[str, str], who: str, why: str) -> None:
    """Append a move of a reference from one value to another to its log, as git does; `who` is `NAME <ADDRESS>`."""
    old, new = values
    zone = time.strftime("%z")
    line = f"{old or '0' * len(new)} {new} {who} {int(time.time())} {zone}\t{why}\n"
    parts = ("logs", *name.split("/"))
    with suppress(OSError), opened_folder(Location(folder, parts, name), create=True) as inside:
        how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(parts[-1], how, 0o666, dir_fd=inside)
        try:
            os.write(descriptor, line.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)


def named_object(common: Path, text: str) -> tuple[str, str]:
    """The object of a branch, tag or remote branch, or the given digits of one; and the branch, where it is one."""
    if is_name(text):
        for place in PLACES:
            if found := read_reference(common, f"{place}{text}"):
                return found, text if place == BRANCHES else ""
    return (text, "") if re.fullmatch(r"[0-9a-f]{4,64}", text) else ("", "")


def _is_file(path: Path) -> bool:
    with suppress(OSError, ValueError):
        return path.is_file() and path.stat().st_size <= SMALL
    return False
