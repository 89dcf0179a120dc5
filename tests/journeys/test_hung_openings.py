"""A conversation whose drawing hung Phoenix twice is opened as plain text; nothing else is lost, and a key draws it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from phoenix_tui.lifecycle.crash import CLOSED_FROM
from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import rows, says
from tests.support.loopback import serve
from tests.support.program import program

pytestmark = pytest.mark.pty
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


async def test_a_conversation_that_hung_twice_is_opened_as_plain_text(tmp_path: Path) -> None:
    async with serve(says(ANSWER)) as server:
        phoenix = with_claude(tmp_path, server.url)
        assert (await phoenix.run("-p", "tell me", "--name", "A tale")).code == 0
        ((conversation_id,),) = rows(phoenix, "SELECT id FROM conversations")
        (phoenix.home / "hang").touch()
        await kill_while_opening(phoenix, "-c")
        await kill_while_opening(phoenix, "-r", conversation_id)
        async with program(phoenix, module=HANGING) as running:
            await running.ready()
            await running.send("/resume a-tale")
            await running.shows(SENTENCE, "you:", ANSWER)
            (phoenix.home / "hang").unlink()
            running.type(CTRL_O)
            await running.lacks(SENTENCE)
            await running.shows("some bold words")
            await running.until(lambda: notes(phoenix) == [], "the end of the notes")


async def test_one_that_hung_as_plain_text_too_is_opened_from_the_list_alone(tmp_path: Path) -> None:
    async with serve(says(ANSWER)) as server:
        phoenix = with_claude(tmp_path, server.url)
        assert (await phoenix.run("-p", "tell me", "--name", "A tale")).code == 0
        ((conversation_id,),) = rows(phoenix, "SELECT id FROM conversations")
        (phoenix.home / "opening").mkdir()
        for number in range(CLOSED_FROM):
            (phoenix.home / "opening" / f"{conversation_id}.{number:032x}").touch()
        async with program(phoenix, "-c") as running:
            await running.shows("is not opened at a start")
            assert ANSWER not in running.words
            await running.send("/resume a-tale")
            await running.shows(SENTENCE, ANSWER)
