"""Scenes of several conversations in one screen, and of the approvals that wait in them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from screenshots.dialogue import runs, says
from screenshots.studio import Studio, screen
from tests.support.journeys import Answer, picks, starts_to_say
from tests.support.loopback import Seen, serve
from tests.support.program import CTRL_N, ESC, Program

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
ALT_A: Final = b"\x1ba"
GUARD: Final = 0.7
EXPLAIN: Final = (
    "It doubles the wait after each failed try.\n\n",
    "| try | wait |\n| --- | ---: |\n| 1 | 0.5 s |\n| 2 | 1 s |\n| 3 | 2 s |\n\n",
    "After the fifth it gives up and the webhook is kept for the next sweep, ",
    "which begins ten minutes later and so it goes on",
)
RELEASE, CLEAN, BACKOFF = "Tag the release", "Clean the build", "Explain the backoff"
TALKS: Final[dict[str, Answer]] = {
    BACKOFF: starts_to_say(*EXPLAIN),
    CLEAN: runs("rm -rf build && make all\nmake test", "The build folder holds stale objects. I start from scratch."),
    RELEASE: runs("git tag v1.4.0 && git push origin v1.4.0", "Every test passes. I tag this commit and push the tag."),
}
SEEN: Final = {BACKOFF: "goes on", CLEAN: "bash asks", RELEASE: "bash asks"}


def choose(seen: Seen) -> Answer:
    """Each conversation's own reply; a request for a title gets a short one."""
    return next((talk for words, talk in TALKS.items() if words in str(seen.json["messages"])), says("Fine."))


async def talk(running: Program) -> None:
    """Three conversations at work."""
    for words in TALKS:
        await running.send(words)
        await running.shows(SEEN[words])
        if words != RELEASE:
            running.type(CTRL_N)
            await running.shows("New conversation")


async def beside(running: Program, title: str, seen: str) -> None:
    """One more pane."""
    running.type(f"/split {title}")
    await asyncio.sleep(0.3)
    running.type("\r")
    await running.shows(seen)
    await asyncio.sleep(GUARD)


async def panes(place: Studio, name: str, columns: int, rows: int) -> None:
    """Three conversations in panes."""
    async with (
        serve(picks(choose)) as server,
        screen(place.phoenix(server.url), columns=columns, rows=rows) as running,
    ):
        await talk(running)
        await beside(running, CLEAN, "make test")
        if columns >= 100:
            await beside(running, BACKOFF, "goes on")
        await place.take(name, running)
        running.type(b"\x1b[1;3D")
        await asyncio.sleep(GUARD)
        await place.take(f"{name}-asking", running)


async def approvals(place: Studio, name: str, columns: int, rows: int) -> None:
    """The queue of approvals, and a rule before it is kept."""
    async with (
        serve(picks(choose)) as server,
        screen(place.phoenix(server.url), columns=columns, rows=rows) as running,
    ):
        await talk(running)
        running.type(ALT_A)
        await running.shows("2 approvals wait")
        await asyncio.sleep(GUARD)
        await place.take(name, running)
        running.type(ESC)
        await running.lacks("2 approvals wait")
        await asyncio.sleep(GUARD)
        running.type("a")
        await running.shows("Enter allows in this project")
        await place.take(f"{name}-rule", running)


SCENES: Final[dict[str, Scene]] = {
    "panes": partial(panes, name="panes-200x60", columns=200, rows=60),
    "panes-120": partial(panes, name="panes-120x40", columns=120, rows=40),
    "panes-80": partial(panes, name="panes-80x24", columns=80, rows=24),
    "approvals": partial(approvals, name="approvals-120x40", columns=120, rows=40),
    "approvals-80": partial(approvals, name="approvals-80x24", columns=80, rows=24),
}
