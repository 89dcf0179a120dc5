"""What Phoenix does to its own process: commands can neither read it nor outlive it, and it stays small."""

from __future__ import annotations

import contextlib
import re
import sys

PROCESS_NAME = "phoenix"
SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
"""Names of variables whose values no other process is to see."""


def harden(*, debuggable: bool = False) -> None:
    """Adopt orphans, close `/proc/<phoenix>` to others, blank the keys in it, take a name `pkill python` passes by.

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
            kernel.hide_in_environment(lambda name: SECRET.search(name) is not None)
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
