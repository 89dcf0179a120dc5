"""The screen given back for another program, once the terminal has taken everything that Phoenix wrote."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from textual.app import App

from phoenix_tui.terminal import state

LOOK: Final = 0.25
"""Seconds that the wait for the writing thread may outlast its cancelling."""


@asynccontextmanager
async def suspended(app: App[object]) -> AsyncGenerator[None]:
    """Give the screen back for the time of the block, and draw all of it again behind it.

    A terminal that takes nothing for a while (a slow line) delays the block: what Phoenix wrote before would come
    amidst the other program's output.

    Raises:
        OSError, termios.error: the terminal is gone.
        SuspendNotSupported: this one cannot be given back.
    """
    with app.batch_update(), app.suspend():
        while (writer := state.writer()) is not None:
            await asyncio.to_thread(writer.join, LOOK)
        yield
    app.refresh(layout=True)
