"""Files that are written out of Phoenix: the owner's alone, whole or not at all, and never over another one."""

from __future__ import annotations

import os
from pathlib import Path

from phoenix_tui.cli.exits import CommandError


def write_new(path: Path, text: str) -> None:
    """Write a file that was not there; a pipe or a device that is there is written to.

    Raises:
        CommandError: one sentence that says why not.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(text.encode("utf-8", "replace"))
            return
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise CommandError(f"{path} exists already: name another file.") from error
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
