"""Writing: the queue, the history search, files and arguments that complete, a long paste, images, a shell line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from screenshots.studio import SETTLED, Studio, screen
from tests.support.journeys import says, starts_to_say
from tests.support.loopback import serve
from tests.support.program import ENTER, ESC

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
TAB, UP, CTRL_R, CTRL_U, LEFT = b"\t", b"\x1b[A", b"\x12", b"\x15", b"\x1b[D"
QUEUED: Final = (
    "Then run the tests and tell me which of them are slow.",
    "Write the changelog entry for it:\none line, what a user sees, no names of functions.",
    "Look at retry.py too, wide 漢字 and émoji 🎉 must stay aligned",
)
PROMPTS: Final = (
    ("Explain how relay/backoff.py waits.", "It doubles the pause up to a limit."),
    ("Write a test for the backoff limit\nand run it", "The test is written and passes."),
)
LOG: Final = "\n".join(
    f"12:00:{n % 60:02} relay[{n}] forwarded {n * 17 % 400} bytes to peer-{n % 5}" for n in range(400)
)


async def queue(place: Studio, name: str, columns: int, rows: int) -> None:
    """Three messages wait; one is edited; a stop holds them."""
    begun = starts_to_say("I read the relay's files first, then I change the back-off.")
    async with serve(begun) as server, screen(place.phoenix(server.url), columns=columns, rows=rows) as running:
        await running.ready()
        await running.send("Make the back-off of the relay longer.")
        await running.shows("I read the relay")
        for number, text in enumerate(QUEUED, start=1):
            running.paste(text)
            await running.shows(text.splitlines()[0][:20])
            running.type(TAB)
            await running.shows(f"queue {number} ")
        await place.take(f"{name}", running)
        running.type(UP + UP)
        await running.shows("Enter edits")
        await place.take(f"{name}-keys", running)
        running.type(ENTER)
        await running.shows("Ctrl+S saves")
        await place.take(f"{name}-edit", running)
        running.type(ESC)
        await running.lacks("Ctrl+S saves")
        running.type(ESC)
        await running.shows("Esc stops")
        running.type(ESC)
        await running.shows("paused")
        await place.take(f"{name}-held", running)


async def writing(place: Studio, name: str, columns: int, rows: int) -> None:
    """All that opens above the line."""
    async with (
        serve(*(says(answer) for _, answer in PROMPTS)) as server,
        screen(place.phoenix(server.url), columns=columns, rows=rows) as running,
    ):
        await running.ready()
        for text, answer in PROMPTS:
            running.paste(text)
            await running.shows(text[:12])
            running.type(ENTER)
            await running.shows(answer, "○ ready")
            await asyncio.sleep(SETTLED)
        running.type(CTRL_R)
        await running.shows("History")
        running.type("backoff")
        await running.shows("1 / 2")
        await place.take(f"{name}-history", running)
        running.type(ESC)
        await running.lacks("History")
        running.type("look at @ba")
        await running.shows("backoff.py")
        await place.take(f"{name}-files", running)
        running.type(CTRL_U)
        running.type("/model ")
        await running.shows("/model WORD")
        await place.take(f"{name}-argument", running)
        running.type(CTRL_U)
        running.type("!python3 -m unittest -q")
        await running.shows("the model reads the output")
        await place.take(f"{name}-shell", running)
        running.type(CTRL_U)
        running.type("Why is this slow? ")
        running.paste(LOG)
        await running.shows("[pasted 1")
        running.paste(str(place.folder / "robin" / "latency.png"))
        await running.shows("[image 1")
        await place.take(f"{name}-paste", running)
        running.type(LEFT)
        await asyncio.sleep(SETTLED)
        running.type(ENTER)
        await running.shows("Ctrl+F replaces it with a file")
        await place.take(f"{name}-paste-open", running)
        running.type(ESC)
        await running.lacks("Ctrl+F")
        running.type(b"\x05" + CTRL_U)
        running.type("/images\r")
        await running.shows("removes it", "▀▀▀")
        await place.take(f"{name}-image", running)


SIZES: Final = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
SCENES: Final[dict[str, Scene]] = {
    **{f"queue-{size}": partial(queue, name=f"queue-{size}", columns=c, rows=r) for size, (c, r) in SIZES.items()},
    **{
        f"writing-{size}": partial(writing, name=f"writing-{size}", columns=c, rows=r) for size, (c, r) in SIZES.items()
    },
}
