"""Questions of the model in a real terminal: answered, declined with Esc, and left open over a restart."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, result_text, rows, says, starts_to_say
from tests.support.loopback import serve
from tests.support.program import ENTER, ESC, program
from tests.support.questions import COLOUR, PARTS
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
RIGHT = b"\x1b[C"


async def test_answers_are_chosen_with_digits_and_arrows_and_sent_with_enter(tmp_path: Path) -> None:
    async with serve(calls("ask_user", questions=[COLOUR, PARTS]), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, rows=24, columns=80) as running:
            await running.ready()
            await running.send("go")
            await running.shows("asks you 2 questions", "Which colour?")
            await typing_guard()
            running.type(RIGHT)
            await running.shows("Which parts?")
            running.type("1")
            await running.shows("1 [x] API")
            running.type("3")
            await running.shows("3 [x] Tests")
            running.type(ENTER)
            await running.shows("Done.")
    assert result_text(server.requests[1]) == '"Which colour?"="not answered"\n"Which parts?"="API, Tests"'


async def test_esc_declines_and_a_second_one_stops_the_run(tmp_path: Path) -> None:
    async with serve(calls("ask_user", questions=[COLOUR]), starts_to_say("So be it.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, rows=24, columns=80) as running:
            await running.ready()
            await running.send("go")
            await running.shows("Esc declines to answer")
            running.type(ESC)
            await running.until(lambda: len(server.requests) == 2)
            await running.shows("So be it.")
            await typing_guard()
            running.type(ESC)
            await running.shows("stopped by you")
    assert result_text(server.requests[1]) == "The user declined to answer"


async def test_a_question_outlives_a_kill_and_its_answer_becomes_a_message(tmp_path: Path) -> None:
    async with serve(calls("ask_user", questions=[COLOUR]), says("Blue it is.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, rows=24, columns=80) as running:
            await running.ready()
            await running.send("go")
            await running.shows("Which colour?")
            running.signal(signal.SIGKILL)
        async with program(phoenix, "-c", rows=24, columns=80) as running:
            await running.shows("your answer is sent as a message", "2 ( ) Blue")
            assert rows(phoenix, "SELECT state FROM conversations") == [("idle",)]
            await typing_guard()
            running.type("2")
            await running.shows("Blue it is.")
            await running.lacks("your answer is sent as a message")
    messages: Any = server.requests[1].json["messages"]
    said = messages[-1]
    assert said["role"] == "user"
    assert '"Which colour?"="Blue"' in [block["text"] for block in said["content"] if block["type"] == "text"]
