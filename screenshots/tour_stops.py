"""Stops of the tour: conversations and their trash, 50,000 messages, search, writing, vim, what lies around."""

from __future__ import annotations

from typing import Final

from screenshots.guide import (
    ALT_UP,
    CTRL_E,
    CTRL_END,
    CTRL_F,
    CTRL_L,
    CTRL_P,
    CTRL_R,
    CTRL_U,
    DOWN,
    F1,
    F2,
    LEFT,
    PAGE_UP,
    RIGHT,
    Stop,
    Tour,
)
from screenshots.tour_model import BESIDE, CHART
from tests.support.program import CTRL_N, ENTER, ESC

LONG: Final = "a year of pair programming"


async def conversations(tour: Tour) -> None:
    """The list: filter, a look inside and a reply from there, marks, all columns."""
    await tour.press(CTRL_L)
    await tour.take("list", "a year of", "? keys")
    await tour.press("/", "latency", DOWN, RIGHT)
    await tour.take("peek", "Enter sends, on an empty line opens")
    await tour.press("And at night?", ENTER)
    await tour.take("peek-replied", "●")
    await tour.press(ESC, DOWN, "v", DOWN, "v")
    await tour.take("marked", "2 marked")
    await tour.gone("2 marked")
    await tour.press("z")
    await tour.take("list-zoomed", "conversations")
    await tour.press("z")


async def archive(tour: Tour) -> None:
    """The trash, with something in it."""
    await tour.press(CTRL_L)
    await tour.running.shows("? keys")
    await tour.press(DOWN, DOWN, DOWN, "d")
    await tour.running.shows("Moved to the trash")
    await tour.press(ESC)
    await tour.home()
    await tour.running.send("/trash")
    await tour.take("trash", "Trash", "u restores")
    await tour.press("u")
    await tour.running.shows("The trash is empty.")


async def long(tour: Tour) -> None:
    """50,000 messages: open, scroll, turns, block cursor, find."""
    await tour.running.send(f"/resume {LONG}")
    await tour.take("long", "LASTWORD")
    await tour.press(PAGE_UP, PAGE_UP)
    await tour.running.lacks("LASTWORD")
    await tour.take("long-scrolled")
    await tour.press(ALT_UP)
    await tour.take("block-cursor", "Esc returns")
    await tour.press("i", F2)
    await tour.take("turns", "Turns", "Enter ")
    await tour.gone("type to filter")
    await tour.press(CTRL_F)
    await tour.running.shows("Find")
    await tour.press("Question 4242", ENTER)
    await tour.take("find", "Question 4242", "of 5")
    await tour.press(ESC, CTRL_END)


async def search(tour: Tour) -> None:
    """Search everywhere: hits, the place of one, a mistake at its place."""
    await tour.press(CTRL_F)
    await tour.running.until(lambda: any(map(tour.running.row, ("Find ", "Search "))), "one of the two")
    if not tour.running.row("Search "):
        await tour.press(CTRL_F)
    await tour.running.shows("Search ")
    await tour.press('"inner one" role:assistant')
    await tour.take("search", "inner one first")
    await tour.press(ENTER)
    await tour.take("hit", "Hit 1 of")
    await tour.press(ESC)
    await tour.running.shows("Enter opens")
    await tour.press(CTRL_U, '"never closed')
    await tour.take("search-error", '"never closed')
    await tour.press(CTRL_U)


async def composing(tour: Tour) -> None:
    """Files and conversations, commands, history, a long paste and its text, a shell line."""
    await tour.press("look at @ba")
    await tour.take("files", "relay/backoff.py")
    await tour.press(ESC, CTRL_U, "/se")
    await tour.take("commands", "/search")
    await tour.press(ESC, CTRL_U, CTRL_R)
    await tour.running.shows("History")
    await tour.press("wrong")
    await tour.take("history", CHART, "Ctrl+R older")
    await tour.gone("Ctrl+R older")
    await tour.press(CTRL_U)
    tour.running.paste("\n".join(f"line {number} of a long log" for number in range(400)))
    await tour.take("paste", "400 lines")
    await tour.press(LEFT, ENTER)
    await tour.take("paste-open", "Ctrl+F replaces it with a file")
    await tour.gone("Ctrl+F replaces it with a file")
    await tour.press(CTRL_E, CTRL_U, "!git log --oneline")
    await tour.take("shell", "the model reads the output")
    await tour.press(ENTER)
    await tour.take("shell-done", "bash")


async def images(tour: Tour) -> None:
    """An image as a chip, in the conversation, large."""
    await tour.press(CTRL_N)
    await tour.running.shows("Type to start")
    tour.running.paste(str(tour.place.folder / "robin" / "latency.png"))
    await tour.running.shows("[image 1")
    await tour.press(CHART)
    await tour.take("image-chip", CHART)
    await tour.press(ENTER)
    await tour.take("image", "sixth minute", "ready", "▀")
    await tour.press(ALT_UP, "k", ENTER)
    await tour.take("image-large", "▌image")
    await tour.gone("Esc returns")


async def vim(tour: Tour) -> None:
    """Vim's keys in the composer: each mode, what Esc does in it, and off again."""
    await tour.running.send("/vim on")
    await tour.running.shows("INSERT")
    await tour.press("the pool hands out closed sockets")
    await tour.take("vim-insert", "INSERT", "closed sockets")
    await tour.press(ESC)
    await tour.take("vim-normal", "NORMAL")
    await tour.press("b", "v", "b")
    await tour.take("vim-visual", "VISUAL")
    await tour.press(ESC, "2", "d")
    await tour.take("vim-begun", "NORMAL")
    await tour.press(ESC, "d", "d", "i")
    await tour.running.shows("INSERT")
    await tour.running.send("/vim off")
    await tour.running.lacks("INSERT")


async def beside(tour: Tour) -> None:
    """A question beside the conversation, the system prompt, the changes of nothing."""
    await tour.running.send(f"/btw {BESIDE}")
    await tour.take("btw", "stands in relay/backoff.py")
    await tour.gone("stands in relay/backoff.py")
    await tour.running.send("/prompt")
    await tour.take("prompt", "You are")
    await tour.home()
    await tour.running.send("/cost")
    await tour.take("cost", "last run")
    await tour.home()


async def around(tour: Tour) -> None:
    """Palette, help, settings, models, profiles, what works here, the colours."""
    await tour.press(CTRL_P)
    await tour.running.shows("Commands and settings")
    await tour.press("the")
    await tour.take("palette", "Everything", "theme")
    await tour.gone("Everything")
    await tour.press(F1)
    await tour.take("help", "Everyday keys", "Everywhere")
    await tour.gone("Everyday keys")
    await tour.running.send("/config")
    await tour.take("settings", "Settings", "theme")
    await tour.press("notif", ENTER)
    await tour.take("settings-choices", "bell")
    await tour.home()
    for command, seen in (("/model", "Model of"), ("/profile", "Profiles"), ("/doctor", "packages")):
        await tour.running.send(command)
        await tour.take(command.strip("/"), seen)
        await tour.home()
    for theme in ("light", "high-contrast", "dark"):
        await tour.running.send(f"/theme phoenix-{theme}")
        await tour.running.lacks("/theme")
        await tour.take(theme)


STOPS: Final[tuple[Stop, ...]] = (conversations, archive, long, search, vim, images, composing, beside, around)
