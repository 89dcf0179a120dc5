"""The composer in a real terminal: a queue that outlives kill -9, the history search, files of a large folder."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import with_claude
from tests.support.environment_note import without_note
from tests.support.journeys import rows, says, starts_to_say
from tests.support.loopback import Seen, serve
from tests.support.program import CTRL_Q, ENTER, program

pytestmark = pytest.mark.pty
TAB, UP, CTRL_R = b"\t", b"\x1b[A", b"\x12"
SHIFT_UP = b"\x1b[1;2A"


def spoken(request: Seen) -> list[str]:
    """Texts of the user in a request, in order."""
    messages: Any = request.json["messages"]
    return [
        block["text"]
        for message in messages
        if message["role"] == "user"
        for block in without_note(message["content"])
        if block["type"] == "text"
    ]


async def planted(folder: Path, names: list[str]) -> None:
    """Empty files on the disk: `@` asks no git."""
    for parent in {(folder / name).parent for name in names}:
        parent.mkdir(parents=True, exist_ok=True)

    def touched() -> None:
        for name in names:
            (folder / name).touch()

    await asyncio.to_thread(touched)


async def test_a_queue_outlives_kill_and_is_sent_in_its_order_when_the_user_goes_on(tmp_path: Path) -> None:
    answers = (starts_to_say("I look"), *(says(f"Answer {number}.") for number in (2, 3, 4)))
    async with serve(*answers) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("first")
            await running.shows("I look")
            for number, text in enumerate(("second", "third"), start=1):
                running.type(text)
                await running.shows(f"┃ {text}")
                running.type(TAB)
                await running.shows(f"queue {number} ·", f"{number} {text}")
            running.type(UP + SHIFT_UP)
            await running.shows("1 third", "2 second")
            stored = "select json_extract(content_json, '$.text') from queued_messages order by ord"
            await running.until(lambda: rows(phoenix, stored) == [("third",), ("second",)], "the stored order")
            running.signal(signal.SIGKILL)
            assert await running.exit_code() == -signal.SIGKILL
        async with program(phoenix, "-c") as running:
            await running.shows("queue 2 · paused", "1 third", "2 second")
            assert len(server.requests) == 1
            running.type(ENTER)
            await running.shows("Answer 4.")
            await running.lacks("queue 1")
            await running.lacks("queue 2")
    assert [spoken(request)[-1] for request in server.requests[1:]] == ["first", "third", "second"]
    assert rows(phoenix, "select count(*) from queued_messages") == [(0,)]


async def test_an_older_prompt_is_found_by_a_few_letters_in_another_session(tmp_path: Path) -> None:
    async with serve(says("One."), says("Two."), says("Three.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("explain the parser")
            await running.shows("One.", "○ ready")
            await running.send("now the lexer")
            await running.shows("Two.", "○ ready")
            running.type(CTRL_Q)
            assert await running.exit_code() == 0
        async with program(phoenix) as running:
            await running.ready()
            running.type(CTRL_R)
            await running.shows("1 / 2 in this folder")
            running.type("pars")
            await running.shows("1 / 1 in this folder")
            running.type(ENTER)
            await running.shows("┃ explain the parser")
            running.type(ENTER)
            await running.shows("Three.")
    assert spoken(server.requests[-1]) == ["explain the parser"]


async def test_a_file_among_twenty_thousand_is_found_and_ignored_ones_are_not(tmp_path: Path) -> None:
    async with serve(says("Read.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        await planted(phoenix.cwd, [*(f"part{n % 100}/file_{n}.py" for n in range(20_000)), "part7/the_needle.py"])
        (phoenix.cwd / "build").mkdir()
        (phoenix.cwd / "build" / "the_needle.py").touch()
        (phoenix.cwd / ".gitignore").write_text("build/\n")
        async with program(phoenix) as running:
            await running.ready()
            running.type("read @")
            await running.shows("+42 more")
            running.type("thenee")
            await running.shows("@part7/the_needle.py")
            assert "build/" not in running.text
            running.type(TAB)
            await running.shows("┃ read @part7/the_needle.py")
