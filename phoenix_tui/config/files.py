"""Private folders and files: 0700 and 0600 whatever the umask, replaced whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Make `folder` and its parents; the folder itself ends as 0700 (FAULTS 69).

    Raises:
        OSError: it cannot be made or does not belong to this user.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def read_regular(path: Path, limit: int, *, follow: bool = True) -> bytes | None:
    """The first `limit` bytes of a regular file; None for anything else: no pipe or device is opened.

    Without `follow` a path that is a link is refused, too.
    """
    link = 0 if follow else os.O_NOFOLLOW
    try:
        if not stat.S_ISREG(path.stat(follow_symlinks=follow).st_mode):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | link)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def write_private(path: Path, content: str) -> None:
    """Replace `path` by `content`, mode 0600, through a file beside it.

    Raises:
        OSError: the folder cannot be written.
    """
    make_private_folder(path.parent)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def toml_text(text: str) -> str:
    """`text` as a TOML string; JSON's rules are TOML's but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
