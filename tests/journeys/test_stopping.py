"""Esc and trouble: what runs is stopped, what was said stays, what failed says how to go on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.machine.states import RETRIES
from tests.support.cli import with_claude
from tests.support.journeys import calls, everything_stored, says, starts_to_say
from tests.support.loopback import serve
from tests.support.loopback_anthropic import refuses
from tests.support.program import ENTER, ESC, alive, mark, program

pytestmark = pytest.mark.pty
BUSY = refuses(529, "overloaded_error", "Overloaded", "retry-after: 4\r\n")
WRONG_KEY = refuses(401, "authentication_error", "invalid x-api-key")


async def test_esc_ends_every_process_of_a_command_and_the_next_message_works(tmp_path: Path) -> None:
    marked = mark()
    command = f"sleep {marked} & setsid sleep {marked} & sleep {marked}"
    answers = (calls("bash", command=command), says("Here I am."))
    async with (
        serve(*answers) as server,
        program(with_claude(tmp_path, server.url), "--permission-mode", "auto") as running,
    ):
        await running.ready()
        await running.send("Sleep")
        await running.until(lambda: len(alive(f"sleep\0{marked}")) == 3, "three sleeping processes")
        await running.shows("bash", "Esc stops")
        running.type(ESC)
        await running.until(lambda: not alive(marked), "the end of every process")
        await running.shows("ready", "stopped by you")
        await running.send("Still there?")
        await running.shows("Here I am.")


async def test_a_stopped_command_says_how_many_processes_ended(tmp_path: Path) -> None:
    marked = mark()
    async with (
        serve(calls("bash", command=f"sleep {marked} & setsid sleep {marked} & sleep {marked}")) as server,
        program(with_claude(tmp_path, server.url), "--permission-mode", "auto") as running,
    ):
        await running.ready()
        await running.send("Sleep")
        await running.until(lambda: len(alive(f"sleep\0{marked}")) == 3, "three sleeping processes")
        running.type(ESC)
        await running.shows("stopped by you", "4 processes ended")


async def test_esc_while_text_streams_keeps_it_on_the_screen_and_out_of_the_database(tmp_path: Path) -> None:
    answers = (starts_to_say("A partial ", "sentence about herons "), says("A new answer."))
    async with serve(*answers) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("Tell me of birds")
            await running.shows("A partial sentence about herons", "Esc stops")
            running.type(ESC)
            await server.wait_closed()
            await running.shows("stopped by you after", "text not saved (/copy copies it)")
            assert "A partial sentence about herons" in running.words
            assert "herons" not in everything_stored(phoenix)
            assert "Tell me of birds" in everything_stored(phoenix)
            await running.send("Another")
            await running.shows("A new answer.")
            messages = server.requests[-1].json["messages"]
            assert "herons" not in str(messages)


async def test_esc_reaches_a_server_that_never_answers(tmp_path: Path) -> None:
    async with serve(lambda talk: talk.stall()) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("Hello")
        await running.shows("thinking")
        running.type(ESC)
        await server.wait_closed()
        await running.shows("ready")


async def test_an_overloaded_server_is_asked_again_with_a_countdown(tmp_path: Path) -> None:
    async with (
        serve(BUSY, says("At last.")) as server,
        program(with_claude(tmp_path, server.url)) as running,
    ):

        def seconds_left() -> int | None:
            found = re.search(rf"retrying 1/{RETRIES} in (\d)\.", running.words)
            return int(found[1]) if found else None

        await running.ready()
        await running.send("Hello")
        await running.until(lambda: seconds_left() is not None, "a countdown")
        first = seconds_left()
        await running.until(lambda: seconds_left() != first, "the countdown moves, or is over")
        await running.shows("At last.")
        assert len(server.requests) == 2


async def test_esc_during_the_wait_for_another_try_ends_it(tmp_path: Path) -> None:
    slow = refuses(429, "rate_limit_error", "Slow down", "retry-after: 30\r\n")
    async with serve(slow) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("Hello")
        await running.shows(f"retrying 1/{RETRIES} in 2")
        running.type(ESC)
        await running.shows("ready")
        assert len(server.requests) == 1


async def test_a_refused_key_names_the_fix_and_enter_tries_again(tmp_path: Path) -> None:
    async with (
        serve(WRONG_KEY, says("Welcome.")) as server,
        program(with_claude(tmp_path, server.url)) as running,
    ):
        await running.ready()
        await running.send("Hello")
        await running.shows("ANTHROPIC_API_KEY")
        assert "sk-ant-planted" not in running.text
        running.type(ENTER)
        await running.shows("Welcome.")
        assert len(server.requests) == 2


async def test_a_message_while_it_works_is_refused_and_stays_in_the_composer(tmp_path: Path) -> None:
    async with (
        serve(starts_to_say("Thinking about it"), says("Done now.")) as server,
        program(with_claude(tmp_path, server.url)) as running,
    ):
        await running.ready()
        await running.send("First")
        await running.shows("Thinking about it")
        await running.send("Second")
        await running.shows("Still working: Tab queues", "Alt+I")
        assert "┃ Second" in running.text
        assert len(server.requests) == 1
        running.type(b"\x13")  # Ctrl+S: stop and send
        await running.shows("Done now.")
        assert "Second" in str(server.requests[1].json["messages"])
