"""After a crash one is where one was; a full disk or another owner costs no word; broken files are named."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import phoenix_in, with_claude
from tests.support.journeys import rows, says
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import recording, refuse, start, text
from tests.support.program import CTRL_Q, ENTER, program

pytestmark = pytest.mark.pty
PROMPT_ABOVE = b"\x1b[5;3~"
COUNT = "SELECT count(*) FROM messages"
MANY_LINES = "\n\n".join(f"Line {number}." for number in range(80))


async def test_after_a_kill_the_next_start_is_where_one_was(tmp_path: Path) -> None:
    async with serve(says(MANY_LINES)) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("tell me")
            await running.shows("Line 79.")
            running.type("half a thought")
            await running.until(lambda: rows(phoenix, "SELECT draft FROM conversations") == [("half a thought",)])
            running.signal(signal.SIGKILL)
            assert await running.exit_code() == -signal.SIGKILL
        async with program(phoenix) as running:
            await running.shows("was open when Phoenix stopped responding")
            assert "Line 79." not in running.words, "what stopped it may stand in there"
            running.type(ENTER)
            await running.shows("half a thought", "Line 79.")
            running.type(CTRL_Q)
            assert await running.exit_code() == 0
        async with program(phoenix) as running:
            await running.ready()
            assert "Line 79." not in running.words, "left properly, it begins anew"


async def test_after_a_kill_one_stands_where_one_had_scrolled_to(tmp_path: Path) -> None:
    async with serve(*(says(f"Answer {number}.\n\n{MANY_LINES}") for number in (1, 2, 3))) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            for number in (1, 2, 3):
                await running.send(f"question {number}")
                await running.until(lambda: len(server.requests) == number, "the request")  # noqa: B023 - at once
                stored = [(2 * number,)]
                await running.until(lambda: rows(phoenix, COUNT) == stored, "the answer")  # noqa: B023 - at once
                await running.shows("Line 79.", "○ ready")
            running.type(PROMPT_ABOVE * 2)
            await running.shows("question 2", "Answer 2.")
            await running.until(lambda: rows(phoenix, "SELECT scroll_seq FROM conversations") == [(3,)], "the place")
            running.signal(signal.SIGKILL)
            assert await running.exit_code() == -signal.SIGKILL
        async with program(phoenix) as running:
            await running.shows("was open when Phoenix stopped responding")
            running.type(ENTER)
            await running.shows("question 2", "Answer 2.", "Line 5.")
            assert "Answer 3." not in running.words


@pytest.mark.parametrize("put_away", ["archived_at = 1.0", "deleted_at = 1.0"])
async def test_what_was_put_away_is_not_opened_again_after_a_kill(tmp_path: Path, put_away: str) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("hi there")
            await running.shows("Hello.")
            await running.until(lambda: _marked(phoenix.home))
            running.signal(signal.SIGKILL)
            await running.exit_code()
        with closing(sqlite3.connect(phoenix.home / "phoenix.db")) as database, database:
            database.execute(f"UPDATE conversations SET {put_away}")
        async with program(phoenix) as running:
            await running.ready()
            await running.shows("What is this project?")
            assert "stopped responding" not in running.words
            assert "Hello." not in running.words


async def test_a_kill_elsewhere_is_no_business_of_this_folder(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("hi there")
            await running.shows("Hello.")
            await running.until(lambda: _marked(phoenix.home))
            running.signal(signal.SIGKILL)
            await running.exit_code()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        async with program(phoenix, "--cwd", str(elsewhere)) as running:
            await running.ready()
            assert "stopped responding" not in running.words


def _marked(home: Path) -> bool:
    return any("conversation_id" in path.read_text() for path in (home / "open").glob("*.json"))


async def test_a_locked_database_is_said_and_the_message_goes_out_later(tmp_path: Path) -> None:
    async with serve(says("First."), says("Second.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("one")
            await running.shows("First.", "○ ready")
            with closing(sqlite3.connect(phoenix.home / "phoenix.db", isolation_level=None)) as locker:
                locker.execute("BEGIN EXCLUSIVE")
                running.type("precious words")
                running.type(ENTER)
                await running.shows("Not saved yet, the database is busy: “precious words”")
                locker.execute("ROLLBACK")
            await running.shows("Second.")
            await running.lacks("Not saved yet")
        assert "precious words" in str(rows(phoenix, "SELECT * FROM messages"))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("config.toml", "# mine\nmouse = 3\n", "config.toml:2: 'mouse' must be true or false"),
        ("config.toml", "mose = true\n", "config.toml:1: unknown key 'mose'. Valid keys are model"),
        ("profiles/reviewer.md", "---\ncolour: red\n---\nReview.\n", "reviewer.md:2: 'colour: red' is not a valid key"),
    ],
)
async def test_a_broken_file_of_settings_is_one_sentence(
    tmp_path: Path, name: str, content: str, expected: str
) -> None:
    phoenix = phoenix_in(tmp_path)
    path = phoenix.home / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    ran = await phoenix.run("-p", "hi", *(["--profile", "reviewer"] if "profiles" in name else []))
    assert ran.code == 2
    assert expected in ran.err
    assert len(ran.err.splitlines()) == 1


async def breaks(talk: Talk) -> None:
    if await refuse(talk):
        return
    gone = {"type": "error", "error": {"type": "permission_error", "message": "This key was taken away."}}
    await talk.begin()
    await talk.send(*recording(start(), text(0, "The first half", " of it")[:3], gone))
    await talk.end()


async def test_an_answer_that_breaks_stands_there_after_a_restart_and_enter_goes_on(tmp_path: Path) -> None:
    async with serve(breaks, says("and the second.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("tell me")
            await running.shows("The first half of it", "is kept", "This key was taken away.")
            running.type(CTRL_Q)
            assert await running.exit_code() == 0
        async with program(phoenix, "-c") as running:
            await running.shows("The first half of it", "is kept", "Enter resumes")
            running.type(ENTER)
            await running.shows("The first half of it", "and the second.")
        assert running.words.count("This key was taken away.") == 1
        sent: list[Any] = [
            message["content"][0]["text"] for message in json.loads(server.requests[-1].body)["messages"]
        ]
        assert sent[:2] == ["tell me", "The first half of it"]
        assert "broke off" in sent[2]
