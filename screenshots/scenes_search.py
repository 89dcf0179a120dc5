"""Scenes of searching: everything that was said, a hit in its conversation, finding in one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from engine.store import StorePaths
from screenshots.library import make_library
from screenshots.studio import Studio, screen
from tests.support.cli import Phoenix
from tests.support.program import ESC

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
CTRL_F: Final = b"\x06"
CONVERSATIONS: Final = 60
LONG: Final = 600


async def library(place: Studio) -> Phoenix:
    """An installation with many conversations."""
    phoenix = place.phoenix()
    root = phoenix.cwd.parent
    await asyncio.to_thread(
        make_library, StorePaths.under(phoenix.home), root, time.time(), count=CONVERSATIONS, long=LONG
    )
    return phoenix


async def search(place: Studio, name: str, columns: int, rows: int) -> None:
    """Results, the jump to one, a mistake."""
    async with screen(await library(place), columns=columns, rows=rows) as running:
        running.type("/search\r")
        await running.shows("All words must occur")
        if name in WHOLE:
            await place.take(f"{name}-empty", running)
        running.type("lock flush")
        await running.shows("1 of ")
        await place.take(name, running)
        running.type("\r")
        await running.shows("Hit 1 of")
        await place.take(f"{name}-hit", running)
        running.type(ESC)
        await running.shows("Enter opens")
        running.type(" role:boss")
        await running.shows("is not a role")
        await place.take(f"{name}-mistake", running)
        if name in WHOLE:
            running.type(b"\x7f" * 20)
            await running.shows("All words must occur")
            running.type('"pytest -q" role:tool')
            await running.shows("1 of ")
            await place.take(f"{name}-tools", running)


async def find(place: Studio, name: str, columns: int, rows: int) -> None:
    """Finding in one conversation."""
    async with screen(await library(place), "-r", "a year of pair programming", columns=columns, rows=rows) as running:
        await running.shows("ready")
        running.type(CTRL_F)
        await running.shows("find in this conversation")
        running.type("wait")
        await running.shows("672 of 672")
        running.type("\r\r\r")
        await running.shows("669 of 672")
        await place.take(name, running)


WHOLE: Final = ("search-120x40",)
"""Scenes of which every step is a picture."""
SIZES: Final = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60), "60x20": (60, 20)}
SCENES: Final[dict[str, Scene]] = {
    **{f"search-{size}": partial(search, name=f"search-{size}", columns=c, rows=r) for size, (c, r) in SIZES.items()},
    **{f"find-{size}": partial(find, name=f"find-{size}", columns=c, rows=r) for size, (c, r) in SIZES.items()},
}
