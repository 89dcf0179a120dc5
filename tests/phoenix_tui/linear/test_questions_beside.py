"""A question beside the conversation in lines: while the agent works, dropped, from a pipe."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.loopback import serve
from tests.support.loopback_agents import by_last_message, never_ends, says
from tests.support.program import ESC, program

ROWS = 200
"""Rows of a terminal on which nothing scrolls away during a test."""


async def test_it_is_answered_while_the_agent_works_without_signs_and_is_not_stored(tmp_path: Path) -> None:
    answers = by_last_message({
        "why closed?": says("Because of **the pool**.\n\n```sh\nls\n```"),
        "go": never_ends,
    })
    async with (
        serve(answers) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", rows=ROWS) as running,
    ):
        await running.shows("You:")
        running.type("/btw why closed?\r")
        await running.shows("This conversation is empty; there is nothing to ask about.")
        running.type("go\r")
        await running.shows("Assistant is working.")
        running.type("/btw\r")
        await running.shows("Give a question: /btw QUESTION. The agent keeps working, and nothing is stored.")
        running.type("/btw why closed?\r")
        await running.shows(
            "Side question sent.",
            "Side question: why closed?",
            "Because of the pool.",
            "Code, sh:",
            "End of the side answer.",
        )
        running.type("/state\r")
        await running.shows("Working.")
        running.type("/read\r")
        await running.until(lambda: running.words.count("You: go") >= 1, "it is read again")
        assert running.words.count("Because of the pool.") == 1


async def test_esc_stops_the_run_first_and_then_drops_the_question(tmp_path: Path) -> None:
    async with (
        serve(by_last_message({"why": never_ends, "go": never_ends})) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", rows=ROWS) as running,
    ):
        await running.shows("You:")
        running.type("go\r")
        await running.shows("Assistant is working.")
        running.type("/btw why\r")
        await running.shows("Side question sent. Esc cancels it if nothing else is running.")
        running.type(ESC)
        await running.shows("Ready")
        running.type(ESC)
        await running.shows("Dropped.")
        running.type(ESC)
        await running.shows("Nothing is running.")


async def test_the_lines_of_a_pipe_wait_for_the_answer(tmp_path: Path) -> None:
    answers = by_last_message({"why closed?": says("Because of the pool."), "go": says("It is closed.")})
    async with serve(answers) as server:
        phoenix = with_claude(tmp_path, server.url)
        said = (await phoenix.run("--screen-reader", stdin=b"go\n/btw why closed?\n/state\n")).out
    assert said.index("It is closed.") < said.index("Because of the pool.") < said.rindex("Ready.")


async def test_it_is_asked_on_and_continued_in_a_copy(tmp_path: Path) -> None:
    answers = by_last_message({
        "since when?": says("Since Monday."),
        "why closed?": says("Because of the pool."),
        "go": says("Done."),
    })
    async with (
        serve(answers) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", rows=ROWS) as running,
    ):
        await running.shows("You:")
        running.type("/btw fork\r")
        await running.shows("This conversation is empty")
        running.type("go\r")
        await running.shows("Assistant: Done.")
        running.type("/btw fork\r")
        await running.shows("No side question was answered here.")
        running.type("/btw why closed?\r")
        await running.shows("Because of the pool.", "End of the side answer.")
        running.type("/btw more since when?\r")
        await running.shows("Since Monday.")
        asked = server.requests[-1].body.decode()
        assert "Earlier the user asked you beside it" in asked
        assert "Because of the pool." in asked
        running.type("/btw fork\r")
        await running.shows("Forked. You are in the copy", "You: since when?", "Assistant: Since Monday.")
