"""Ends the programs that a Phoenix which died had running, if they are still the same ones."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable

from engine.records import Recovery
from tools.process.zygote.tree import send, start_ticks


def end_leftovers(recoveries: Iterable[Recovery]) -> None:
    """Kill each noted process whose start time is the noted one: a pid alone may belong to another process by now."""
    if sys.platform != "linux":
        return
    for recovery in recoveries:
        for pid, started in recovery.processes:
            if started and start_ticks(pid) == started:
                send(pid, signal.SIGKILL)
