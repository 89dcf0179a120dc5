"""Goes back in a conversation and dies at the n-th change to the disk: `rewind_child HOME CONVERSATION SEQ N`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from engine.rewind.rewind import RewindScope
from tests.support.rewinding import scene

COUNTED = ("rename", "unlink", "rmdir", "mkdir", "symlink", "fchmod", "chmod")


def die_at(number: int, folder: Path) -> None:
    """Count what changes files beneath `folder`, and die before change `number`."""
    left = number

    def counted(name: str) -> Any:
        real = getattr(os, name)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            if "dir_fd" in named or "src_dir_fd" in named or name == "fchmod":
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
            return real(*arguments, **named)

        return wrapped

    for name in COUNTED:
        setattr(os, name, counted(name))


async def main(home: Path, conversation_id: str, seq: int, number: int) -> None:
    async with scene(home) as it:
        conversation = await it.engine.open(conversation_id)
        die_at(number, it.cwd)
        await it.rewinding.rewind(conversation.record, conversation.state, seq, RewindScope.FILES)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
