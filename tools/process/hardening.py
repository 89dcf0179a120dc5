"""What Phoenix does to its own process: commands can neither read it nor outlive it, and it stays small."""

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

    kernel.use_one_heap()  # 1.2 MB less after a first turn; threads come later
    with contextlib.suppress(OSError):
        kernel.rename_process(PROCESS_NAME)
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        if not debuggable:
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
