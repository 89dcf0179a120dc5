"""Several conversations at work at once: seen, answered, stopped and put away from the list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import Answer, calls, picks, results, rows, says, starts_to_say
from tests.support.loopback import Seen, serve
from tests.support.program import CTRL_N, CTRL_Q, ENTER, ESC, Program, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
CTRL_L, RIGHT = b"\x0c", b"\x1b[C"
TALKS: dict[str, Answer] = {
    "count the sheep": starts_to_say("One, two, ", "three"),
    "clean up": calls("bash", command="touch cleaned"),
    "name a colour": says("Blue, since you ask."),
}
SEEN = {"count the sheep": "two, three", "clean up": "bash asks", "name a colour": "Blue, since you ask."}


def model(seen: Seen) -> Answer:
    """A reply by what was asked first; titles are a request of their own."""
    if "You name conversations" in str(seen.json.get("system")):
        return says("A Favourite Colour")
    messages: Any = seen.json["messages"]
    if "tool_result" in str(messages[-1]):
        return says("All clean.")
    return next(answer for words, answer in TALKS.items() if words in str(messages[0]))


async def three_at_work(running: Program, phoenix: Phoenix) -> None:
    await running.ready()
    for words, shown in SEEN.items():
        await running.send(words)
        await running.shows(shown)
        if words == "name a colour":
            await running.until(lambda: bool(rows(phoenix, "select 1 from runs where status = 'success'")), "its end")
        running.type(CTRL_N)
        await running.shows("New conversation")


def kept(phoenix: Phoenix, column: str) -> set[str]:
    return {title for (title,) in rows(phoenix, f"select title from conversations where {column} is not null")}


async def test_a_question_is_answered_and_a_run_stopped_without_opening_them(tmp_path: Path) -> None:
    async with serve(picks(model)) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, columns=120, rows=30) as running:
            await three_at_work(running, phoenix)
            running.type(CTRL_L)
            await running.shows("needs you", "working", "done", "1◆ clean up", "3○ name a colour")
            running.type(b"g" + RIGHT)
            await running.shows("touch cleaned", "no, because")
            await answered(running, "y", phoenix)
            await running.shows("1◐ count the", "2● clean up unread")
            running.type("gx")
            await running.shows("■ count the sheep")
            assert "All clean." not in running.text
    assert len(results(server.requests[-1])) == 1
    assert (phoenix.cwd / "cleaned").exists()


async def answered(running: Program, letter: str, phoenix: Phoenix) -> None:
    """A letter counts only after a moment."""
    await typing_guard()
    running.type(letter)
    await running.until((phoenix.cwd / "cleaned").exists, "the answered question")


async def test_pins_archive_and_trash_hold_over_a_restart(tmp_path: Path) -> None:
    async with serve(picks(model)) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, columns=120, rows=30) as running:
            await three_at_work(running, phoenix)
            running.type(CTRL_L)
            await typing_guard()
            running.type("Gt")
            await running.shows("pinned", "1○ name a colour")
            running.type("/sheep\r")
            await running.shows("two, three")
            running.type(ESC)
            await running.shows("stopped after")
            running.type(CTRL_L)
            await running.shows("? keys")
            await typing_guard()  # a user who just came to the list may still be writing
            running.type("v")
            await running.shows("1 marked")
            running.type("a")
            await running.until(lambda: kept(phoenix, "archived_at") == {"count the sheep"}, "one archived")
            running.type(CTRL_Q)
            await running.shows("Quit and stop it?")
            running.type("y")
            assert await running.exit_code() == 0
        async with program(phoenix, columns=120, rows=30) as running:
            await running.ready()
            await running.shows("pinned", "name a colour", "clean up")
            await running.lacks("count the sheep")
            running.type(CTRL_L)
            await typing_guard()
            running.type("A")
            await running.shows("Archive", "count the sheep")
            running.type(ENTER)
            await running.shows("┃ count the sheep")
            await running.until(lambda: kept(phoenix, "archived_at") == set(), "nothing archived")


async def test_a_conversation_is_named_after_its_first_answer(tmp_path: Path) -> None:
    async with serve(picks(model)) as server:
        phoenix = with_claude(tmp_path, server.url, PHOENIX_AUTO_TITLE="true")
        async with program(phoenix, columns=120, rows=30) as running:
            await running.ready()
            await running.send("name a colour")
            await running.shows("Blue, since you ask.", "A Favourite Colour")
    assert rows(phoenix, "select title, title_by from conversations") == [("A Favourite Colour", "model")]
    assert len(server.requests) == 2
