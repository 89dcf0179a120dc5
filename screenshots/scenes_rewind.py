"""Scenes of rewinding: the list of prompts, the confirmation, changes by others, branches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from screenshots.dialogue import does, says
from screenshots.studio import Studio, screen
from tests.support.loopback import serve
from tests.support.program import ENTER, ESC, Program

GUARD: Final = 0.7
"""Seconds after a sheet opens until a letter acts."""
Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
DOWN: Final = b"\x1b[B"
RETRY: Final = '"""Counts tries."""\n\nTRIES = 0\n\n\ndef again() -> int:\n    """One more."""\n    return TRIES + 1\n'
FIRST: Final = (
    does("I add a counter.", ("write_file", "toolu_1", {"path": "relay/retry.py", "content": RETRY})),
    says("`relay/retry.py` counts tries."),
)
SECOND: Final = (
    does(
        "Two files and a note.",
        ("bash", "toolu_2", {"command": "sed -i 's/TRIES = 0/TRIES = 1/' relay/retry.py; rm -f README.md"}),
        ("write_file", "toolu_3", {"path": "docs/重試 notes.md", "content": "# Tries\n\nThey begin at 1.\n" * 4}),
    ),
    says("Tries begin at 1 now, and the notes say so."),
)
THIRD: Final = (says("Yes: `forward` asks `delay` before every try."),)


async def typed(running: Program, keys: bytes) -> None:
    """Type letters that act, once the sheet takes them."""
    await asyncio.sleep(GUARD)
    running.type(keys)


async def rewind(place: Studio, name: str, columns: int, rows: int) -> None:
    """Three turns, the list, the last look with a conflict, the branch, the tree."""
    async with serve(*FIRST, *SECOND, *THIRD, says("It is one line.")) as server:
        phoenix = place.phoenix(server.url)
        async with screen(phoenix, "--permission-mode", "auto", columns=columns, rows=rows) as running:
            await running.send("Add a counter for the tries")
            await running.shows("counts tries.", "ready")
            await running.send("Begin at 1 and write it down in the docs")
            await running.shows("notes say so.", "ready")
            await running.send("Does forward use it?")
            await running.shows("before every try.", "ready")
            running.type(ESC + ESC)
            await running.shows("Enter selects")
            running.type(DOWN + DOWN)
            await running.shows("notes.md")
            await place.take(f"{name}-list", running)
            running.type(ESC)
            await running.lacks("Enter selects")
            path = phoenix.cwd / "relay" / "retry.py"
            path.write_text(path.read_text() + "\n# by hand\n")
            await running.send("/diff")
            await running.shows("all of this conversation")
            await typed(running, b"nn")
            await running.shows("# by hand")
            await place.take(f"{name}-changes", running)
            await typed(running, b"\x1b[Cnn")
            await running.shows("Begin at 1 and write", "TRIES = 1")
            await place.take(f"{name}-turn", running)
            running.type(ESC)
            await running.lacks("Begin at 1 and write it down in the docs ›")
            running.type(ESC + ESC)
            await running.shows("Enter selects")
            running.type(DOWN + DOWN + ENTER)
            await running.shows("Rewind to before")
            await place.take(f"{name}-files", running)
            running.type(DOWN + DOWN + DOWN)
            running.type("d")
            await running.lacks("Enter rewinds")
            await place.take(f"{name}-diff", running)
            running.type(ESC)
            await running.shows("Enter rewinds")
            running.type(b"\x1b[5~" + ENTER)
            await running.shows("restored.")
            await place.take(f"{name}-done", running)
            running.type(b"\x15")
            await running.send("Shorter, please")
            await running.shows("It is one line.", "ready")
            running.type("/branches\r")
            await running.shows("you are here")
            await place.take(f"{name}-branches", running)


SIZES: Final = {"60x20": (60, 20), "80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
SCENES: Final[dict[str, Scene]] = {
    f"rewind-{size}": partial(rewind, name=f"rewind-{size}", columns=columns, rows=rows)
    for size, (columns, rows) in SIZES.items()
}
