"""A folder a sandboxed command may not write in."""

from __future__ import annotations

import contextlib
import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def folder_outside_temp() -> Iterator[Path]:
    """A new folder in a home or the checkout, the first that is not below temp; skips when all are."""
    temporary = [Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")]
    users = Path(pwd.getpwuid(os.getuid()).pw_dir)  # HOME may be an empty folder made for these tests
    homes = [
        path
        for path in (Path.home(), users, ROOT)
        if not any(path.resolve().is_relative_to(temp) for temp in temporary) and os.access(path, os.W_OK)
    ]
    if not homes:
        pytest.skip("home and checkout are both temporary folders, where a sandboxed command may write")
    with tempfile.TemporaryDirectory(prefix=".phx-outside-", dir=homes[0]) as folder:
        yield Path(folder)
