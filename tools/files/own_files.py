"""Files that Phoenix keeps for itself: read as what they are, wherever a link or a pipe took their place."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_own(path: Path) -> bytes:
    """The content of a regular file; a link is not followed, and a pipe holds nobody up.

    Raises:
        OSError: it is gone, or something else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        return file.read()
