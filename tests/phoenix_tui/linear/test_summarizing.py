"""Lines that come while a summary is being written."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

from phoenix_tui.linear.editing import Typed
from phoenix_tui.linear.summarizing import next_proposal
from phoenix_tui.linear.terminal import LineTerminal


async def test_a_line_typed_in_the_moment_in_which_the_summary_ends_is_not_lost() -> None:
    terminal = LineTerminal(ascii_only=False, clock=time.monotonic)
    terminal.keyboard.is_terminal = True
    rested = asyncio.Event()
    front = cast("Any", SimpleNamespace(terminal=terminal, talk=SimpleNamespace(rested=rested)))
    waiting = asyncio.ensure_future(next_proposal(front, asyncio.Queue()))
    await asyncio.sleep(0)
    rested.set()
    terminal.keyboard._take("/state\r")  # pyright: ignore[reportPrivateUsage] - as the terminal's reader does
    assert await waiting is None
    assert await terminal.next_wish() == Typed("/state")
