"""Scenes of the rest: palette, help, settings, the user's own colours, a broken file, plain lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from screenshots.scenes_search import library
from screenshots.studio import Studio, screen
from tests.support.browser import CHROMIUM, browser
from tests.support.program import ESC, program
from tests.support.story import DAWN

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
SHOWN: Final = 3.0
"""Seconds until a tab shows what was asked of it: what it draws cannot be read."""
CTRL_P: Final = b"\x10"
F1: Final = b"\x1bOP"
SETTINGS: Final = '# mine\nmodel = "demo/guide"\nnotifications = "bell"\nmax_turns = 40\n'


async def rest(place: Studio, name: str, columns: int, rows: int) -> None:
    """Palette, found in the palette, help, found in the help, settings, an edited one."""
    phoenix = await library(place)
    (phoenix.home / "config.toml").write_text(SETTINGS, "utf-8")
    async with screen(phoenix, columns=columns, rows=rows) as running:
        running.type(CTRL_P)
        await running.shows("Commands and settings")
        await place.take(f"palette-{name}", running)
        running.type("flak")
        await running.shows("1 /")
        await place.take(f"palette-{name}-found", running)
        running.type(ESC)
        await running.lacks("Commands and settings")
        running.type(F1)
        await running.shows("Everyday keys")
        await place.take(f"help-{name}", running)
        running.type("cut")
        await running.shows("cut the word before")
        await place.take(f"help-{name}-found", running)
        running.type(ESC)
        await running.lacks("Everyday keys")
        running.type("/config\r")
        await running.shows("Settings")
        await place.take(f"settings-{name}", running)
        running.type("notif\r")
        await running.shows("Enter applies", "off")
        await place.take(f"settings-{name}-choices", running)


async def colours(place: Studio) -> None:
    """A theme of the user's own, live; then a mistake in it."""
    phoenix = await library(place)
    themes = phoenix.home / "themes"
    themes.mkdir()
    (themes / "dawn.toml").write_text(DAWN, "utf-8")
    async with screen(phoenix) as running:
        running.type("/theme dawn\r")
        await running.shows("? help")
        await place.take("theme-own", running)
        (themes / "dawn.toml").write_text(DAWN.replace("#6c71c4", "violet"), "utf-8")
        await running.shows("must be a colour")
        await place.take("theme-mistake", running)


async def lines(place: Studio) -> None:
    """Plain lines for a screen reader."""
    async with program(place.phoenix(), "--screen-reader", "-m", "demo/guide", columns=100, rows=30) as running:
        await running.shows("You:")
        running.type("run git tag checked\r")
        await running.shows("Answer:")
        running.type("y\r")
        await running.shows("Ready")
        await place.take("screen-reader", running)


async def tab(place: Studio) -> None:
    """A tab of `phoenix serve`; none is made where there is no Chromium."""
    if not CHROMIUM:
        return
    process = await place.phoenix().start("serve", "--port", "0", "--json", "--", "-m", "demo/guide")
    assert process.stdout is not None
    try:
        url = json.loads(await process.stdout.readline())["url"]
        async with browser() as page:
            await page.open(url)
            await page.until("document.body.className.includes('byte')")
            await asyncio.sleep(SHOWN)
            await page.click(700, 300)
            await page.type("describe this project\n")
            await asyncio.sleep(SHOWN)
            await page.picture(place.gallery / "browser.png")
            place.taken.append("browser")
    finally:
        process.terminate()
        await process.wait()


SCENES: Final[dict[str, Scene]] = {
    **{
        f"rest-{columns}x{rows}": partial(rest, name=f"{columns}x{rows}", columns=columns, rows=rows)
        for columns, rows in ((60, 20), (80, 24), (120, 40), (200, 60))
    },
    "colours": colours,
    "lines": lines,
    "browser": tab,
}
