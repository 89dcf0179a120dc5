"""Scenes of the conversation itself: the block cursor, turns, diffs at two widths, images."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from screenshots.dialogue import THE_FIX, says
from screenshots.studio import Studio, screen
from tests.support.loopback import serve
from tests.support.program import ENTER, Program
from tests.support.story import CODE, FIX, REPORT, REST

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
ALT_UP: Final = b"\x1b[1;3A"
F2: Final = b"\x1bOQ"
CTRL_O: Final = b"\x0f"
MOST_BLOCKS: Final = 12


async def image(place: Studio, name: str, columns: int, rows: int) -> None:
    """An image in the conversation, small and large."""
    words = "One bar stands out: the **sixth** minute."
    async with serve(says(words)) as server, screen(place.phoenix(server.url), columns=columns, rows=rows) as running:
        running.paste(str(place.folder / "robin" / "latency.png"))
        await running.until(lambda: "image" in running.words, "a chip")
        running.type("What is wrong in this chart?")
        running.type(ENTER)
        await running.shows("minute.", "ready", "▀")
        await place.take(name, running)
        running.type(ALT_UP + b"k\r")
        await running.shows("▌image")
        await place.take(f"{name}-large", running)


async def worked(place: Studio, name: str, columns: int, rows: int) -> None:
    """A turn with a change, then one with code: blocks, turns, the diff opened."""
    async with (
        serve(*THE_FIX, says(REPORT + REST), says(CODE)) as server,
        screen(place.phoenix(server.url), "--permission-mode", "auto", columns=columns, rows=rows) as running,
    ):
        await running.send(FIX)
        await running.shows("One thing to decide", "ready")
        await running.send("Show me the loop as it is now.")
        await running.shows("make test", "ready")
        running.type(ALT_UP + b"j")
        await running.shows("▌python code")
        await place.take(f"{name}-code", running)
        running.type(b"\x1b")
        await asyncio.sleep(0.2)
        running.type(F2)
        await running.shows("Turns")
        await place.take(f"{name}-turns", running)
        await _leave(running)
        running.type(CTRL_O + ALT_UP + b"g")
        await running.shows("▌prompt")
        await place.take(f"{name}-prompt", running)
        for _ in range(MOST_BLOCKS):
            if "▌patch" in running.words:
                break
            running.type(b"j")
            await asyncio.sleep(0.2)
        await place.take(f"{name}-diff", running)


async def _leave(running: Program) -> None:
    running.type(b"\x1b")
    await running.until(lambda: "Enter jumps" not in running.words, "the list closed")


SIZES: Final = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
SCENES: Final[dict[str, Scene]] = {
    **{
        f"transcript-{size}": partial(worked, name=f"transcript-{size}", columns=columns, rows=rows)
        for size, (columns, rows) in SIZES.items()
    },
    **{
        f"picture-{size}": partial(image, name=f"picture-{size}", columns=columns, rows=rows)
        for size, (columns, rows) in SIZES.items()
    },
}
