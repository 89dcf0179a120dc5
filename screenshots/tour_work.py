"""Stops of the tour at which the model works: a turn, approvals, panes, sub-agents, going back, the window."""

from __future__ import annotations

import asyncio
from typing import Final

from screenshots import scenes_agents
from screenshots.guide import ALT_W, CTRL_O, CTRL_U, DOWN, RIGHT, TAB, TYPED, UP, Stop, Tour
from screenshots.tour_model import CLEAN, TALLY
from tests.support.program import CTRL_N, ENTER, ESC
from tests.support.story import FIX


async def work(tour: Tour) -> None:
    """A real turn: question, patch, streaming, queue, two panes, details."""
    await tour.press(CTRL_N)
    await tour.running.shows("Type to start")
    await tour.running.send(FIX)
    await tour.running.shows("unittest", "y s a n r answer")
    await asyncio.sleep(TYPED)
    await tour.take("approval", "y Yes, once")
    await tour.press("s")
    await tour.running.shows("relay/backoff.py", "once", "up to LIMIT")
    await asyncio.sleep(TYPED)
    await tour.take("approval-diff", "up to LIMIT")
    await tour.press("y")
    await tour.running.shows("asks delay before every try.")
    await tour.press("and then run the linter", TAB, "and write the changelog", TAB)
    await tour.take("queue", "run the linter", "write the changelog")
    await tour.press("/split webhooks", ENTER)
    await tour.take("panes", "webhooks arrive twice", "Find out: webhooks")
    await tour.press(ALT_W)
    await tour.running.shows("asks delay before every try.")
    await tour.press(ESC)
    await tour.take("stopped", "stopped after")
    await tour.press(CTRL_O)
    await tour.take("details", "ready")
    await tour.press(CTRL_O)


async def approvals(tour: Tour) -> None:
    """A rule that is edited, a no with its reason, all that wait, the rules that hold."""
    await tour.press(CTRL_N)
    await tour.running.shows("Type to start")
    await tour.running.send(CLEAN)
    await tour.running.shows("y Yes, once")
    await asyncio.sleep(TYPED)
    await tour.press("a")
    await tour.take("approval-rule", "Enter allows in this project")
    await tour.press(ESC)
    await tour.running.shows("y Yes, once")
    await tour.press("r", "only the objects")
    await tour.take("approval-reason", "only the objects")
    await tour.press(ENTER)
    await tour.running.shows("find build", "y Yes, once")
    await tour.running.send("/approvals")
    await tour.take("approvals", "approval waits", "find build")
    await tour.home()
    await tour.running.send("/rules")
    await tour.take("rules", "writes one")
    await tour.home()
    await tour.press(ESC)
    await tour.running.shows("stopped after")


async def agents(tour: Tour) -> None:
    """Sub-agents: at work, one asks; the list of all; one of them in view; two of them beside their parent."""
    await tour.press(CTRL_N)
    await tour.running.send(scenes_agents.ASKED)
    await tour.running.shows("sub-agents?")
    await asyncio.sleep(TYPED)
    await tour.press("y")
    await tour.running.shows("1/3 done", "y Yes, once")
    await asyncio.sleep(TYPED)
    await tour.take("agents", "y Yes, once")
    await tour.press("n", scenes_agents.ALT_S)
    await tour.take("agents-list", "Enter opens")
    await tour.press(UP, UP, ENTER)
    await tour.take("agents-one", "1 of 3", "submit_result")
    await tour.press(scenes_agents.ALT_S)
    await tour.running.shows("Enter opens")
    await tour.press(DOWN, "|")
    await tour.take("agents-beside", "2 of 3", "then the queue")
    await tour.press(ALT_W)
    await tour.running.shows("1 of 3")
    await tour.press(b"\x1bu")
    await tour.running.shows("sub-agents ")
    await tour.press(ESC)
    await tour.running.shows("stopped after")


async def rewind(tour: Tour) -> None:
    """Go back: what changed and by whom, the prompts, the last look, a diff, done, the branches, undone."""
    await tour.press(CTRL_N)
    await tour.running.shows("Type to start")
    await tour.running.send("/permissions auto")
    await tour.running.shows("auto ·")
    for words, answer in (
        (TALLY, "counts tries."),
        ("Begin at 1 and write it down in the docs", "notes say so."),
        ("Does forward use it?", "before every try."),
    ):
        await tour.running.send(words)
        await tour.running.shows(answer, "ready")
    path = tour.phoenix.cwd / "relay" / "retry.py"
    path.write_text(path.read_text("utf-8") + "\n# by hand\n", "utf-8")
    await tour.running.send("/diff")
    await tour.running.shows("all of this conversation")
    await tour.press("n", "n")
    await tour.take("changes", "# by hand", "by someone else")
    await tour.press(RIGHT, "n", "n")
    await tour.take("changes-turn", "Begin at 1 and write", "TRIES = 1")
    await tour.home()
    await tour.press(ESC + ESC)
    await tour.running.shows("Enter selects")
    await tour.press(DOWN, DOWN)
    await tour.take("rewind", "Rewind", "notes.md")
    await tour.press(ENTER)
    await tour.take("rewind-files", "Rewind to before")
    await tour.press(DOWN, DOWN, DOWN, "d")
    await tour.running.lacks("Enter rewinds")
    await tour.take("rewind-diff")
    await tour.press(ESC)
    await tour.running.shows("Enter rewinds")
    await tour.press(b"\x1b[5~", ENTER)
    await tour.take("rewind-done", "restored.")
    await tour.press(CTRL_U)
    await tour.running.send("Shorter, please")
    await tour.running.shows("It is one line.", "ready")
    await tour.running.send("/branches")
    await tour.take("branches", "you are here")


async def window(tour: Tour) -> None:
    """Contents of the window, and a part taken out of it."""
    await tour.running.send("/context")
    await tour.take("context", "jumps")
    await tour.press(DOWN, "x")
    await tour.take("context-less", "jumps")


STOPS: Final[tuple[Stop, ...]] = (work, approvals, agents, rewind, window)
