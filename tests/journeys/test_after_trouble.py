"""Trouble: a crash, a database that is busy, openings that hang."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.lifecycle.crash import CLOSED_FROM
from tests.support.cli import Phoenix, ended, phoenix_in, with_claude
from tests.support.journeys import Claude, rows, says
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import recording, refuse, start, text
from tests.support.program import CTRL_Q, ENTER, on_screen, program

pytestmark = pytest.mark.pty
PROMPT_ABOVE = b"\x1b[5;3~"
COUNT = "SELECT count(*) FROM messages"
MANY_LINES = "\n\n".join(f"Line {number}." for number in range(80))


async def test_after_a_kill_the_next_start_is_where_one_was(claude: Claude) -> None:
    phoenix, _ = await claude(says(MANY_LINES))
    async with on_screen(phoenix) as running:
        await running.send("tell me", "Line 79.")
        running.type("half a thought")
        await running.until(lambda: rows(phoenix, "SELECT draft FROM conversations") == [("half a thought",)])
        running.signal(signal.SIGKILL)
        assert await running.exit_code() == -signal.SIGKILL
    async with program(phoenix) as running:
        await running.shows("was open when Phoenix stopped responding")
        assert "Line 79." not in running.words, "what stopped it may stand in there"
        await running.press(ENTER, "half a thought", "Line 79.")
        running.type(CTRL_Q)
        assert await running.exit_code() == 0
    async with on_screen(phoenix) as running:
        assert "Line 79." not in running.words, "left properly, it begins anew"


async def test_after_a_kill_one_stands_where_one_had_scrolled_to(claude: Claude) -> None:
    phoenix, server = await claude(*(says(f"Answer {number}.\n\n{MANY_LINES}") for number in (1, 2, 3)))
    async with on_screen(phoenix) as running:
        for number in (1, 2, 3):
            await running.send(f"question {number}")
            await running.until(lambda: len(server.requests) == number, "the request")  # noqa: B023 - at once
            stored = [(2 * number,)]
            await running.until(lambda: rows(phoenix, COUNT) == stored, "the answer")  # noqa: B023 - at once
            await running.shows("Line 79.", "○ ready")
        await running.press(PROMPT_ABOVE * 2, "question 2", "Answer 2.")
        await running.until(lambda: rows(phoenix, "SELECT scroll_seq FROM conversations") == [(3,)], "the place")
        running.signal(signal.SIGKILL)
        assert await running.exit_code() == -signal.SIGKILL
    async with program(phoenix) as running:
        await running.shows("was open when Phoenix stopped responding")
        await running.press(ENTER, "question 2", "Answer 2.", "Line 5.")
        assert "Answer 3." not in running.words


@pytest.mark.parametrize("put_away", ["archived_at = 1.0", "deleted_at = 1.0"])
async def test_what_was_put_away_is_not_opened_again_after_a_kill(claude: Claude, put_away: str) -> None:
    phoenix, _ = await claude(says("Hello."))
    async with on_screen(phoenix) as running:
        await running.send("hi there", "Hello.")
        await running.until(lambda: _marked(phoenix.home))
        running.signal(signal.SIGKILL)
        await running.exit_code()
    with closing(sqlite3.connect(phoenix.home / "phoenix.db")) as database, database:
        database.execute(f"UPDATE conversations SET {put_away}")
    async with on_screen(phoenix) as running:
        await running.shows("What is this project?")
        assert "stopped responding" not in running.words
        assert "Hello." not in running.words


async def test_a_kill_elsewhere_is_no_business_of_this_folder(claude: Claude, tmp_path: Path) -> None:
    phoenix, _ = await claude(says("Hello."))
    async with on_screen(phoenix) as running:
        await running.send("hi there", "Hello.")
        await running.until(lambda: _marked(phoenix.home))
        running.signal(signal.SIGKILL)
        await running.exit_code()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with on_screen(phoenix, "--cwd", str(elsewhere)) as running:
        assert "stopped responding" not in running.words


def _marked(home: Path) -> bool:
    return any("conversation_id" in path.read_text() for path in (home / "open").glob("*.json"))


async def test_a_locked_database_is_said_and_the_message_goes_out_later(claude: Claude) -> None:
    phoenix, _ = await claude(says("First."), says("Second."))
    async with on_screen(phoenix) as running:
        await running.send("one", "First.", "○ ready")
        with closing(sqlite3.connect(phoenix.home / "phoenix.db", isolation_level=None)) as locker:
            locker.execute("BEGIN EXCLUSIVE")
            running.type("precious words")
            await running.press(ENTER, "Not saved yet, the database is busy: “precious words”")
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


async def test_an_answer_that_breaks_stands_there_after_a_restart_and_enter_goes_on(claude: Claude) -> None:
    phoenix, server = await claude(breaks, says("and the second."))
    async with on_screen(phoenix) as running:
        await running.send("tell me", "The first half of it", "is kept", "This key was taken away.")
        running.type(CTRL_Q)
        assert await running.exit_code() == 0
    async with program(phoenix, "-c") as running:
        await running.shows("The first half of it", "is kept", "Enter resumes")
        await running.press(ENTER, "The first half of it", "and the second.")
    assert running.words.count("This key was taken away.") == 1
    sent: list[Any] = [message["content"][0]["text"] for message in json.loads(server.requests[-1].body)["messages"]]
    assert sent[:2] == ["tell me", "The first half of it"]
    assert "broke off" in sent[2]


WAITS = "Waiting for the database, which another program is using."


@contextmanager
def held(phoenix: Phoenix) -> Iterator[sqlite3.Connection]:
    """The database, locked until the end, or until the transaction is ended."""
    other = sqlite3.connect(phoenix.home / "phoenix.db", isolation_level=None, timeout=30)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield other
    finally:
        other.close()


async def said(process: asyncio.subprocess.Process) -> str:
    """The next line of stderr."""
    assert process.stderr is not None
    async with asyncio.timeout(30):
        return (await process.stderr.readline()).decode()


async def test_a_headless_run_says_what_it_waits_for_and_goes_on(claude: Claude) -> None:
    phoenix, _ = await claude(says("Hello."))
    assert (await phoenix.run("-p", "hi")).code == 0
    with held(phoenix) as other:
        process = await phoenix.start("-p", "hi again")
        assert (await said(process)).startswith(WAITS)
        other.execute("ROLLBACK")
        ran = await ended(process)
    assert (ran.code, ran.out) == (0, "Hello.\n")
    assert WAITS not in ran.err, "once is enough"


async def test_a_signal_ends_a_headless_run_that_waits(claude: Claude) -> None:
    phoenix, _ = await claude(says("Hello."))
    await phoenix.run("-p", "hi")
    with held(phoenix):
        process = await phoenix.start("-p", "hi again")
        await said(process)
        process.send_signal(signal.SIGTERM)
        ran = await ended(process)
    assert ran.code in {143, -signal.SIGTERM}
    assert "Traceback" not in ran.err


async def test_the_timeout_ends_a_headless_run_that_waits_in_a_sentence(claude: Claude) -> None:
    phoenix, _ = await claude(says("Hello."))
    await phoenix.run("-p", "hi")
    with held(phoenix):
        ran = await phoenix.run("-p", "hi again", "--timeout", "3")
    assert ran.code == 75
    assert ran.err.splitlines()[-1] == (
        f"phoenix: Another program is using the database {phoenix.home / 'phoenix.db'}; try again in a moment."
    )
    assert "Traceback" not in ran.err


async def test_a_message_is_seen_waiting_and_esc_gives_it_back(tmp_path: Path) -> None:
    async with (
        serve(says("Hello."), says("And again.")) as server,
        on_screen(with_claude(tmp_path, server.url)) as running,
    ):
        await running.send("one", "Hello.", "ready")
        phoenix = with_claude(tmp_path, server.url)
        with held(phoenix):
            await running.press("two\r", "waiting for the database", "Esc cancels")
            await running.press("\x1b", "is using the database")
        await running.lacks("waiting for the database")
        assert len(server.requests) == 1
        await running.until(lambda: "┃ two" in running.text, "the text is back where it was written")
        await running.press("\r", "And again.")


async def test_a_sub_command_says_what_it_waits_for(claude: Claude) -> None:
    phoenix, _ = await claude(says("Hello."))
    await phoenix.run("-p", "hi")
    with held(phoenix) as other:
        process = await phoenix.start("conversations", "list")
        assert (await said(process)).startswith(WAITS)
        other.execute("ROLLBACK")
        ran = await ended(process)
    assert ran.code == 0
    assert "hi" in ran.out


HANGING = "tests.support.hanging_screen"
ANSWER = "some **bold** words"
CTRL_O = b"\x0f"
SENTENCE = "Opening this conversation hung Phoenix twice"


def notes(phoenix: Phoenix) -> list[Path]:
    return list((phoenix.home / "opening").glob("*"))


async def kill_while_opening(phoenix: Phoenix, *arguments: str) -> None:
    """Open a conversation that hangs, and kill Phoenix."""
    before = len(notes(phoenix))
    async with program(phoenix, *arguments, module=HANGING) as running:
        await running.until(lambda: len(notes(phoenix)) > before, "the note about it")
        running.signal(signal.SIGKILL)
        assert await running.exit_code() == -signal.SIGKILL


async def test_a_conversation_that_hung_twice_is_opened_as_plain_text(claude: Claude) -> None:
    phoenix, _ = await claude(says(ANSWER))
    assert (await phoenix.run("-p", "tell me", "--name", "A tale")).code == 0
    ((conversation_id,),) = rows(phoenix, "SELECT id FROM conversations")
    (phoenix.home / "hang").touch()
    await kill_while_opening(phoenix, "-c")
    await kill_while_opening(phoenix, "-r", conversation_id)
    async with on_screen(phoenix, module=HANGING) as running:
        await running.send("/resume a-tale", SENTENCE, "you:", ANSWER)
        (phoenix.home / "hang").unlink()
        running.type(CTRL_O)
        await running.lacks(SENTENCE)
        await running.shows("some bold words")
        await running.until(lambda: notes(phoenix) == [], "the end of the notes")


async def test_one_that_hung_as_plain_text_too_is_opened_from_the_list_alone(claude: Claude) -> None:
    phoenix, _ = await claude(says(ANSWER))
    assert (await phoenix.run("-p", "tell me", "--name", "A tale")).code == 0
    ((conversation_id,),) = rows(phoenix, "SELECT id FROM conversations")
    (phoenix.home / "opening").mkdir()
    for number in range(CLOSED_FROM):
        (phoenix.home / "opening" / f"{conversation_id}.{number:032x}").touch()
    async with program(phoenix, "-c") as running:
        await running.shows("is not opened at a start")
        assert ANSWER not in running.words
        await running.send("/resume a-tale", SENTENCE, ANSWER)
