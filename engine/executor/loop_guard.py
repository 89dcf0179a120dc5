"""Notices a model that makes one call with the same result again and again (SPEC CLAW-60, the first of its rules)."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from engine.machine.messages import ToolCall

WARN_AT: Final = 3
STOP_AT: Final = 5
"""Times in a row (SPEC CLAW-60)."""
WAITING: Final = frozenset({"job_output"})
"""Tools by which a model waits: their output may stay the same for long."""


class LoopGuard(Struct, eq=False):
    """The last call of a run, and how often it came in a row."""

    _last: tuple[str, str, str] = ("", "", "")
    """Tool, arguments, result."""
    _times: int = 0

    def count(self, call: ToolCall, result: str) -> int:
        """Take a call that has ended; returns how often in a row it gave this result, 1 for the first time."""
        if call.name in WAITING:
            return 1
        same = (call.name, _plain(call.input_json), result)
        self._times = self._times + 1 if same == self._last else 1
        self._last = same
        return self._times


def warning(times: int) -> str:
    """Warning to the model below a repeated result; empty while it may be chance."""
    if times < WARN_AT:
        return ""
    return (
        f"\n\n[This same call has given this same result {times} times in a row. Do something else, or say what keeps "
        f"you from going on; after {STOP_AT} times the run ends.]"
    )


def _plain(arguments: str) -> str:
    """Arguments without irrelevant differences: blanks and the order of fields."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments.encode("utf-8", "replace")), order="sorted").decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return arguments
