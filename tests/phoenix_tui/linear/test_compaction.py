"""Lines that come while a summary is being written."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from phoenix_tui.linear.context import next_proposal
from phoenix_tui.linear.line_buffer import LineTyped
from phoenix_tui.linear.terminal import LineTerminal


async def test_a_line_typed_in_the_moment_in_which_the_summary_ends_is_not_lost() -> None:
    terminal = LineTerminal(ascii_only=False)
    terminal.keyboard.is_terminal = True
    rested = asyncio.Event()
    ctx = cast("Any", SimpleNamespace(terminal=terminal, active=SimpleNamespace(rested=rested)))
    waiting = asyncio.ensure_future(next_proposal(ctx, asyncio.Queue()))
    await asyncio.sleep(0)
    rested.set()
    terminal.take_input("/state\r")
    assert await waiting is None
    assert await terminal.next_request() == LineTyped("/state")
