"""A process that records replies: `python -m tests.support.diagnostics_writer FOLDER NAME RECORDS ROTATE_BYTES`.

It says READY and begins at a line of stdin. Record `n` has `n` as its duration and NAME as its model.
"""

from __future__ import annotations

import sys
from pathlib import Path

from engine import diagnostics
from engine.diagnostics import Diagnostics
from engine.machine.messages import Role, StopReason, TextBlock, Usage
from engine.ports import ModelMessage, ModelReply, ModelRequest
from tests.support.crash_child import say


def main(folder: Path, name: str, records: int, rotate_bytes: int) -> None:
    """Write all records, of different lengths."""
    diagnostics.ROTATE_BYTES = rotate_bytes
    kept = Diagnostics(folder)
    say("READY")
    sys.stdin.readline()
    for number in range(records):
        words = TextBlock(f"{name} {number} " * (1 + number % 40))
        request = ModelRequest(name, (), (ModelMessage(Role.USER, (words,)),))
        kept.record_reply(request, ModelReply((words,), StopReason.END_TURN, Usage(1, 1), name), number)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
