"""The end of a program in a pseudo-terminal."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any


def end(process: Any) -> None:
    """Kill a `PtyProcess` and reap it; its own `close` sleeps, and gives up on a busy machine."""
    if process.isalive():
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    if not process.closed:
        process.fileobj.close()
        process.fd, process.closed = -1, True
