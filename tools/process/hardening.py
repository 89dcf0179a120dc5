"""Protection of Phoenix's own process: commands can neither read it nor outlive it, and it stays small."""

from __future__ import annotations

import contextlib
import sys

PROCESS_NAME = "phoenix"
SHOWN = frozenset({
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "TMPDIR",
    "LD_LIBRARY_PATH",
})
"""Variables whose values other processes may see: any other one may hold a key under whatever name."""
SHOWN_PREFIX = "LC_"


def is_shown(name: str) -> bool:
    """True for a variable that holds no secret."""
    return name in SHOWN or name.startswith(SHOWN_PREFIX)


def harden(*, debuggable: bool = False) -> None:
    """Adopt orphans, close `/proc/<phoenix>` to others, blank the keys in it, take a name `pkill python` passes by.

    `debuggable` leaves core dumps and debuggers working, and with them the memory readable.
    """
    if sys.platform != "linux":
        return
    from tools.process.zygote import kernel  # noqa: PLC0415 - Linux alone can load it

    kernel.use_one_heap()  # 1.2 MB less after a first turn; threads come later
    with contextlib.suppress(OSError):
        kernel.rename_process(PROCESS_NAME)
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        kernel.hide_in_environment(lambda name: not is_shown(name))
        if not debuggable:
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
