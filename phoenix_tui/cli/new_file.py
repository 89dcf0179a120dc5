"""Files that are written out of Phoenix: the owner's alone, whole or not at all, and never over another one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from phoenix_tui.cli.exits import CommandError
from tools.files.own_files import new_file

UNREAD = "no program reads from it"


def write_new(path: Path, text: str) -> None:
    """Write a file that was not there; a pipe or a device that is there is written to.

    Raises:
        CommandError: one sentence that says why not.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            _write_through(path, text)
            return
        opened = new_file(path)
    except FileExistsError as error:
        raise CommandError(f"{path} already exists; give another file name.") from error
    except OSError as error:
        reason = UNREAD if error.errno == errno.ENXIO else error.strerror
        raise CommandError(f"{path} cannot be written: {reason}.") from error
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error


def _write_through(path: Path, text: str) -> None:
    """Write to an existing path other than a regular file; raises OSError (ENXIO) for an unread pipe."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8", "replace"))
