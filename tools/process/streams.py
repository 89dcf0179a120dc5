"""Streams of a supervised program as process control sees them: descriptors for the child, an output to collect."""

from __future__ import annotations

import os
import tempfile
from typing import Protocol

from tools.contract import Captured
from tools.process.zygote.wire import Streams


class ProgramStreams(Protocol):
    """Both ends of stdin, stdout and stderr; made for one start of a program."""

    def child_ends(self) -> Streams:
        """Stdin, stdout and stderr of the program; one descriptor may serve for several.

        Raises:
            OSError: they cannot be made.
        """
        ...

    def start(self) -> None:
        """Close the child's ends, which the supervisor has now, and begin to read."""
        ...

    def fall_silent(self) -> None:
        """Report nothing more."""
        ...

    def captured(self) -> Captured:
        """The collected output so far."""
        ...

    async def finish(self) -> Captured:
        """Collect the rest and close every descriptor without another owner; also when `start` was never called."""
        ...


def content_as_file(content: bytes | None) -> int:
    """Open a descriptor that gives `content` and then ends, without a writer; /dev/null for None.

    Raises:
        OSError: there is no room for it.
    """
    if content is None:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        return os.dup(file.fileno())
