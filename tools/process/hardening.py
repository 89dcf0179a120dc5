"""What Phoenix does to its own process, so that commands can neither read it nor outlive it."""

from __future__ import annotations

import contextlib
import sys

PROCESS_NAME = "phoenix"


def harden(*, debuggable: bool = False) -> None:
    """Adopt orphans, close `/proc/<phoenix>` to other processes, and take a name `pkill python` passes by.

    `debuggable` leaves core dumps and debuggers working, and with them the environment readable.
    """
    if sys.platform != "linux":
        return
    from tools.process.zygote import kernel  # noqa: PLC0415 - Linux alone can load it

    with contextlib.suppress(OSError):
        kernel.rename_process(PROCESS_NAME)
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        if not debuggable:
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
