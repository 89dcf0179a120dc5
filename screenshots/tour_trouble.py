"""Stops of the tour for bad input: words, pastes and files with mistakes, a conversation of another process."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Final

from screenshots.guide import CTRL_U, Stop, Tour
from tests.support.program import CTRL_N, CTRL_Q, ENTER, program
from tests.support.story import DAWN

TEN_MEGABYTES: Final = 10_000_000


async def words(tour: Tour) -> None:
    """A command that is none, 10 MB in one paste, control characters."""
    await tour.running.send("/nosuch")
    await tour.take("unknown-command", "There is no /nosuch")
    await tour.press(CTRL_U)
    tour.running.paste("x" * 99 + "\n" + "0123456789\n" * (TEN_MEGABYTES // 11))
    await tour.take("paste-large", "pasted 1")
    await tour.press(CTRL_U)
    tour.running.paste("PNG\x00\x01\x02 and \x1b[31mred\x07")
    await tour.take("paste-controls", "removed")
    await tour.press(CTRL_U)


async def files(tour: Tour) -> None:
    """A theme, a keymap and settings with a mistake, saved while Phoenix runs."""
    home = tour.phoenix.home
    themes = home / "themes"
    themes.mkdir(exist_ok=True)
    (themes / "dawn.toml").write_text(DAWN, "utf-8")
    await tour.running.send("/theme dawn")
    await tour.running.lacks("/theme")
    await tour.take("theme-own")
    (themes / "dawn.toml").write_text(DAWN.replace("#6c71c4", "violet"), "utf-8")
    await tour.take("theme-mistake", "must be a colour")
    await tour.running.send("/theme phoenix-dark")
    (home / "keymap.toml").write_text('palette = "ctrl+nothing"\n', "utf-8")
    await tour.take("keymap-mistake", "keymap.toml")
    (home / "keymap.toml").unlink()
    before = (home / "config.toml").read_text("utf-8")
    (home / "config.toml").write_text(f'{before}notifications = "loud"\n', "utf-8")
    await tour.take("settings-mistake", "config.toml")
    (home / "config.toml").write_text(before, "utf-8")


async def elsewhere(tour: Tour) -> None:
    """A second Phoenix on the same conversation: who has it, and the offer of a copy."""
    await tour.press(CTRL_N)
    await tour.running.send("Say that you are done")
    await tour.running.shows("Done.", "ready")
    columns, rows = map(int, tour.size.split("x"))
    async with program(tour.phoenix, "-c", columns=columns, rows=rows) as other:
        visitor = Tour(tour.place, tour.phoenix, other, tour.size)
        await visitor.take("owned-elsewhere", "/fork continues in a copy")
        await visitor.press(CTRL_Q)


async def storage(tour: Tour) -> None:
    """The database is locked while a message is sent: nothing typed is lost."""
    await tour.press(CTRL_N)
    await tour.running.shows("Type to start")
    with closing(sqlite3.connect(tour.phoenix.home / "phoenix.db", isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        await tour.press("a message that cannot be stored", ENTER)
        await tour.take("storage", "Not saved yet")
        database.execute("ROLLBACK")


STOPS: Final[tuple[Stop, ...]] = (words, files, elsewhere, storage)
