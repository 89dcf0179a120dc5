"""Scenes of the list: groups, filter, marks, a look inside, archive and trash, at every width."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from engine.store import StorePaths
from screenshots.dialogue import runs, says
from screenshots.library import make_library
from screenshots.studio import Studio, screen
from tests.support.cli import Phoenix
from tests.support.journeys import Answer, picks, starts_to_say
from tests.support.loopback import Seen, serve
from tests.support.program import CTRL_N, ESC, Program

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
CTRL_L: Final = b"\x0c"
GUARD: Final = 0.7
MANY: Final = 60
WORDS: Final = (
    "The wait doubles after every failed try: 0.5 s, 1 s, 2 s.\n\n",
    "After the fifth it gives up and the webhook is kept for the next sweep, ",
    "which begins ten minutes later and so it goes on",
)
TALKS: Final[dict[str, Answer]] = {
    "Explain the backoff": starts_to_say(*WORDS),
    "Clean the build": runs("rm -rf build && make all", "The build folder holds stale objects. I start from scratch."),
    "Name the release": says("Call it 1.4.0: two features, nothing breaks."),
}
SEEN: Final = {"Explain the backoff": "goes on", "Clean the build": "bash asks", "Name the release": "nothing breaks"}


def choose(seen: Seen) -> Answer:
    """Each conversation's own reply."""
    return next((talk for words, talk in TALKS.items() if words in str(seen.json["messages"])), says("Fine."))


async def filled(place: Studio, url: str) -> Phoenix:
    """An installation in which someone has worked for a while."""
    phoenix = place.phoenix(url)
    folder = place.folder / "robin"
    await asyncio.to_thread(make_library, StorePaths.under(folder), folder / "src", time.time(), MANY, 200)
    return phoenix


async def at_work(running: Program) -> None:
    """One answers, one asks, one has answered; the screen shows a new one."""
    for words, seen in SEEN.items():
        await running.send(words)
        await running.shows(seen)
        running.type(CTRL_N)
        await running.shows("New conversation")


async def conversations(place: Studio, columns: int, rows: int) -> None:
    """The list at work, its filter, its marks, a look inside, the trash."""
    name = f"list-{columns}x{rows}"
    async with serve(picks(choose)) as server:
        phoenix = await filled(place, server.url)
        async with screen(phoenix, columns=columns, rows=rows) as running:
            await at_work(running)
            running.type(CTRL_L)
            await running.shows("needs you", "? keys")
            running.type("jjj")
            await asyncio.sleep(GUARD)
            running.type("t")
            await running.shows("pinned")
            await place.take(name, running)
            running.type("/clean")
            await running.shows("/clean")
            await place.take(f"{name}-filter", running)
            running.type("\r")
            await running.shows("bash asks")
            running.type(CTRL_N)
            await running.shows("New conversation")
            await looked_into(place, name, running)
            running.type("jjjj   ")
            await running.shows("marked")
            await place.take(f"{name}-marks", running)
            running.type("z")
            await asyncio.sleep(GUARD)
            await place.take(f"{name}-zoomed", running)
            running.type("zd")
            await running.shows("to the trash")
            running.type("D")
            await running.shows("Trash", "deletes permanently")
            await place.take(f"{name}-trash", running)


async def looked_into(place: Studio, name: str, running: Program) -> None:
    """A question, then an answer that arrives."""
    running.type(CTRL_L)
    await running.shows("? keys")
    running.type("/clean")
    await running.shows("/clean")
    running.type(b"\x1b[C")
    await running.shows("rm -rf build", "No, tell it")
    await place.take(f"{name}-peek-question", running)
    running.type(ESC)
    await asyncio.sleep(GUARD)
    running.type(ESC)
    await running.lacks("/clean")
    running.type("/backoff")
    await running.shows("/backoff")
    running.type(b"\x1b[C")
    await running.shows("an empty line opens")
    await place.take(f"{name}-peek", running)
    running.type(ESC)
    await asyncio.sleep(GUARD)
    running.type(ESC)
    await running.lacks("/backoff")


SCENES: Final[dict[str, Scene]] = {
    f"list-{columns}x{rows}": partial(conversations, columns=columns, rows=rows)
    for columns, rows in ((60, 20), (80, 24), (120, 40), (200, 60))
}
