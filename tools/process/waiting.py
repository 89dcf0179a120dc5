"""Waiting for work that must be completed even if the waiting task is cancelled."""

from __future__ import annotations

import asyncio
from typing import TypeVar

Result = TypeVar("Result")


async def to_the_end(task: asyncio.Task[Result]) -> Result:
    """Wait for `task` however often the caller is cancelled; the cancellation follows then."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()
